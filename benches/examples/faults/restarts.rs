//! Clients that end, and servers that are killed, stopped, restarted and ended under load: the client's accounts.

use std::{fs, time::Duration};

use netping_benches::processes::{Client, Said, Server, time_of_day, wait};
use nix::sys::signal::Signal;

use crate::{Fault, Kind, Outcome, peer::PATIENCE, serves};

pub const FAULTS: [Fault; 7] = [
    Fault {
        what: "a client that has ended",
        promised: "no connection left within 2 s",
        servers: Kind::is_server,
        try_it: ended_client,
    },
    Fault {
        what: "kill -9 in mid-run",
        promised: "accounts add up, exit code 1, SERVER_GONE",
        servers: Kind::is_server,
        try_it: killed,
    },
    Fault {
        what: "stopped for 0.7 s",
        promised: "accounts add up, none fails, seen in the longest time",
        servers: Kind::is_server,
        try_it: stopped,
    },
    Fault {
        what: "kill -9 and restart",
        promised: "accounts add up, served again within 1 s",
        servers: Kind::is_server,
        try_it: restarted,
    },
    Fault {
        what: "SIGTERM under load",
        promised: "accounts add up, gRPC: none lost, others: at most one on each connection, ended with 0 within 6 s",
        servers: Kind::is_server,
        try_it: ended,
    },
    Fault {
        what: "a request in work, SIGTERM",
        promised: "answered, ended with 0 within 6 s",
        servers: Kind::is_server,
        try_it: in_work,
    },
    Fault {
        what: "a request with 30 s of work, SIGTERM, --drain-timeout 1s",
        promised: "ended after 1 to 2 s",
        servers: Kind::is_server,
        try_it: busy,
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

/// The accounts of a client.
pub struct Accounts {
    scheduled: u64,
    ok: u64,
    /// The failures by their kinds.
    errors: Vec<(String, u64)>,
    /// Requests that were open at the end.
    pub open: u64,
}

impl Accounts {
    pub fn of(said: &Said) -> Self {
        let step = said.step();
        let count = |name: &str| step[name].as_u64().unwrap_or_default();
        let errors = step["errors"].as_object().into_iter().flatten();
        Self {
            scheduled: count("scheduled"),
            ok: count("ok"),
            errors: errors
                .map(|(kind, count)| (kind.clone(), count.as_u64().unwrap_or_default()))
                .collect(),
            open: count("in_flight") + count("not_sent"),
        }
    }

    pub fn failed(&self) -> u64 {
        self.errors.iter().map(|(_, count)| count).sum()
    }

    /// Returns the failures of these kinds.
    fn failed_by(&self, kinds: &[&str]) -> u64 {
        let own = self.errors.iter();
        let own = own.filter(|(kind, _)| kinds.contains(&kind.as_str()));
        own.map(|(_, count)| count).sum()
    }

    pub fn add_up(&self) -> bool {
        self.scheduled > 0 && self.scheduled == self.ok + self.failed() + self.open
    }

    pub fn words(&self) -> String {
        let Self {
            scheduled,
            ok,
            errors,
            open,
        } = self;
        let kinds = errors.iter().map(|(kind, count)| format!("{count} {kind}"));
        let failed = match &kinds.collect::<Vec<_>>()[..] {
            [] => "0 failed".to_owned(),
            kinds => format!("{} failed ({})", self.failed(), kinds.join(", ")),
        };
        format!("{ok} ok + {failed} + {open} open of {scheduled}")
    }

    /// Judges whether they add up.
    pub fn outcome(&self) -> Outcome {
        Outcome::new(self.add_up(), self.words())
    }
}

fn ended_client(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let honest = serves(&server, kind);
    let left = connections_left(&server);
    Outcome::new(honest && left == 0.0, format!("{left} connections left"))
}

/// Waits until a server has no connection, for at most two seconds; returns the number.
pub fn connections_left(server: &Server) -> f64 {
    let open = || server.metric("netping_connections").unwrap_or(f64::NAN);
    for _ in 0..100 {
        if open() == 0.0 {
            break;
        }
        wait(Duration::from_millis(20));
    }
    open()
}

fn killed(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let client = load(&server, kind, "3s");
    // Long enough for a rate that then breaks off.
    wait(Duration::from_secs(1));
    server.process.signal(Signal::SIGKILL);
    let said = client.finish();
    let code = said.output.status.code();
    let is_told = said.warnings().contains(&"SERVER_GONE");
    let came = format!("exit {code:?}, {}", said.warnings().join(" "));
    Accounts::of(&said)
        .outcome()
        .and(code == Some(1) && is_told, &came)
}

fn stopped(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let client = load(&server, kind, "3s");
    server.process.signal(Signal::SIGSTOP);
    wait(Duration::from_millis(700));
    server.process.signal(Signal::SIGCONT);
    let said = client.finish();
    let none_failed = said.output.status.code() == Some(0);
    let longest = said.longest();
    let came = format!("longest {longest:.2} s");
    Accounts::of(&said)
        .outcome()
        .and(none_failed && longest >= 0.65, &came)
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
    let came = format!("served again after {:.2} s", f64::from(waited) / 100.0);
    Accounts::of(&said).outcome().and(waited <= 100, &came)
}

/// Kinds of failures of requests that have not left the client, since the server was gone; and of those that
/// crossed the server's end of the connection.
const NOT_SENT: [&str; 2] = ["refused", "connect_timeout"];
const CROSSED: [&str; 2] = ["eof", "reset"];

/// Connections of the load.
const CONNECTIONS: u64 = 4;

/// Ends a server under load. HTTP/2 has a goodbye, and loses no request. On each connection of the others, the
/// next request may cross the server's end of the connection.
fn ended(kind: &Kind) -> Outcome {
    let mut server = kind.start(&[]);
    let client = load(&server, kind, "2s");
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(Duration::from_secs(6));
    let accounts = Accounts::of(&client.finish());
    let crossed = accounts.failed_by(&CROSSED);
    let lost = accounts.failed() - crossed - accounts.failed_by(&NOT_SENT);
    let most = if kind.is_grpc() { 0 } else { CONNECTIONS };
    let came = format!("{crossed} crossed the end, {lost} lost; exit code {code:?}");
    accounts
        .outcome()
        .and(lost == 0 && crossed <= most && code == Some(0), &came)
}

/// Waits until no thread of these processes runs or waits for a CPU: what is between them then waits for a clock. It
/// gives up after ten seconds.
fn sleep_both(processes: [u32; 2]) {
    let mut looks = 0;
    for _ in 0..500 {
        looks = if processes.into_iter().all(is_asleep) {
            looks + 1
        } else {
            0
        };
        if looks == 3 {
            return;
        }
        wait(Duration::from_millis(20));
    }
}

/// Returns true if every thread of a process sleeps: its state in proc(5).
fn is_asleep(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name of the thread before it may contain anything.
        let state = stat.rsplit(") ").next();
        state.is_some_and(|state| state.starts_with('S'))
    })
}

/// Starts a client of one request.
fn one_request(server: &Server, kind: &Kind) -> Client {
    let run = [
        "latency",
        &server.url,
        "-n",
        "1",
        "--warmup",
        "0s",
        "--no-first-call",
    ];
    Client::start(&[&run[..], &server.metrics(), &kind.client()].concat())
}

/// Ends a server that has a request in work.
fn in_work(kind: &Kind) -> Outcome {
    let mut server = kind.start(&["--delay", "1s"]);
    let client = one_request(&server, kind);
    while server.metric("netping_connections") != Some(1.0) {
        wait(Duration::from_millis(5));
    }
    // The request follows the handshake.
    sleep_both([server.process.id(), client.id()]);
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(Duration::from_secs(6));
    let accounts = Accounts::of(&client.finish());
    let came = format!("exit code {code:?}");
    let kept = accounts.ok == 1 && accounts.failed() == 0 && code == Some(0);
    accounts.outcome().and(kept, &came)
}

/// Ends a server whose only worker is busy: nothing on that thread can end the process.
fn busy(kind: &Kind) -> Outcome {
    let one: &[&str] = if kind.server == "threads" {
        &[]
    } else {
        &["--workers", "1"]
    };
    let flags = ["--work", "30s", "--drain-timeout", "1s"];
    let mut server = kind.start(&[&flags, one].concat());
    let client = one_request(&server, kind);
    let used = || server.metric("process_cpu_seconds_total").unwrap_or(0.0);
    let before = used();
    while used() < before + 0.2 {
        wait(Duration::from_millis(5));
    }
    let begun = time_of_day();
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(PATIENCE);
    let took = time_of_day() - begun;
    client.finish();
    // A drain that cannot end has the exit code 1.
    let is_over = matches!(code, Some(0 | 1)) && (0.95..=2.0).contains(&took);
    Outcome::new(is_over, format!("exit code {code:?} after {took:.1} s"))
}
