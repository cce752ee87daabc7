//! What the tests of the `netping` binary share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::LazyLock,
    thread,
    time::Duration,
};

use netping_client::probe::metrics::{Probe, Reading, ServerSource};
use serde_json::Value;

/// The binary under test.
pub fn netping() -> Command {
    Command::new(env!("CARGO_BIN_EXE_netping"))
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Output {
    let measures = args.first().is_some_and(|command| *command != "ladder");
    let told = args.iter().any(|arg| arg.starts_with("--server-"));
    netping()
        .args(args)
        .args(if measures && !told {
            &NO_METRICS[..]
        } else {
            &[]
        })
        .output()
        .unwrap()
}

/// Where a server's metrics would be looked for, another test's server may listen, and would count that as requests.
pub const NO_METRICS: [&str; 2] = ["--server-metrics", "off"];

/// Standard error, as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server process; dropping it kills it.
pub struct Server {
    pub child: Child,
    pub url: String,
    pub metrics: String,
}

impl Server {
    /// Starts one of the servers on free ports.
    pub fn start(kind: &str, flags: &[&str]) -> Self {
        let mut child = netping()
            .args([
                "serve",
                "--die-with-parent",
                kind,
                "--listen",
                "127.0.0.1:0",
                "--metrics",
                "127.0.0.1:0",
            ])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let url = lines
            .next()
            .unwrap()
            .strip_prefix("listening ")
            .unwrap()
            .to_owned();
        let metrics = lines
            .next()
            .unwrap()
            .strip_prefix("metrics ")
            .unwrap()
            .to_owned();
        Self {
            child,
            url,
            metrics,
        }
    }

    pub fn reading(&self) -> Reading {
        let source = ServerSource::Url {
            url: self.metrics.clone(),
            asked: true,
        };
        Probe::new(source).read().unwrap()
    }

    /// Requests that the server has answered.
    pub fn requests(&self) -> u64 {
        self.reading().requests().unwrap()
    }

    /// Waits until the server has answered requests: a client is in the middle of its run.
    pub fn await_requests(&self) {
        for _ in 0..2000 {
            if self.requests() > 0 {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no request came");
    }
}

/// Kills the server while `client` measures it; gives what the client, which must fail, wrote to standard output.
pub fn killed_in_mid_run(mut server: Server, client: &mut Command) -> Value {
    let client = client
        .args(NO_METRICS)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.await_requests();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let output = client.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}: {}",
        server.url,
        stderr(&output)
    );
    parse(&String::from_utf8(output.stdout).unwrap())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema =
        serde_json::from_str(include_str!("../../../results/schema/run.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// Reads a result, which must be of the committed schema and must add up.
pub fn parse(json: &str) -> Value {
    let run: Value = serde_json::from_str(json).unwrap();
    let wrong: Vec<String> = SCHEMA
        .iter_errors(&run)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    for step in run["steps"].as_array().unwrap() {
        let summary = &step["summary"];
        let count = |name: &str| summary[name].as_u64().unwrap();
        let errors: u64 = summary["errors"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum();
        assert_eq!(
            count("scheduled"),
            count("ok") + errors + count("in_flight") + count("not_sent")
        );
        assert_eq!(summary["service_time"]["count"], summary["ok"]);
        assert_eq!(summary["failed_time"]["count"].as_u64().unwrap(), errors);
        let histogram = netping_results::file::histogram::decode(
            step["histograms"]["service_time"].as_str().unwrap(),
        )
        .unwrap();
        assert_eq!(histogram.len(), count("ok"));
    }
    run
}

/// Reads a result file.
pub fn load(path: &Path) -> Value {
    parse(&std::fs::read_to_string(path).unwrap())
}
