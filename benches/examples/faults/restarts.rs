//! Servers that are killed, stopped, restarted and ended under load: the client's accounts.

use std::time::Duration;

use netping_benches::processes::{Client, Said, Server, wait};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{Fault, Kind, Outcome};

pub const FAULTS: [Fault; 4] = [
    Fault {
        what: "kill -9 in mid-run",
        promised: "accounts add up, exit code 1, SERVER_GONE",
        servers: |_| true,
        try_it: killed,
    },
    Fault {
        what: "stopped for 0.7 s",
        promised: "accounts add up, none fails, seen in the longest time",
        servers: |_| true,
        try_it: stopped,
    },
    Fault {
        what: "kill -9 and restart",
        promised: "accounts add up, served again within 1 s",
        servers: |_| true,
        try_it: restarted,
    },
    Fault {
        what: "SIGTERM under load",
        promised: "accounts add up, drained with 0 within 7 s",
        servers: |_| true,
        try_it: ended,
    },
];

/// Starts a client of four callers for so many seconds.
fn load(server: &Server, kind: &Kind, time: &str) -> Client {
    let run = [
        "throughput",
        &server.url,
        "-c",
        "4",
        "-d",
        time,
        "--warmup",
        "0s",
    ];
    let limits = ["--timeout", "2s", "--workers", "1"];
    let client = [&run[..], &limits, &server.metrics(), &kind.client()].concat();
    let client = Client::start(&client);
    let before = server.requests();
    while server.requests() < before + 200 {
        wait(Duration::from_millis(5));
    }
    client
}

/// Returns the accounts of a client in words, and whether they add up.
pub fn accounts(said: &Said) -> (String, bool) {
    let step = said.step();
    let count = |name: &str| step[name].as_u64().unwrap_or_default();
    let errors = step["errors"].as_object();
    let failed: u64 = errors
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| Value::as_u64(count))
        .sum();
    let (scheduled, ok) = (count("scheduled"), count("ok"));
    let rest = count("in_flight") + count("not_sent");
    let adds_up = scheduled > 0 && scheduled == ok + failed + rest;
    (
        format!("{ok} ok + {failed} failed + {rest} open of {scheduled}"),
        adds_up,
    )
}

fn killed(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let client = load(&server, kind, "3s");
    // Long enough for a rate that then breaks off.
    wait(Duration::from_secs(1));
    server.process.signal(Signal::SIGKILL);
    let said = client.finish();
    let (came, adds_up) = accounts(&said);
    let code = said.output.status.code();
    let is_told = said.warnings().contains(&"SERVER_GONE");
    Outcome {
        came: format!("{came}; exit {code:?}, {}", said.warnings().join(" ")),
        kept: adds_up && code == Some(1) && is_told,
    }
}

fn stopped(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let client = load(&server, kind, "3s");
    server.process.signal(Signal::SIGSTOP);
    wait(Duration::from_millis(700));
    server.process.signal(Signal::SIGCONT);
    let said = client.finish();
    let (came, adds_up) = accounts(&said);
    let none_failed = said.output.status.code() == Some(0);
    let longest = said.longest();
    Outcome {
        came: format!("{came}; longest {longest:.2} s"),
        kept: adds_up && none_failed && longest >= 0.69,
    }
}

fn restarted(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let (address, metrics) = (
        server.address().to_owned(),
        server.metrics_address().to_owned(),
    );
    let client = load(&server, kind, "4s");
    server.process.signal(Signal::SIGKILL);
    drop(server);
    let server = Server::start_at([&address, &metrics], kind.server, &kind.all(&[]));
    let mut waited = 0;
    while server.metric("netping_requests_total").unwrap_or(0.0) < 100.0 && waited < 400 {
        wait(Duration::from_millis(10));
        waited += 1;
    }
    let said = client.finish();
    let (came, adds_up) = accounts(&said);
    Outcome {
        came: format!(
            "{came}; served again after {:.2} s",
            f64::from(waited) / 100.0
        ),
        kept: adds_up && waited <= 100,
    }
}

fn ended(kind: &Kind) -> Outcome {
    let mut server = kind.start(&[]);
    let client = load(&server, kind, "2s");
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(Duration::from_secs(7));
    let said = client.finish();
    let (came, adds_up) = accounts(&said);
    Outcome {
        came: format!("{came}; server's exit code {code:?}"),
        kept: adds_up && code == Some(0),
    }
}
