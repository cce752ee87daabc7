//! Helpers of the tests of the `netping` binary.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::LazyLock,
    thread,
    time::Duration,
};

use netping_client::probe::metrics::{Probe, Reading, ServerSource};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

/// The schema of netping's own echo, as a user would give it.
pub const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/echo.proto");

/// The binary under test.
pub fn netping() -> Command {
    Command::new(env!("CARGO_BIN_EXE_netping"))
}

/// Runs the binary to its end; the server gets only the requests that are measured.
pub fn run(args: &[&str]) -> Output {
    netping().args(args).args(alone(args)).output().unwrap()
}

/// Returns the flags that keep a run from servers' other ports, at which other tests' servers may
/// listen, and from first calls, but for those that show a proxy's client what a right reply is.
fn alone(args: &[&str]) -> Vec<&'static str> {
    let command = args.first().copied().unwrap_or_default();
    let mut flags = Vec::new();
    if command != "ladder" && !args.iter().any(|arg| arg.starts_with("--server-")) {
        flags.extend(NO_METRICS);
    }
    if !["ladder", "bulk", "proxy"].contains(&command) {
        flags.push(NO_FIRST_CALL);
    }
    flags
}

/// Checks that each command line is wrong usage, with this message.
pub fn assert_usage(cases: &[(&str, &str)]) {
    for (line, message) in cases {
        let output = run(&line.split(' ').collect::<Vec<_>>());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(message), "{line}: {text}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

/// Starts the binary, with its standard output piped.
pub fn spawn(args: &[&str]) -> Child {
    netping()
        .args(args)
        .args(alone(args))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Presses Ctrl-C; returns the output of `client`, which must tell that it was interrupted.
pub fn interrupt(client: Child) -> Output {
    signal(&client, Signal::SIGINT);
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    output
}

/// Sends a signal to a process.
pub fn signal(process: &Child, signal: Signal) {
    kill(Pid::from_raw(process.id().cast_signed()), signal).unwrap();
}

/// Waits until a state is reached; panics after 20 s without it.
pub fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if reached() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} never came");
}

/// Returns an address where no server listens.
pub fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A server that does `behave` with each connection, and its URL.
pub fn misbehaving(scheme: &str, behave: impl Fn(TcpStream) + Send + Copy + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || behave(stream.unwrap()));
        }
    });
    url
}

/// Turns off the server's metrics: at their default port another test's server may listen.
pub const NO_METRICS: [&str; 2] = ["--server-metrics", "off"];

/// Turns off the request that each target must answer first.
pub const NO_FIRST_CALL: &str = "--no-first-call";

/// Returns standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server process; dropping it kills it.
pub struct Server {
    pub child: Child,
    pub url: String,
    pub metrics: String,
}

/// The flags of every server under test: free ports, and its end with the test.
const SERVING: [&str; 4] = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];

impl Server {
    /// Starts one of the servers on free ports.
    pub fn start(kind: &str, flags: &[&str]) -> Self {
        Self::spawn(&mut serve(kind, flags))
    }

    /// Starts the server that [`serve`] made a command of.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut field = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(name).unwrap().to_owned()
        };
        Self {
            url: field("listening "),
            metrics: field("metrics "),
            child,
        }
    }

    pub fn metrics_address(&self) -> &str {
        let address = self.metrics.strip_prefix("http://").unwrap();
        address.strip_suffix("/metrics").unwrap()
    }

    pub fn reading(&self) -> Reading {
        let source = ServerSource::Url {
            url: self.metrics.clone(),
            asked: true,
        };
        Probe::new(source).read().unwrap()
    }

    /// Returns the number of requests that the server has answered.
    pub fn requests(&self) -> u64 {
        self.reading().requests().unwrap()
    }

    /// Waits until the server has answered requests: a client is in the middle of its run.
    pub fn await_requests(&self) {
        eventually("a request", || self.requests() > 0);
    }
}

/// Returns the command of a server on free ports.
pub fn serve(kind: &str, flags: &[&str]) -> Command {
    let mut command = netping();
    command
        .args(["serve", "--die-with-parent", kind])
        .args(SERVING)
        .args(flags);
    command
}

/// Kills the server while a client measures it; returns the result of the client, which must fail.
pub fn killed_in_mid_run(mut server: Server, client: &[&str]) -> Value {
    let client = spawn(client);
    server.await_requests();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let output = client.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{}: {text}", server.url);
    parse(&stdout(&output))
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

/// Reads a result, which must match the committed schema and add up.
pub fn parse(json: &str) -> Value {
    let run: Value = serde_json::from_str(json).unwrap();
    let wrong: Vec<String> = SCHEMA
        .iter_errors(&run)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    for step in run["steps"].as_array().unwrap() {
        let summary = &step;
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
        let text = step["histograms"]["service_time"].as_str().unwrap();
        let histogram = netping_measure::counts::Counts::try_from(text.to_owned()).unwrap();
        assert_eq!(histogram.len(), count("ok"));
    }
    run
}

/// Reads a result file.
pub fn load(path: &Path) -> Value {
    parse(&std::fs::read_to_string(path).unwrap())
}
