//! The `netping` binary with servers whose counters are wrong, or count others' requests.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use common::{Server, load, netping, run, stderr, stdout};
use serde_json::Value;

/// Serves metrics, whose text depends on how often they were read before. Returns their URL.
fn metrics(text: impl Fn(u32) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            // The head ends with an empty line.
            while stream.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let text = text(number);
            let length = text.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream
                .get_mut()
                .write_all((head + &text).as_bytes())
                .unwrap();
        }
    });
    url
}

/// Measures a server with the counters at this URL; returns the step and what was said.
fn measured(server: &Server, metrics: &str, flags: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let file = file.to_str().unwrap();
    let fixed = ["throughput", &server.url, "--json", file];
    let metrics = ["--server-metrics", metrics];
    let load_flags = ["-d", "300ms", "--warmup", "0s"];
    let output = run(&[&fixed[..], &metrics, &load_flags, flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = netping().args(["report", file]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let step = load(file.as_ref())["steps"][0].clone();
    (step, stdout(&output) + &stderr(&output))
}

#[test]
fn what_each_thread_of_a_server_has_is_known() {
    let server = Server::start("tokio", &["--workers", "3"]);
    let metrics = format!("http://{}/metrics", server.metrics_address());
    let (step, _) = measured(&server, &metrics, &["-c", "1"]);
    let workers = &step["cost"]["server"]["workers"];
    assert_eq!(workers["count"], 3, "{step}");
    // A connection is one thread's.
    let [busiest, all] = ["busiest_seconds", "cpu_seconds"].map(|name| workers[name].as_f64());
    assert!(busiest.unwrap() > 0.8 * all.unwrap(), "{workers}");
}

/// Returns the names of those warnings of a step that are about counts of requests.
fn doubts(step: &Value) -> Vec<&str> {
    let warnings = step["warnings"].as_array().unwrap().iter();
    warnings
        .filter_map(|warning| warning["name"].as_str())
        .filter(|name| ["SERVER_SHARED", "COUNTERS_DISAGREE"].contains(name))
        .collect()
}

/// The text of metrics, by the number of the reading.
type Metrics = fn(u32) -> String;

#[test]
fn counters_that_cannot_be_are_refused_in_words_and_never_stored() {
    let server = Server::start("tokio", &[]);
    let cases: [(Metrics, &str); 8] = [
        (
            |_| "process_cpu_seconds_total NaN\n".to_owned(),
            "process_cpu_seconds_total is NaN",
        ),
        (
            |_| "process_cpu_seconds_total +Inf\n".to_owned(),
            "process_cpu_seconds_total is inf",
        ),
        (
            |_| "process_cpu_seconds_total -1\n".to_owned(),
            "process_cpu_seconds_total is -1",
        ),
        (
            |number| format!("process_cpu_seconds_total {}\n", 100 - number),
            "process_cpu_seconds_total fell from",
        ),
        (
            |number| format!("process_cpu_seconds_total {number}e6\n"),
            "more than 8192 CPUs",
        ),
        (
            |number| format!("process_cpu_seconds_total {number}e3\nnetping_cpus_usable 2\n"),
            "more than the server's 2 CPUs",
        ),
        (
            |_| "process_cpu_seconds_total 1\nprocess_resident_memory_bytes NaN\n".to_owned(),
            "process_resident_memory_bytes is NaN",
        ),
        (
            |number| {
                let left = 100 - number;
                format!("process_cpu_seconds_total 1\nnetping_requests_total {left}\n")
            },
            "netping_requests_total fell from",
        ),
    ];
    for (text, reason) in cases {
        let (step, said) = measured(&server, &metrics(text), &[]);
        let note = "server CPU time unknown: the server's counters are not believed: ";
        assert!(
            said.contains(note) && said.contains(reason),
            "{reason}: {said}"
        );
        assert!(step["cost"]["server"].is_null(), "{reason}: {step}");
    }
}

#[test]
fn requests_that_the_client_did_not_send_are_told_and_those_that_the_server_did_not_count() {
    let server = Server::start("tokio", &[]);
    let many = || {
        metrics(|number| {
            let requests = 1 + u64::from(number) * 1_000_000_000;
            format!("process_cpu_seconds_total 1\nnetping_requests_total {requests}\n")
        })
    };
    let (step, said) = measured(&server, &many(), &[]);
    assert_eq!(doubts(&step), ["SERVER_SHARED"], "{said}");
    assert!(said.contains("1,000,000,000 requests, but only"), "{said}");
    // As one of several clients.
    let (step, said) = measured(&server, &many(), &["--start-at", "+2s"]);
    assert_eq!(doubts(&step), Vec::<&str>::new(), "{said}");
    let counts = &step["cost"]["server"]["requests"];
    assert_eq!(counts["has_other_clients"], true, "{counts}");

    let none = metrics(|_| "process_cpu_seconds_total 1\nnetping_requests_total 1\n".to_owned());
    for flags in [&[][..], &["--start-at", "+2s"]] {
        let (step, said) = measured(&server, &none, flags);
        assert_eq!(doubts(&step), ["COUNTERS_DISAGREE"], "{said}");
    }
    // A relay counts none.
    let relay = metrics(|_| "process_cpu_seconds_total 1\nnetping_requests_total 0\n".to_owned());
    let (step, said) = measured(&server, &relay, &[]);
    assert_eq!(doubts(&step), Vec::<&str>::new(), "{said}");
}

#[test]
fn both_sides_count_the_same_requests() {
    let ways: [(&str, &[&str], &[&str]); 7] = [
        ("threads", &[], &["-c", "8"]),
        ("tokio", &[], &["-c", "1"]),
        (
            "tokio",
            &[],
            &[
                "-c",
                "4",
                "--framing",
                "frame",
                "--requests-per-connection",
                "10",
            ],
        ),
        ("tokio", &["--delay", "100ms"], &["-c", "64"]),
        ("tokio", &[], &["--rate", "1000"]),
        ("grpc", &[], &["-c", "4"]),
        (
            "quic",
            &["--tls-self-signed"],
            &["-c", "4", "--tls-insecure"],
        ),
    ];
    for (kind, serving, flags) in ways {
        let server = Server::start(kind, serving);
        let (step, said) = measured(&server, &server.metrics, flags);
        assert_eq!(
            doubts(&step),
            Vec::<&str>::new(),
            "{kind} {flags:?}: {said}"
        );
        let counts = &step["cost"]["server"]["requests"];
        let [server, client, unsure] = ["server", "client", "unsure"].map(|name| {
            let count = counts[name].as_u64();
            count.unwrap_or_else(|| panic!("{kind} {flags:?}: {step}"))
        });
        assert!(server > 0 && client > 0, "{kind} {flags:?}: {counts}");
        // Not by the tolerance.
        assert!(
            server.abs_diff(client) <= unsure,
            "{kind} {flags:?}: {counts}"
        );
    }
}
