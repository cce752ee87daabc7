//! Results of the `netping` binary in the formats of other tools, and pushed to Prometheus.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::mpsc::{self, Receiver},
    thread,
};

use common::{Server, load, nobody, run, stderr};
use netping_measure::counts::Counts;
use netping_report::export::FORMATS;
use serde_json::Value;

/// The steps of a result file, and each one's number of replies.
fn steps(json: &Path) -> Vec<(Value, u64)> {
    let run = load(json);
    let counted = |step: &Value| (step.clone(), step["ok"].as_u64().unwrap());
    run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(counted)
        .collect()
}

#[test]
fn every_format_agrees_with_the_result_file() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |format: &str| folder.path().join(format!("run.{format}"));
    let mut args: Vec<String> = [
        "throughput",
        &server.url,
        "-c",
        "1,4",
        "--requests",
        "1000",
        "--warmup",
        "0s",
    ]
    .map(str::to_owned)
    .to_vec();
    for format in FORMATS.iter().map(|format| format.name).chain(["json"]) {
        args.extend([
            format!("--{format}"),
            path(format).to_str().unwrap().to_owned(),
        ]);
    }
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let steps = steps(&path("json"));
    let callers: Vec<u64> = steps
        .iter()
        .map(|(step, _)| step["settings"]["callers"].as_u64().unwrap())
        .collect();
    assert_eq!(callers, [1, 4]);
    let text = |format: &str| fs::read_to_string(path(format)).unwrap();

    let mut csv = csv::Reader::from_path(path("csv")).unwrap();
    let rows: Vec<BTreeMap<String, String>> = csv.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len(), steps.len());
    for (row, (step, ok)) in rows.iter().zip(&steps) {
        assert_eq!((&row["target"], &row["ok"]), (&server.url, &ok.to_string()));
        assert_eq!(row["callers"], step["settings"]["callers"].to_string());
        let median = &step["response_time"]["p50_ns"];
        assert_eq!(row["response_time_p50_ns"], median.to_string());
    }

    let log = text("hlog");
    let lines: Vec<Vec<&str>> = log
        .lines()
        .filter(|line| line.starts_with("Tag="))
        .map(|line| line.split(',').collect())
        .collect();
    let kinds = ["service_time", "response_time"];
    assert_eq!(lines.len(), steps.len() * kinds.len());
    for (line, (ok, kind)) in lines.iter().zip(
        steps
            .iter()
            .flat_map(|(_, ok)| kinds.map(|kind| (ok, kind))),
    ) {
        assert!(
            line[0].starts_with(&format!("Tag={};", server.url)) && line[0].ends_with(kind),
            "{}",
            line[0]
        );
        assert_eq!(Counts::try_from(line[4].to_owned()).unwrap().len(), *ok);
    }

    let text_of_benchmarks = text("benchfmt");
    let benchmarks = text_of_benchmarks
        .lines()
        .filter(|line| line.starts_with("BenchmarkNetping/target=tcp/"));
    let counted: Vec<u64> = benchmarks
        .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(counted, steps.iter().map(|(_, ok)| *ok).collect::<Vec<_>>());

    let table = text("markdown");
    // What is not valid says so above.
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 2 + steps.len(), "{table}");
    assert!(
        rows.iter()
            .all(|line| line.starts_with("| ") && line.ends_with(" |")),
        "{table}"
    );
}

#[test]
fn unwritable_files_are_reported_before_measuring() {
    for format in &FORMATS {
        let flag = format!("--{}", format.name);
        let output = run(&["latency", "tcp://127.0.0.1:1", &flag, "/no/such/folder/run"]);
        assert_eq!(output.status.code(), Some(3), "{flag}");
        assert!(
            stderr(&output).contains("cannot write /no/such/folder/run"),
            "{}",
            stderr(&output)
        );
        let output = run(&["latency", "tcp://127.0.0.1:1", &flag, "-"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
    }
}

/// A Pushgateway that takes everything; what it got, as first lines and bodies.
fn gateway() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, pushes) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let push = read_push(&mut stream);
            // Before the answer: whoever has that may end.
            if sender.send(push).is_err() {
                return;
            }
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .unwrap();
        }
    });
    (url, pushes)
}

fn read_push(stream: &mut BufReader<TcpStream>) -> (String, String) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_lowercase());
    }
    let length = lines
        .iter()
        .find_map(|line| line.strip_prefix("content-length:"))
        .unwrap();
    let mut body = vec![0; length.trim().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (lines.remove(0), String::from_utf8(body).unwrap())
}

/// The value of a target's sample in what was pushed.
fn sample(body: &str, name: &str, url: &str) -> Option<f64> {
    let begin = format!("{name}{{target=\"{url}\",label=\"\"}} ");
    body.lines()
        .find_map(|line| line.strip_prefix(&begin)?.parse().ok())
}

#[test]
fn numbers_are_pushed_during_a_step_and_at_its_end() {
    let server = Server::start("tokio", &[]);
    let (url, pushes) = gateway();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let flags = [
        "-c",
        "2",
        "-d",
        "1500ms",
        "--warmup",
        "200ms",
        "--json",
        json.to_str().unwrap(),
    ];
    let output = run(&[
        &["throughput", &server.url, "--prometheus-push", &url],
        &flags[..],
    ]
    .concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("push"), "{}", stderr(&output));
    let (_, ok) = steps(&json).remove(0);

    let pushes: Vec<(String, String)> = pushes.try_iter().collect();
    assert!(
        pushes
            .iter()
            .all(|(line, _)| line == "put /metrics/job/netping http/1.1"),
        "{pushes:?}"
    );
    let value = |body: &str, name: &str| sample(body, name, &server.url).unwrap() as u64;
    let (_, last) = pushes.last().unwrap();
    assert_eq!(value(last, "netping_running"), 0, "{last}");
    assert_eq!(
        (
            value(last, "netping_replies"),
            value(last, "netping_response_time_seconds_count")
        ),
        (ok, ok)
    );
    assert!(
        last.contains("netping_response_time_quantile_seconds{")
            && last.contains("quantile=\"0.99\"} "),
        "{last}"
    );
    let live: Vec<_> = pushes
        .iter()
        .filter(|(_, body)| value(body, "netping_running") == 1)
        .collect();
    assert!(
        live.iter()
            .any(|(_, body)| value(body, "netping_rate_per_second") > 0),
        "{pushes:?}"
    );
}

#[test]
fn a_step_that_cannot_start_is_not_left_running() {
    let free = nobody();
    let target = format!("tcp://{free}");
    let (url, pushes) = gateway();
    let output = run(&["throughput", &target, "-c", "1", "--prometheus-push", &url]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let pushes: Vec<(String, String)> = pushes.try_iter().collect();
    let (_, last) = pushes.last().unwrap();
    assert_eq!(
        sample(last, "netping_running", &target).unwrap() as u64,
        0,
        "{last}"
    );
}

#[test]
fn a_missing_gateway_is_reported_once_and_the_run_goes_on() {
    let server = Server::start("tokio", &[]);
    let dead = nobody();
    let url = format!("http://{dead}");
    let fixed = [
        "latency",
        &server.url,
        "--samples",
        "1000",
        "--warmup",
        "0s",
        "--repeat",
        "3",
        "--every",
        "0s",
    ];
    let output = run(&[&fixed[..], &["--prometheus-push", &url]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        stderr(&output).matches("cannot push to").count(),
        1,
        "{}",
        stderr(&output)
    );
}

#[test]
fn invalid_gateway_urls_are_usage_errors() {
    for url in ["localhost:9091", "https://127.0.0.1:9091", "x"] {
        let output = run(&["latency", "tcp://127.0.0.1:1", "--prometheus-push", url]);
        assert_eq!(output.status.code(), Some(2), "{url}");
        assert!(
            stderr(&output).contains("http://HOST:9091/metrics/job/netping"),
            "{}",
            stderr(&output)
        );
    }
}
