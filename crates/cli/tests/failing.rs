//! The `netping` binary when something is wrong: a clear error, the documented exit code, and
//! accounts that add up.

mod common;

use std::{
    collections::HashSet,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
};

use common::{
    NO_METRICS, Server, assert_usage, eventually, interrupt, killed_in_mid_run, load, misbehaving,
    netping, nobody, parse, run, serve, signal, spawn, stderr, stdout,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A short run that must end with exit code 1; its first step's summary, and what stands on
/// standard error.
fn failing(url: &str, flags: &[&str]) -> (Value, String) {
    let fixed = [
        "throughput",
        url,
        "-c",
        "3",
        "--warmup",
        "0s",
        "--json",
        "-",
    ];
    let extent: &[&str] = if flags.contains(&"--requests") {
        &[]
    } else {
        &["-d", "300ms"]
    };
    let output = run(&[&fixed, extent, flags].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let run = parse(&String::from_utf8_lossy(&output.stdout));
    (run["steps"][0].clone(), stderr(&output))
}

fn kinds(summary: &Value) -> Vec<&str> {
    summary["errors"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn usage_errors_suggest_a_correction() {
    assert_usage(&[
        ("throughput udp://127.0.0.1:1 -c 1", "unknown scheme 'udp'"),
        (
            "throughput tcp://127.0.0.1:1 -c 0",
            "values must be at least 1",
        ),
        (
            "throughput tcp://127.0.0.1:1 -c 10..1",
            "the range is empty: 10 is larger than 1",
        ),
        ("throughput tcp://127.0.0.1:1 -c x", "a range looks like"),
        (
            "throughput tcp://127.0.0.1:1 -c 1..x",
            "'x' is not a number; a range looks like",
        ),
        (
            "throughput tcp://127.0.0.1:1 --find latency<5ms",
            "there is no 'latency': name a quantile of the times, such as p99",
        ),
        (
            "throughput tcp://127.0.0.1:1 -c 1 --connections 2",
            "--connections is for grpc://",
        ),
        (
            "throughput grpc://127.0.0.1:1 -c 1 --connections 2",
            "nothing to measure",
        ),
        (
            "throughput grpc://127.0.0.1:1 tcp://127.0.0.1:2 -c 8,64 --connections 4,64",
            "tcp://127.0.0.1:2 has a connection for each caller: its 64 callers cannot share 4 connections. Measure it in a \
             command of its own, or give all targets --connections 64",
        ),
        ("throughput tcp://127.0.0.1:1 -c 1 -d 0s", "0 is too short"),
        (
            "throughput tcp://127.0.0.1:1 -c 1 --framing line --response 9",
            "--framing frame",
        ),
        (
            "latency tcp://127.0.0.1:1 --payload 99999999",
            "the maximum is 16777216",
        ),
        (
            "throughput tcp://127.0.0.1:1 --rate 0",
            "values must be at least 1",
        ),
        (
            "throughput tcp://127.0.0.1:1 -c 1 -d 1s --warmup 2s",
            "shorter than the warm-up",
        ),
        ("throughput tcp://127.0.0.1:1 -c 1 --seed 2", "--rate"),
        (
            "latency tcp://127.0.0.1:1 --fail-if p99",
            "looks like p99<1ms",
        ),
        ("latency tcp://127.0.0.1:1 --repeat 0", "'forever'"),
        (
            "latency tcp://127.0.0.1:1 --max-error-rate 2",
            "from 0 to 1",
        ),
        ("ladder -c 1", "the minimum is 2"),
        ("ladder --connections 64", "give fewer --connections"),
        ("ladder --no-pin --client-cpus 0", "cannot be used with"),
        ("ladder --client-cpus 0", "--server-cpus"),
        (
            "ladder --client-cpus 0- --server-cpus 1",
            "looks like 0-3,8",
        ),
        ("ladder --quick --budget 1m", "cannot be used with"),
        ("ladder --server-pid 1", "unexpected argument"),
        (
            "latency tcp://127.0.0.1:1 --strict --allow SHARED",
            "possible values: CLIENT_BOUND",
        ),
        (
            "latency tcp://127.0.0.1:1 --samples 1x",
            "such as 500, 10k or 2M",
        ),
        ("latency tcp://127.0.0.1:1 --every 1s", "--repeat"),
        (
            "ab tcp://127.0.0.1:1 tcp://127.0.0.1:2 --budget 300000000000y",
            "the longest time is 36500d",
        ),
        (
            "latency tcp://127.0.0.1:1 --repeat 2 --trials 2",
            "cannot be used with",
        ),
        (
            "latency tcp://127.0.0.1:1 --grpc-client tonic",
            "no target is one",
        ),
        (
            "connect grpc://127.0.0.1:1 --psk-file key",
            "--psk-file is for tcp+psk://",
        ),
        (
            "bulk tcp://127.0.0.1:1 --tls-insecure",
            "--tls-insecure is for targets with TLS",
        ),
    ]);
}

#[test]
fn a_wrong_target_gets_the_right_one() {
    assert_usage(&[
        ("127.0.0.1:8004", "write tcp://127.0.0.1:8004,"),
        ("localhost:8080", "write http://localhost:8080,"),
        ("latency localhost:8080", "write http://localhost:8080,"),
        (
            "throughput a=tcp://127.0.0.1:1 a=tcp://127.0.0.1:2",
            "two targets have the name 'a'",
        ),
        ("latency a,b=tcp://127.0.0.1:1", "is no name for a target"),
        ("ab old=http://127.0.0.1:1 http://127.0.0.1:2", "name both"),
        ("throughputs", "neither a command"),
        ("udp://127.0.0.1:1", "unknown scheme 'udp'"),
    ]);
}

#[test]
fn a_refused_connection_exits_with_3_and_names_the_port() {
    let free = nobody();
    for url in [format!("tcp://{free}"), format!("grpc://{free}")] {
        let output = run(&["latency", &url]);
        assert_eq!(output.status.code(), Some(3));
        let text = stderr(&output);
        assert!(
            text.contains(&url)
                && text.contains("refused")
                && text.contains("is a server listening"),
            "{text}"
        );
    }
    let output = run(&["latency", "grpc://127.0.0.1:1", "--grpc-client", "tonic"]);
    assert!(stderr(&output).contains("refused"), "{}", stderr(&output));
    let output = run(&["latency", "tcp://no-such-host.invalid"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("cannot resolve"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn more_requests_than_a_clock_has_time_for_are_measured_until_the_user_ends_it() {
    let count = u64::MAX.to_string();
    let url = format!("tcp://{}", nobody());
    let output = run(&["throughput", &url, "-n", &count, "--rate", "1"]);
    // Nobody listens: but the plan could be made.
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn unwritable_files_are_reported_before_measuring() {
    let output = run(&[
        "latency",
        "tcp://127.0.0.1:1",
        "--json",
        "/no/such/folder/run.json",
    ]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("cannot write /no/such/folder/run.json"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_earlier_result_is_kept_until_it_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [json, csv] = ["base.json", "base.csv"].map(|name| folder.path().join(name));
    for file in [&json, &csv] {
        fs::write(file, "earlier").unwrap();
    }
    let files = [
        "--json",
        json.to_str().unwrap(),
        "--csv",
        csv.to_str().unwrap(),
    ];
    let output = run(&[&["latency", "tcp://no-such-host.invalid"], &files[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(
        [&json, &csv].map(|file| fs::read_to_string(file).unwrap()),
        ["earlier"; 2]
    );
    // A file that did not exist shows that a run was begun.
    fs::remove_file(&json).unwrap();
    assert_eq!(
        run(&[&["latency", "tcp://no-such-host.invalid"], &files[..]].concat())
            .status
            .code(),
        Some(3)
    );
    assert_eq!(load(&json)["status"], "partial");

    let server = Server::start("tokio", &[]);
    let output = run(&[
        &["latency", &server.url, "--samples", "10", "--warmup", "0s"],
        &files[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(load(&json)["steps"].as_array().unwrap().len(), 1);
    assert_ne!(fs::read_to_string(&csv).unwrap(), "earlier");
}

#[test]
fn two_results_in_one_file_are_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let output = run(&["latency", "tcp://127.0.0.1:1", "--json", out, "--csv", out]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--json and --csv both write"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn garbage_is_never_a_success() {
    let garbage = |mut stream: TcpStream| {
        let mut request = [0; 512];
        while stream.read(&mut request).is_ok_and(|read| read > 0) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    };
    for (flags, expected) in [(&[][..], "mismatch"), (&["--framing", "frame"], "protocol")] {
        let (summary, text) = failing(&misbehaving("tcp", garbage), flags);
        assert_eq!(
            (&summary["ok"], kinds(&summary)),
            (&Value::from(0), vec![expected]),
            "{text}"
        );
    }
    // HTTP/2 shows it in the handshake's answer, with the first request, or before it.
    for client in ["h2", "tonic"] {
        let (summary, text) = failing(&misbehaving("grpc", garbage), &["--grpc-client", client]);
        assert_eq!(
            (&summary["ok"], kinds(&summary)),
            (&Value::from(0), vec!["protocol"]),
            "{text}"
        );
        assert!(summary["scheduled"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_reply_that_belongs_to_another_request_is_a_mismatch() {
    let stale = |mut stream: TcpStream| {
        let mut request = [0; 512];
        while stream.read(&mut request).is_ok_and(|read| read > 0) {
            let _ = stream.write_all(b"0000\n");
        }
    };
    let (summary, text) = failing(&misbehaving("tcp", stale), &["--max-error-rate", "0.1"]);
    assert_eq!(kinds(&summary), ["mismatch"]);
    assert!(text.contains("is not what was sent"), "{text}");
}

#[test]
fn closed_connections_and_silence_are_different_errors() {
    let (summary, _) = failing(&misbehaving("tcp", drop), &[]);
    assert!(
        kinds(&summary)
            .iter()
            .all(|kind| ["eof", "reset"].contains(kind)),
        "{summary}"
    );

    let silent = |mut stream: TcpStream| drop(stream.read_to_end(&mut Vec::new()));
    for scheme in ["tcp", "grpc"] {
        let (summary, text) = failing(&misbehaving(scheme, silent), &["--timeout", "100ms"]);
        assert_eq!(kinds(&summary), ["timeout"], "{text}");
        // Each caller has had its three, or two and one that began in the window.
        assert!(summary["scheduled"].as_u64().unwrap() >= 6, "{summary}");
    }
}

#[test]
fn a_grpc_error_has_its_code() {
    let server = Server::start("grpc", &["--max-message", "100"]);
    for client in ["h2", "tonic"] {
        // Not more: a server ends a connection after too many errors, as it should.
        let flags = [
            "--payload",
            "500",
            "--connections",
            "1",
            "--requests",
            "50",
            "--grpc-client",
            client,
        ];
        let (summary, text) = failing(&server.url, &flags);
        assert_eq!(kinds(&summary), ["grpc_11"], "{text}");
        assert!(text.contains("the limit is: 100 bytes"), "{text}");
    }
}

#[test]
fn a_server_killed_in_mid_run_leaves_exact_accounts() {
    for (kind, flags) in [
        ("threads", &[][..]),
        ("tokio", &[]),
        ("grpc", &[]),
        ("grpc", &["--grpc-client", "tonic"]),
    ] {
        let server = Server::start(kind, &[]);
        let url = server.url.clone();
        let fixed = [
            "throughput",
            &url,
            "-c",
            "8",
            "-d",
            "1s",
            "--warmup",
            "0s",
            "--json",
            "-",
        ];
        let run = killed_in_mid_run(server, &[&fixed, flags].concat());
        let summary = &run["steps"][0];
        assert!(
            summary["errors"]["refused"].as_u64().unwrap() > 0,
            "{kind} {flags:?}: {summary}"
        );
        // Refused callers pause: 8 of them come to some tens of tries in a second, not to
        // thousands.
        assert!(
            summary["errors"]["refused"].as_u64().unwrap() < 500,
            "{summary}"
        );
    }
}

#[test]
fn a_missing_target_is_reported_before_another_is_measured() {
    let server = Server::start("tokio", &[]);
    for command in [&["throughput", "-c", "1"][..], &["latency"]] {
        let targets = [&server.url, "tcp://127.0.0.1:1"];
        let output = netping().args(command).args(targets).output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.is_empty()),
            (Some(3), true),
            "{}",
            stderr(&output)
        );
    }
    // One request each.
    assert_eq!(server.requests(), 2);
}

#[test]
fn a_server_that_cannot_start_is_not_announced() {
    for kind in ["threads", "tokio", "grpc", "quic"] {
        let flags = ["--tls-cert", "nofile", "--tls-key", "nofile"];
        let output = serve(kind, &flags).output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.is_empty()),
            (Some(3), true),
            "{kind}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("cannot read nofile"),
            "{kind}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_first_request_that_fails_ends_the_command_with_a_remedy() {
    let (echo, grpc) = (Server::start("tokio", &[]), Server::start("grpc", &[]));
    let silent = |mut stream: TcpStream| drop(stream.read_to_end(&mut Vec::new()));
    let other = |server: &Server, scheme: &str| {
        let (_, address) = server.url.split_once("://").unwrap();
        format!("{scheme}://{address}")
    };
    let meant =
        |server: &Server, scheme: &str| format!("should the URL be {}?", other(server, scheme));
    let web = |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.0 501 Unsupported\r\n\r\n");
    };
    for (url, remedy) in [
        (other(&echo, "grpc"), meant(&echo, "tcp")),
        (other(&echo, "http"), meant(&echo, "tcp")),
        (other(&echo, "tcp+tls"), meant(&echo, "tcp")),
        (other(&grpc, "tcp"), meant(&grpc, "grpc")),
        (other(&grpc, "http"), meant(&grpc, "grpc")),
        (misbehaving("grpc", web), "speaks HTTP/1.1: ".to_owned()),
        (
            misbehaving("tcp", silent),
            "give a longer --timeout".to_owned(),
        ),
    ] {
        for command in ["latency", "throughput", "connect"] {
            let output = netping()
                .args([command, &url, "--timeout", "1s"])
                .args(NO_METRICS)
                .output()
                .unwrap();
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(3), "{command} {url}: {text}");
            assert!(text.contains(&remedy), "{command} {url}: {text}");
            // One remedy.
            assert_eq!(text.matches("; ").count(), 1, "{text}");
            assert!(output.stdout.is_empty(), "{command} {url}");
        }
    }
}

/// A disk that is full.
fn full() -> fs::File {
    let mut file = fs::OpenOptions::new();
    file.write(true).open("/dev/full").unwrap()
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, page, certs) = (path("run.json"), path("page.html"), path("certs"));
    let scenario = path("scenario.toml");
    let step = format!(
        "latency {} -n 100 --server-metrics off --json {json}",
        server.url
    );
    let row = format!("target = '{}', kind = 'latency', min = '1s'", server.url);
    let published = format!("[[published]]\nsource = 'a study'\nrows = [{{ {row} }}]\n");
    fs::write(&scenario, format!("[[step]]\nrun = '{step}'\n{published}")).unwrap();
    for (code, args) in [
        (6, step.split(' ').collect()),
        (6, vec!["run", &scenario]),
        (3, vec!["report", &json]),
        (3, vec!["compare", &json, &json, "--html", &page]),
        (3, vec!["certs", "--out", &certs]),
        (3, vec!["check"]),
        (3, vec!["man"]),
    ] {
        let mut client = netping();
        let client = client.args(&args).stdout(full()).stderr(Stdio::piped());
        let output = client.output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        let told = text.matches("cannot write the results to standard output");
        // The step of a scenario says so, and the scenario.
        let times = if args[0] == "run" { 2 } else { 1 };
        assert_eq!(told.count(), times, "{args:?}: {text}");
    }
    // Files are written nevertheless.
    for file in [page, path("certs/ca.pem")] {
        assert!(fs::exists(&file).unwrap(), "{file}");
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json").display().to_string();
    let measure = ["latency", &server.url, "--samples=100", "--json", &json];
    for args in [
        [&measure[..], &NO_METRICS].concat(),
        vec!["report", &json],
        vec!["man"],
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut client = netping();
        let client = client.args(&args).stdout(writer).stderr(Stdio::piped());
        let output = client.output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_search_with_too_few_samples_says_so() {
    let server = Server::start("tokio", &["--delay", "50ms"]);
    // At most 80 replies/s, and so 40 in a window: too few for p99 at any rate that is kept.
    let flags = [
        "--find",
        "p99<10s",
        "-c",
        "4",
        "-d",
        "500ms",
        "--warmup",
        "0s",
        "--timeout",
        "300ms",
        "--allow",
        "all",
        "--arrivals",
        "poisson",
        "--seed",
        "1",
        "--json",
        "-",
    ];
    let output = run(&[&["throughput", &server.url], &flags[..]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    // Each window has random arrivals of its own.
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = result["steps"].as_array().unwrap();
    let seeds: HashSet<_> = steps
        .iter()
        .map(|step| step["settings"]["seed"].as_u64())
        .collect();
    assert!(steps.len() > 1 && seeds.len() == steps.len(), "{seeds:?}");
    assert!(
        stderr(&output).contains("p99<10s takes 1,000 samples in a window"),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&output).contains("was not kept, down to"));
}

#[test]
fn ctrl_c_keeps_whole_trials() {
    let server = Server::start("tokio", &[]);
    let client = spawn(&[
        "throughput",
        &server.url,
        "-c",
        "1",
        "-d",
        "500ms",
        "--warmup",
        "0s",
        "--trials",
        "500",
    ]);
    // The first step is whole when the second one has a connection.
    eventually("a second step", || {
        server.reading().connections_admitted() >= Some(2)
    });
    let table = stdout(&interrupt(client));
    assert!(
        table.contains("req/s") && table.contains(&server.url) && table.contains("interrupted"),
        "{table}"
    );
}

#[test]
fn ctrl_c_keeps_the_results_so_far() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let json = file.to_str().unwrap();
    let client = spawn(&[
        "throughput",
        &server.url,
        "-c",
        "2,4",
        "-d",
        "60s",
        "--warmup",
        "0s",
        "--json",
        json,
    ]);
    server.await_requests();
    let table = stdout(&interrupt(client));
    assert_eq!(
        table.lines().filter(|line| line.starts_with(' ')).count(),
        1,
        "{table}"
    );
    let run = load(&file);
    assert_eq!(
        (&run["status"], &run["steps"][0]["status"]),
        (&Value::from("partial"), &Value::from("partial"))
    );
    assert_eq!(run["steps"].as_array().unwrap().len(), 1);
    assert!(run["steps"][0]["ok"].as_u64().unwrap() > 0);
}

#[test]
fn connections_that_a_server_rejects_are_failures() {
    let server = Server::start("tokio", &["--max-connections", "4"]);
    let output = run(&[
        "throughput",
        &server.url,
        "-c",
        "16",
        "-d",
        "300ms",
        "--warmup",
        "0s",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let run = parse(&String::from_utf8_lossy(&output.stdout));
    let summary = &run["steps"][0];
    assert!(summary["ok"].as_u64().unwrap() > 0);
    assert!(
        kinds(summary)
            .iter()
            .all(|kind| ["eof", "reset"].contains(kind)),
        "{summary}"
    );
}

#[test]
fn a_log_that_cannot_be_written_ends_neither_server_nor_client() {
    for kind in ["threads", "tokio", "grpc"] {
        let mut server = Server::spawn(serve(kind, &["--max-connections", "1"]).stderr(full()));
        let (_, address) = server.url.split_once("//").unwrap();
        let held = TcpStream::connect(address).unwrap();
        eventually("a connection", || {
            server.reading().connections_admitted() == Some(1)
        });
        // The server logs each connection that it refuses.
        for _ in 0..6 {
            let mut refused = TcpStream::connect(address).unwrap();
            // It is closed or reset.
            let _ = refused.read_to_end(&mut Vec::new());
        }
        drop(held);
        signal(&server.child, Signal::SIGTERM);
        assert_eq!(server.child.wait().unwrap().code(), Some(0), "{kind}");
    }
    let url = format!("tcp://{}", nobody());
    let client = netping().args(["latency", &url]).stderr(full()).status();
    assert_eq!(client.unwrap().code(), Some(3));
}

#[test]
fn silent_connections_do_not_block_the_metrics() {
    let server = Server::start("tokio", &[]);
    // More than are served at a time.
    let silent: Vec<_> = (0..270)
        .map(|_| TcpStream::connect(server.metrics_address()).unwrap())
        .collect();
    assert_eq!(server.reading().requests(), Some(0));
    drop(silent);
}

#[test]
fn all_clients_of_a_run_get_the_metrics() {
    let server = Server::start("tokio", &[]);
    let mut clients: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(server.metrics_address()).unwrap())
        .collect();
    // The last to come asks first.
    for client in clients.iter_mut().rev() {
        client
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n")
            .unwrap();
    }
    for client in &mut clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_foreign_line_server_is_told_from_one_that_speaks_frames() {
    let url = misbehaving("tcp", |stream| {
        let mut writer = stream.try_clone().unwrap();
        // Echoes lines, and the client may leave at any time.
        let mut lines = BufReader::new(stream).split(b'\n');
        while let Some(Ok(line)) = lines.next() {
            let _ = writer.write_all(&[&line[..], b"\n"].concat());
        }
    });
    let ask = |flags: &[&str]| {
        let fixed = [
            "latency",
            &url,
            "--samples",
            "10",
            "--server-metrics",
            "off",
        ];
        netping().args(fixed).args(flags).output().unwrap()
    };
    assert_eq!(ask(&[]).status.code(), Some(0));
    let refused = ask(&["--response", "100", "--timeout", "200ms"]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    let told = "the first request, in netping's own frames (as --response";
    assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
}
