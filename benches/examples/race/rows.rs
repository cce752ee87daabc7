//! The rows of the table.

#![expect(
    clippy::unnecessary_wraps,
    reason = "some rows need no peer, and are set up as the others are"
)]

use std::{fs, rc::Rc, time::Duration};

use netping_benches::processes::{CLIENT, Client, SERVER, Said, Server, netping, wait};
use netping_system::process::Usage;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Race,
    contest::{Contest, Side},
    itself,
    peers::{self, Peer, h2load, is_installed, nginx, wrk},
};

/// One row.
pub struct Row {
    pub name: &'static str,
    pub what: &'static str,
    /// Starts what it needs; `None` if a peer is missing.
    pub set_up: fn(&Race) -> Option<Contest>,
}

const PER_SECOND: &str = "requests/s";

/// Connections and streams of each in the shapes of gRPC's rows.
const SHAPES: [[usize; 2]; 3] = [[16, 16], [1, 64], [128, 1]];

const fn row(name: &'static str, what: &'static str, set_up: fn(&Race) -> Option<Contest>) -> Row {
    Row { name, what, set_up }
}

pub const ROWS: [Row; 23] = [
    row(
        "tcp-client",
        "TCP client, 128 callers, and a Go client on the same server",
        tcp_client,
    ),
    row(
        "tcp-client-cpu",
        "user CPU of that client for each request",
        tcp_client_cpu,
    ),
    row(
        "grpc-server-16x16",
        "gRPC server and grpc-go's (GOMAXPROCS=1), by h2load",
        |race| grpc_server(race, SHAPES[0]),
    ),
    row(
        "grpc-server-1x64",
        "the same, 1 connection of 64 streams",
        |race| grpc_server(race, SHAPES[1]),
    ),
    row(
        "grpc-server-128x1",
        "the same, 128 connections of 1 stream",
        |race| grpc_server(race, SHAPES[2]),
    ),
    row(
        "grpc-client-16x16",
        "gRPC client and h2load on netping's server",
        |race| grpc_client(race, SHAPES[0]),
    ),
    row(
        "grpc-client-1x64",
        "the same, 1 connection of 64 streams",
        |race| grpc_client(race, SHAPES[1]),
    ),
    row(
        "grpc-client-128x1",
        "the same, 128 connections of 1 stream",
        |race| grpc_client(race, SHAPES[2]),
    ),
    row(
        "http-client",
        "HTTP/1.1 client and wrk on nginx: 100 bytes, 64 connections",
        http_client,
    ),
    row("bulk-grpc", "bulk gRPC and iperf3 -R", |race| {
        bulk(race, "grpc")
    }),
    row("bulk-tcp", "bulk TCP and iperf3 -R", |race| {
        bulk(race, "tokio")
    }),
    row(
        "bulk-quic",
        "bulk QUIC and a pair of nothing but quinn",
        bulk_quic,
    ),
    row(
        "secure-tls",
        "581 bytes, 64 callers on 64 connections: TLS and plain TCP",
        |race| secure(race, "tokio", "tcp+tls"),
    ),
    row(
        "secure-psk",
        "the same: pre-shared key and plain TCP",
        |race| secure(race, "tokio", "tcp+psk"),
    ),
    row(
        "secure-quic",
        "the same: QUIC, a stream for each caller, and plain TCP",
        |race| secure(race, "quic", "quic"),
    ),
    row(
        "callers-4096",
        "TCP with 4,096 callers and with 64",
        |race| callers(race, 4096),
    ),
    row(
        "callers-8192",
        "TCP with 8,192 callers and with 64",
        |race| callers(race, 8192),
    ),
    row(
        "memory",
        "tokio server's memory for each of 8,192 TCP connections",
        memory,
    ),
    row(
        "threads",
        "threads server and a bare loop of std, 512 connections",
        threads,
    ),
    row(
        "busy-poll",
        "p50 of one flow, both ends with --busy-poll",
        busy_poll,
    ),
    row("start-lag", "p99 of the start lag at 1,000/s", start_lag),
    row(
        "proxy-small",
        "netping-proxy and HAProxy: CPU for each request of 4 bytes",
        |race| proxy(race, "4"),
    ),
    row("proxy-10k", "the same, of 10,000 bytes", |race| {
        proxy(race, "10000")
    }),
];

/// Returns the flags of a run on one worker that lasts as long as the race wants.
fn timed(race: &Race) -> Vec<String> {
    let time = format!("{}ms", race.seconds * 1e3);
    [
        "-d",
        &time,
        "--warmup",
        "200ms",
        "--workers",
        "1",
        "--no-first-call",
        "--server-metrics",
        "off",
    ]
    .map(str::to_owned)
    .into()
}

/// Runs `netping throughput` on a target.
fn throughput(race: &Race, url: &str, flags: &[&str]) -> Said {
    let timed = timed(race);
    let timed: Vec<_> = timed.iter().map(String::as_str).collect();
    netping(&[&["throughput", url], flags, &timed[..]].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Returns the side that measures a target's rate.
fn rate(race: &Race, url: String, flags: &'static [&'static str]) -> Side {
    let race = race.clone();
    Box::new(move || number(&throughput(&race, &url, flags).step()["rate_per_s"]))
}

/// Starts a server of one worker.
fn server(name: &str, flags: &[&str]) -> Rc<Server> {
    let own = match name {
        "threads" => &[][..],
        _ => &["--workers", "1"],
    };
    Rc::new(Server::start(name, &[own, flags].concat()))
}

/// Keeps a server for as long as a side needs it.
fn with<S: 'static>(server: &Rc<S>, mut side: Side) -> Side {
    let server = Rc::clone(server);
    Box::new(move || {
        let _server = &server;
        side()
    })
}

fn tcp_client(race: &Race) -> Option<Contest> {
    let program = peers::of_folder(race.peers.as_deref(), "tcp-client")?;
    let server = server("tokio", &[]);
    let (address, seconds) = (server.address().to_owned(), race.seconds.to_string());
    let ours = rate(race, server.url.clone(), &["-c", "128"]);
    let theirs = move || {
        let said = peers::run(CLIENT, &program, &[&address, "128", &seconds]);
        said.trim().parse().unwrap_or(f64::NAN)
    };
    Some(Contest::of(
        with(&server, ours),
        Box::new(theirs),
        PER_SECOND,
    ))
}

/// Returns the user CPU time of a process, in seconds: field 14 of its `stat`, proc(5).
fn user_time(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().nth(11);
    let ticks = ticks.and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(f64::NAN) / USER_HZ
}

/// The kernel's unit of processes' times, for each second: the same on all machines that netping
/// runs on.
const USER_HZ: f64 = 100.0;

fn tcp_client_cpu(race: &Race) -> Option<Contest> {
    let server = server("tokio", &[]);
    let length = format!("{}ms", race.seconds * 1e3 + 1e3);
    let seconds = race.seconds;
    let side = move || {
        let client = Client::start(&[
            "throughput",
            &server.url,
            "-c",
            "128",
            "-d",
            &length,
            "--warmup",
            "0s",
            "--workers",
            "1",
            "--no-first-call",
            "--server-metrics",
            "off",
        ]);
        // Neither its start nor its end.
        wait(Duration::from_millis(500));
        let before = user_time(client.id());
        wait(Duration::from_secs_f64(seconds));
        let spent = user_time(client.id()) - before;
        let said = client.finish();
        spent / seconds / number(&said.step()["rate_per_s"]) * 1e6
    };
    Some(Contest::alone(Box::new(side), "us"))
}

fn grpc_server(race: &Race, shape: [usize; 2]) -> Option<Contest> {
    let program = peers::of_folder(race.peers.as_deref(), "grpc-server")?;
    if !is_installed("h2load") {
        return None;
    }
    let ours = server("grpc", &[]);
    let theirs = Peer::start(SERVER, &program, |address, _| vec![address.to_owned()])?;
    let seconds = race.seconds;
    Some(Contest::of(
        Box::new(move || h2load(CLIENT, ours.address(), shape, seconds)),
        Box::new(move || h2load(CLIENT, &theirs.address, shape, seconds)),
        PER_SECOND,
    ))
}

fn grpc_client(race: &Race, shape: [usize; 2]) -> Option<Contest> {
    if !is_installed("h2load") {
        return None;
    }
    let server = server("grpc", &[]);
    let (race, seconds) = (race.clone(), race.seconds);
    let ours = {
        let server = Rc::clone(&server);
        let [connections, streams] = shape;
        let [callers, connections] = [connections * streams, connections].map(|n| n.to_string());
        move || {
            let flags = ["-c", &callers, "--connections", &connections];
            number(&throughput(&race, &server.url, &flags).step()["rate_per_s"])
        }
    };
    let theirs = move || h2load(CLIENT, server.address(), shape, seconds);
    Some(Contest::of(Box::new(ours), Box::new(theirs), PER_SECOND))
}

fn http_client(race: &Race) -> Option<Contest> {
    if !is_installed("nginx") || !is_installed("wrk") {
        return None;
    }
    let server = Rc::new(nginx(SERVER, 100)?);
    let url = format!("http://{}/", server.address);
    let ours = rate(race, url, &["-c", "64"]);
    let ours = with(&server, ours);
    let seconds = race.seconds;
    let theirs = move || wrk(CLIENT, &server.address, 64, seconds);
    Some(Contest::of(ours, Box::new(theirs), PER_SECOND))
}

/// Returns the side that measures a server's bulk rate, in GiB/s.
fn bulk_rate(server: Rc<Server>, flags: &'static [&'static str]) -> Side {
    Box::new(move || {
        let fixed = [
            "bulk",
            &server.url,
            "--size",
            "2GiB",
            "--runs",
            "1",
            "--server-metrics",
            "off",
        ];
        let said = netping(&[&fixed, flags].concat());
        number(&said.run["steps"][0]["bulk"]["gib_per_second"])
    })
}

fn bulk(race: &Race, name: &str) -> Option<Contest> {
    if !is_installed("iperf3") {
        return None;
    }
    let ours = bulk_rate(server(name, &[]), &[]);
    let (theirs, seconds) = (peers::iperf3(SERVER)?, race.seconds);
    let theirs = move || peers::iperf3_rate(CLIENT, &theirs, seconds);
    Some(Contest::of(ours, Box::new(theirs), "GiB/s"))
}

fn bulk_quic(_: &Race) -> Option<Contest> {
    let server = server("quic", &["--tls-self-signed"]);
    let ours = bulk_rate(server, &["--tls-insecure"]);
    let program = itself::program()?;
    let bare = Peer::start(SERVER, &program, |address, _| {
        vec![itself::QUIC_SERVER.to_owned(), address.to_owned()]
    })?;
    let theirs = move || {
        let said = peers::run(CLIENT, &program, &[itself::QUIC_CLIENT, &bare.address]);
        said.trim().parse().unwrap_or(f64::NAN)
    };
    Some(Contest::of(ours, Box::new(theirs), "GiB/s"))
}

fn secure(race: &Race, name: &str, scheme: &str) -> Option<Contest> {
    const LOAD: [&str; 6] = ["-c", "64", "--payload", "581", "--connections", "64"];
    let files = TempDir::new().ok()?;
    let key = files.path().join("key").to_string_lossy().into_owned();
    let (of_server, of_client) = match scheme {
        "tcp+psk" => {
            itself::make_key(&key);
            (vec!["--psk-file", &key], vec!["--psk-file", &key])
        }
        _ => (vec!["--tls-self-signed"], vec!["--tls-insecure"]),
    };
    let (plain, secured) = (server("tokio", &[]), server(name, &of_server));
    let of_client: Vec<String> = of_client.into_iter().map(str::to_owned).collect();
    let (race, again) = (race.clone(), race.clone());
    let ours = move || {
        let _files = &files;
        let of_client: Vec<_> = of_client.iter().map(String::as_str).collect();
        let flags = [&LOAD[..], &of_client].concat();
        number(&throughput(&race, &secured.url, &flags).step()["rate_per_s"])
    };
    let theirs = move || number(&throughput(&again, &plain.url, &LOAD).step()["rate_per_s"]);
    Some(Contest::of(Box::new(ours), Box::new(theirs), PER_SECOND))
}

fn callers(race: &Race, callers: usize) -> Option<Contest> {
    let server = server("tokio", &[]);
    let many = {
        let (race, server, callers) = (race.clone(), Rc::clone(&server), callers.to_string());
        move || number(&throughput(&race, &server.url, &["-c", &callers]).step()["rate_per_s"])
    };
    let few = with(&server, rate(race, server.url.clone(), &["-c", "64"]));
    Some(Contest::of(Box::new(many), few, PER_SECOND))
}

fn memory(race: &Race) -> Option<Contest> {
    const CONNECTIONS: f64 = 8192.0;
    let length = format!("{}ms", race.seconds * 1e3 + 1e3);
    let side = move || {
        let server = server("tokio", &[]);
        let resident = || {
            let usage = Usage::of(server.process.id());
            usage.map_or(f64::NAN, |usage| usage.resident_bytes as f64)
        };
        let before = resident();
        let client = Client::start(&[
            "throughput",
            &server.url,
            "-c",
            "8192",
            "-d",
            &length,
            "--warmup",
            "0s",
            "--no-first-call",
            "--server-metrics",
            "off",
        ]);
        while server.metric("netping_connections").unwrap_or_default() < CONNECTIONS {
            wait(Duration::from_millis(20));
        }
        wait(Duration::from_secs(1));
        let held = resident() - before;
        client.finish();
        held / CONNECTIONS / 1024.0
    };
    Some(Contest::alone(Box::new(side), "KiB"))
}

fn threads(race: &Race) -> Option<Contest> {
    let server = server("threads", &[]);
    let program = itself::program()?;
    let bare = Peer::start(SERVER, &program, |address, _| {
        vec![itself::BARE.to_owned(), address.to_owned()]
    });
    let bare = Rc::new(bare?);
    let ours = with(&server, rate(race, server.url.clone(), &["-c", "512"]));
    let theirs = rate(race, format!("tcp://{}", bare.address), &["-c", "512"]);
    Some(Contest::of(ours, with(&bare, theirs), PER_SECOND))
}

fn busy_poll(race: &Race) -> Option<Contest> {
    let server = server("tokio", &["--busy-poll"]);
    let race = race.clone();
    let side = move || {
        let said = throughput(&race, &server.url, &["-c", "1", "--busy-poll"]);
        number(&said.step()["response_time"]["p50_ns"]) / 1e3
    };
    Some(Contest::alone(Box::new(side), "us"))
}

fn start_lag(race: &Race) -> Option<Contest> {
    let server = server("tokio", &[]);
    let race = race.clone();
    let side = move || {
        let said = throughput(&race, &server.url, &["-c", "16", "--rate", "1k"]);
        number(&said.step()["lag"]["p99_ns"]) / 1e3
    };
    Some(Contest::alone(Box::new(side), "us"))
}

fn proxy(race: &Race, bytes: &'static str) -> Option<Contest> {
    if !is_installed("haproxy") {
        return None;
    }
    let server = server("tokio", &[]);
    let program = itself::program()?;
    let own = Peer::start(SERVER, &program, |address, _| {
        let to = server.address();
        [
            itself::PROXY,
            "--listen",
            address,
            "--metrics",
            "off",
            "--to",
            to,
            "--workers",
            "1",
        ]
        .map(str::to_owned)
        .into()
    })?;
    let cost = |relay: Peer| -> Side {
        let (race, server) = (race.clone(), Rc::clone(&server));
        Box::new(move || {
            let _server = &server;
            let spent = || Usage::of(relay.id()).map_or(f64::NAN, |usage| usage.cpu_seconds);
            let before = spent();
            let url = format!("tcp://{}", relay.address);
            let flags = ["-c", "64", "--rate", "5k", "--payload", bytes];
            let said = throughput(&race, &url, &flags);
            let step = said.step();
            (spent() - before) / (number(&step["ok"]) + number(&step["outside_ok"])) * 1e6
        })
    };
    let theirs = peers::haproxy(SERVER, server.address())?;
    Some(Contest::of(cost(own), cost(theirs), "us"))
}
