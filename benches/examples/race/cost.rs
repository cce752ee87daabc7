//! CPU time for each request: it tells clients apart on a server that is the limit of them all.

#![expect(
    clippy::unnecessary_wraps,
    reason = "some rows need no peer, and are set up as the others are"
)]

use std::rc::Rc;

use netping_benches::processes::{CLIENT, Server, netping};
use netping_system::process::Usage;
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};

use crate::{
    Race,
    contest::{Contest, Side},
    itself,
    peers::{self, Peer, h2load_calls, is_installed, wrk},
    rows::{number, server},
};

const MICROSECONDS: &str = "us";

/// Requests for each second that a measurement is meant to take.
const PER_SECOND: f64 = 200_000.0;

/// Fewest requests of a measurement, whatever its time: a client's start and end take 20 to 40 ms of CPU time, a
/// tenth of what 300,000 gRPC requests take.
const FEWEST: f64 = 1_000_000.0;

/// Returns the number of requests of a measurement.
fn requests(race: &Race) -> u64 {
    (race.seconds * PER_SECOND).max(FEWEST) as u64
}

/// Returns the CPU time of programs that this one has run to their end, in seconds.
fn spent_by_children() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return f64::NAN;
    };
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Returns the side that measures the CPU time of a client for each of its requests, in microseconds; `run` runs it
/// to its end, and returns their number.
fn of_client(mut run: impl FnMut() -> f64 + 'static) -> Side {
    Box::new(move || {
        let before = spent_by_children();
        let requests = run();
        (spent_by_children() - before) / requests * 1e6
    })
}

/// Returns the contest of two clients by the CPU time of each for a request.
fn of_clients(
    ours: impl FnMut() -> f64 + 'static,
    theirs: impl FnMut() -> f64 + 'static,
) -> Contest {
    Contest::of(of_client(ours), of_client(theirs), MICROSECONDS)
}

/// Returns the client of netping's that sends a fixed number of requests, and returns those that succeeded.
fn client(race: &Race, url: &str, flags: &[&str]) -> impl FnMut() -> f64 + 'static {
    let requests = requests(race).to_string();
    let fixed = [
        "throughput",
        url,
        "--requests",
        &requests,
        "--warmup",
        "0s",
        "--workers",
        "1",
        "--no-first-call",
        "--server-metrics",
        "off",
    ];
    let line = [&fixed, flags].concat();
    let line: Vec<String> = line.into_iter().map(str::to_owned).collect();
    move || {
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        number(&netping(&line).step()["ok"])
    }
}

/// Returns the flags for so many connections with so many callers each.
fn shaped([connections, streams]: [usize; 2]) -> [String; 4] {
    let callers = connections * streams;
    [
        "-c".to_owned(),
        callers.to_string(),
        "--connections".to_owned(),
        connections.to_string(),
    ]
}

pub fn tcp_client(race: &Race) -> Option<Contest> {
    let server = server("tokio", &[]);
    let ours = client(race, &server.url, &["-c", "128"]);
    let mut loops = bare_loop(race, itself::TCP_CLIENT, server.address(), "128")?;
    let theirs = move || {
        let _server = &server;
        loops()
    };
    Some(of_clients(ours, theirs))
}

/// Returns a client of nothing but tokio that sends a fixed number of requests, and returns it.
fn bare_loop(
    race: &Race,
    name: &'static str,
    address: &str,
    connections: &'static str,
) -> Option<impl FnMut() -> f64 + 'static> {
    let program = itself::program()?;
    let (address, requests) = (address.to_owned(), requests(race).to_string());
    Some(move || {
        let flags = [name, &address, connections, &requests];
        let said = peers::run(CLIENT, &program, &flags);
        said.trim().parse().unwrap_or(f64::NAN)
    })
}

pub fn http_loop(race: &Race, server: Peer) -> Option<Contest> {
    let ours = client(race, &format!("http://{}/", server.address), &["-c", "64"]);
    let mut loops = bare_loop(race, itself::HTTP_CLIENT, &server.address, "64")?;
    let theirs = move || {
        let _server = &server;
        loops()
    };
    Some(of_clients(ours, theirs))
}

/// Flags of a server, and of netping's client.
type Flags = [&'static [&'static str]; 2];

pub const PLAIN: Flags = [&[], &[]];
pub const SECURED: Flags = [&["--tls-self-signed"], &["--tls-insecure"]];
/// netping's requests are messages on open streams.
pub const MESSAGES: Flags = [&[], &["--per-message"]];

pub fn grpc_client(race: &Race, shape: [usize; 2], flags: Flags) -> Option<Contest> {
    if !is_installed("h2load") {
        return None;
    }
    let [of_server, of_ours] = flags;
    let server = server("grpc", of_server);
    let scheme = if flags == SECURED { "https" } else { "http" };
    let (url, requests) = (format!("{scheme}://{}", server.address()), requests(race));
    let shaped = shaped(shape);
    let shaped: Vec<&str> = shaped.iter().map(String::as_str).collect();
    let ours = client(race, &server.url, &[&shaped, of_ours].concat());
    let theirs = move || {
        let _server = &server;
        h2load_calls(CLIENT, &url, shape, requests)
    };
    Some(of_clients(ours, theirs))
}

/// Compares requests of netping's client to a path of its gRPC server, with these flags, with calls of the echo.
pub fn beside_echo(race: &Race, path: &str, flags: &[&str]) -> Option<Contest> {
    let server = server("grpc", &[]);
    let load = ["-c", "256", "--connections", "16"];
    let url = format!("{}{path}", server.url);
    let ours = client(race, &url, &[&load, flags].concat());
    let mut echo = client(race, &server.url, &load);
    let theirs = move || {
        let _server = &server;
        echo()
    };
    Some(of_clients(ours, theirs))
}

/// Returns the CPU time of a process, in seconds.
fn spent_by(process: u32) -> f64 {
    Usage::of(process).map_or(f64::NAN, |usage| usage.cpu_seconds)
}

pub fn grpc_cores(race: &Race, shape: [usize; 2]) -> Option<Contest> {
    let server = server("grpc", &[]);
    let shaped = shaped(shape);
    let shaped: Vec<&str> = shaped.iter().map(String::as_str).collect();
    let mut client = client(race, &server.url, &shaped);
    let side = move || {
        let before = [spent_by(server.process.id()), spent_by_children()];
        client();
        let [server, client] = [
            spent_by(server.process.id()) - before[0],
            spent_by_children() - before[1],
        ];
        server / client
    };
    Some(Contest::alone(Box::new(side), "cores"))
}

pub fn grpc_server(race: &Race) -> Option<Contest> {
    let of = |race: &Race, url: &str, process: u32| -> Side {
        let mut client = client(race, url, &["-c", "256", "--connections", "16"]);
        Box::new(move || {
            let before = spent_by(process);
            let requests = client();
            (spent_by(process) - before) / requests * 1e6
        })
    };
    let (server, bare): (Rc<Server>, Peer) =
        (server("grpc", &[]), itself::peer(itself::TONIC_SERVER)?);
    let ours = of(race, &server.url, server.process.id());
    let mut theirs = of(race, &format!("grpc://{}", bare.address), bare.id());
    let theirs = move || {
        let _servers = (&server, &bare);
        theirs()
    };
    Some(Contest::of(ours, Box::new(theirs), MICROSECONDS))
}

pub fn http_client(race: &Race, server: Peer) -> Option<Contest> {
    if !is_installed("wrk") {
        return None;
    }
    let seconds = race.seconds;
    let ours = client(race, &format!("http://{}/", server.address), &["-c", "64"]);
    let theirs = move || wrk(CLIENT, &server.address, 64, seconds);
    Some(of_clients(ours, theirs))
}
