//! The `netping` binary against servers that behave.

mod common;

use common::{Server, load, parse, run, stderr};
use serde_json::Value;

/// Every way to put requests on the wire: the server, and the flags of the client.
const WAYS: [(&str, &[&str]); 5] = [
    ("threads", &[]),
    ("tokio", &[]),
    ("tokio", &["--framing", "frame"]),
    ("grpc", &[]),
    ("grpc", &["--grpc-client", "tonic"]),
];

fn throughput(url: &str, flags: &[&str]) -> Value {
    let output = run(&[&["throughput", url, "--json", "-"], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    parse(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_number_of_requests_is_what_the_server_counts() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        let run = throughput(&server.url, &[&["-c", "8", "--requests", "2003", "--warmup", "0s"], flags].concat());
        assert_eq!(run["status"], "complete");
        assert_eq!(run["steps"][0]["summary"]["ok"], 2003);
        assert_eq!(server.requests(), 2003, "{kind} {flags:?}");
    }
}

#[test]
fn what_counts_and_what_does_not_is_together_what_the_server_counts() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        let run = throughput(&server.url, &[&["-c", "4", "-d", "300ms", "--warmup", "100ms"], flags].concat());
        let summary = &run["steps"][0]["summary"];
        let (inside, outside) = (summary["ok"].as_u64().unwrap(), summary["outside_ok"].as_u64().unwrap());
        assert!(inside > 0 && outside > 0);
        assert_eq!(summary["outside_errors"], 0);
        assert_eq!(inside + outside, server.requests(), "{kind} {flags:?}");
        let seconds: u64 =
            run["steps"][0]["intervals"].as_array().unwrap().iter().map(|second| second["ok"].as_u64().unwrap()).sum();
        assert_eq!(seconds, inside);
    }
}

#[test]
fn payloads_and_replies_of_any_length_are_verified() {
    let lengths = [("0", "1"), ("1", "70000"), ("17", "16"), ("1000000", "1"), ("300000", "1000000")];
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        for (payload, response) in lengths {
            let fixed = ["-c", "2", "--requests", "20", "--warmup", "0s", "--payload", payload, "--response", response];
            let run = throughput(&server.url, &[&fixed, flags].concat());
            assert_eq!(run["steps"][0]["summary"]["ok"], 20, "{kind} {payload} {response}");
        }
    }
}

#[test]
fn connections_are_opened_anew_after_their_requests() {
    for (kind, flags) in WAYS {
        let server = Server::start(kind, &[]);
        // Callers that share a connection share its number of requests too.
        let callers = if kind == "grpc" { "3" } else { "1" };
        let fixed = ["-c", callers, "--workers", "1", "--requests", "100", "--warmup", "0s"];
        let flags = [&fixed[..], &["--requests-per-connection", "10"], flags].concat();
        throughput(&server.url, &flags);
        // One more, which showed that the server is there.
        assert_eq!(server.reading().connections_admitted(), Some(11), "{kind} {flags:?}");
    }
}

#[test]
fn latency_has_as_many_samples_as_asked_for() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = run(&[
        "latency",
        &server.url,
        "--samples",
        "1000",
        "--repeat",
        "2",
        "--every",
        "0s",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = load(&file);
    let counts: Vec<_> = run["steps"].as_array().unwrap().iter().map(|step| &step["summary"]["ok"]).collect();
    assert_eq!(counts, [1000, 1000]);
    let quantiles = &run["steps"][0]["summary"]["service_time"]["quantiles"];
    assert!(quantiles["p99"].is_u64());
    // 1000 samples do not tell it.
    assert!(quantiles["p99.9"].is_null());
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
}

#[test]
fn a_sweep_has_a_row_for_each_step() {
    let server = Server::start("grpc", &[]);
    let flags = ["-c", "1..4", "--connections", "1,2,4", "--requests", "50", "--warmup", "0s"];
    let run = throughput(&server.url, &flags);
    let steps: Vec<_> = run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["settings"]["callers"].as_u64().unwrap(), step["settings"]["connections"].as_u64().unwrap()))
        .collect();
    assert_eq!(steps, [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]);
}

#[test]
fn the_ladder_climbs_every_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let output = run(&["ladder", "--quick", "-c", "2", "--json", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = load(&file);
    let labels: Vec<_> = run["steps"].as_array().unwrap().iter().map(|step| step["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["TCP, threads", "TCP, threads", "TCP, tokio", "TCP, tokio", "gRPC, tonic", "gRPC, tonic"]);
    assert!(run["steps"][5]["cost"]["server_cpu_us_per_request"].is_number());
    assert!(String::from_utf8(output.stdout).unwrap().contains("gRPC, tonic"));
}
