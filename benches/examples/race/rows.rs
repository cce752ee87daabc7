//! The rows of the table.

#![expect(
    clippy::unnecessary_wraps,
    reason = "some rows need no peer, and are set up as the others are"
)]

use std::{rc::Rc, time::Duration};

use netping_benches::processes::{CLIENT, Client, SERVER, Said, Server, netping, wait};
use netping_system::process::Usage;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Race,
    contest::{Contest, Side},
    cost::{self, MESSAGES, PLAIN, SECURED},
    itself,
    peers::{self, Peer, h2load, is_installed, nginx},
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

pub const ROWS: [Row; 32] = [
    row(
        "tcp-client",
        "CPU of the TCP client for each request, and of a bare loop on tokio: 128 connections",
        cost::tcp_client,
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
        "CPU of the gRPC client for each request, and of h2load, on netping's server",
        |race| cost::grpc_client(race, SHAPES[0], PLAIN),
    ),
    row(
        "grpc-client-1x64",
        "the same, 1 connection of 64 streams",
        |race| cost::grpc_client(race, SHAPES[1], PLAIN),
    ),
    row(
        "grpc-client-128x1",
        "the same, 128 connections of 1 stream",
        |race| cost::grpc_client(race, SHAPES[2], PLAIN),
    ),
    row(
        "grpc-client-tls",
        "the same over TLS, 16 connections of 16 streams",
        |race| cost::grpc_client(race, SHAPES[0], SECURED),
    ),
    row(
        "grpc-methods",
        "CPU of the gRPC client for each call of a method with JSON data, and for each echo",
        |race| {
            let data = ["--data", r#"{"input": "ping"}"#];
            cost::beside_echo(race, "/echopb.Echo/Echo", &data)
        },
    ),
    row(
        "grpc-messages",
        "CPU of the gRPC client for each message on open streams, and for each call: 16 connections of 16 streams",
        |race| cost::beside_echo(race, "", &["--per-message"]),
    ),
    row(
        "grpc-messages-h2load",
        "the same, and of h2load for each call",
        |race| cost::grpc_client(race, SHAPES[0], MESSAGES),
    ),
    row(
        "grpc-cores-16x16",
        "CPU of netping's gRPC server over that of its client: the server cores that one client core saturates",
        |race| cost::grpc_cores(race, SHAPES[0]),
    ),
    row(
        "grpc-cores-1x64",
        "the same, 1 connection of 64 streams",
        |race| cost::grpc_cores(race, SHAPES[1]),
    ),
    row(
        "grpc-cores-128x1",
        "the same, 128 connections of 1 stream",
        |race| cost::grpc_cores(race, SHAPES[2]),
    ),
    row(
        "grpc-server-tonic",
        "CPU of the gRPC server for each request, and of a tonic server with one service and nothing else",
        cost::grpc_server,
    ),
    row(
        "http-client-nginx",
        "CPU of the HTTP/1.1 client for each request, and of wrk, on nginx: 100 bytes, 64 connections",
        |race| cost::http_client(race, nginx(SERVER, 100)?),
    ),
    row(
        "http-client-bare",
        "the same on a server that does nothing else than write",
        |race| cost::http_client(race, itself::peer(itself::HTTP_SERVER)?),
    ),
    row(
        "http-client-loop",
        "CPU of the HTTP/1.1 client for each request, and of a bare loop on tokio, on nginx",
        |race| cost::http_loop(race, nginx(SERVER, 100)?),
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

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Returns the side that measures a target's rate.
fn rate(race: &Race, url: String, flags: &'static [&'static str]) -> Side {
    let race = race.clone();
    Box::new(move || number(&throughput(&race, &url, flags).step()["rate_per_s"]))
}

/// Starts a server of one worker.
pub fn server(name: &str, flags: &[&str]) -> Rc<Server> {
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
