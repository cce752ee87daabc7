//! Conditions under which a run is not to be believed: other programs on either side's core, and servers
//! that change, treat connections unlike, or count what others sent.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use netping_benches::processes::{
    CLIENT, Client, SERVER, Said, hogs, netping, netping_anywhere, wait,
};
use netping_serving::clock::now;
use nix::sys::signal::Signal;

use crate::{
    Extent, Tell,
    warnings::{Trouble, client, make_all, tokio, wait_into_window},
};

/// Runs of each condition, and of those that take a ladder.
const RUNS: usize = 20;
const LADDERS: usize = 5;

/// Warnings that come with other programs, which are what is wrong.
const BESIDE_OTHERS: &[&str] = &[
    "CLIENT_BOUND",
    "CLIENT_STARVED",
    "NOISY",
    "NOT_STEADY",
    "LITTLES_LAW",
    "BIMODAL",
    "STALLED",
    "UNLIKE_TRIALS",
];

const CONDITIONS: [Trouble; 11] = [
    Trouble {
        what: "two hogs on the core of a closed loop's client",
        run: || beside(CLIENT, 2, || client(&tokio(), &["-c", "64"]).finish()),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "a hog on the server's core",
        run: || beside(SERVER, 1, || client(&tokio(), &["-c", "64"]).finish()),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "a hog on the server's core, round trips of one caller",
        run: || beside(SERVER, 1, round_trips),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "a hog on the client's core, round trips of one caller",
        run: || beside(CLIENT, 1, round_trips),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "a hog on the server's core, an open loop of 10,000 req/s",
        run: || {
            beside(SERVER, 1, || {
                client(&tokio(), &["-c", "64", "--rate", "10k"]).finish()
            })
        },
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "an open loop's server slows from 20 to 40 ms",
        run: || open_loop(|_, since| if since < 2.0 { 20 } else { 40 }),
        possible: || true,
        must: &["NOT_STEADY"],
        may: &[],
    },
    Trouble {
        what: "an open loop's server warms up for 3 s, from 40 to 20 ms",
        run: || open_loop(|_, since| 40 - (since * 20.0 / 3.0).min(20.0) as u64),
        possible: || true,
        must: &["NOT_STEADY"],
        may: &[],
    },
    Trouble {
        what: "one connection of 64 at 500 ms, the others at 20",
        run: || open_loop(|connection, _| if connection == 30 { 500 } else { 20 }),
        possible: || true,
        must: &["SLOW_CONNECTION"],
        // The server's threads run on any core, the client's too.
        may: &["CLIENT_STARVED"],
    },
    Trouble {
        what: "the server stops for 100 ms in each second",
        run: stop_and_go,
        possible: || true,
        must: &["STALLED"],
        may: &["CLIENT_BOUND", "NOISY", "NOT_STEADY"],
    },
    Trouble {
        what: "another program's requests at the server",
        run: shared,
        possible: || true,
        must: &["SERVER_SHARED"],
        // The other client is on the core of this one.
        may: &["CLIENT_STARVED", "NOT_STEADY"],
    },
    Trouble {
        what: "a server that counts half of its requests",
        run: miscounted,
        possible: || true,
        must: &["COUNTERS_DISAGREE"],
        // A virtual CPU that wakes up late makes a client late that sleeps between requests.
        may: &["CLIENT_STARVED"],
    },
];

const LADDER: [Trouble; 2] = [
    Trouble {
        what: "a ladder beside a hog on the client's core",
        run: || beside(CLIENT, 1, ladder),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
    Trouble {
        what: "a ladder beside a hog on the servers' core",
        run: || beside(SERVER, 1, ladder),
        possible: || true,
        must: &["FOREIGN_LOAD"],
        may: BESIDE_OTHERS,
    },
];

/// Makes each condition.
pub fn check(extent: Extent, tell: Tell<'_>) {
    make_all(&CONDITIONS, RUNS, extent, tell);
}

/// Makes the conditions of ladders.
pub fn check_ladders(extent: Extent, tell: Tell<'_>) {
    make_all(&LADDER, LADDERS, extent, tell);
}

/// Runs something beside programs that use a core all the time.
fn beside(core: usize, count: usize, run: fn() -> Said) -> Said {
    let _hogs = hogs(core, count);
    run()
}

fn round_trips() -> Said {
    let server = tokio();
    let [flag, metrics] = server.metrics();
    netping(&["latency", &server.url, "-d", "6s", flag, metrics])
}

/// An open loop of 300 requests per second on 64 connections to a server that answers after this many
/// milliseconds, by the number of the connection and the seconds since the first request.
fn open_loop(delay: fn(usize, f64) -> u64) -> Said {
    let url = serve(delay);
    let flags = ["-c", "64", "--rate", "300", "-d", "5s", "--warmup", "500ms"];
    Client::start(&[&["throughput", &url], &flags[..]].concat()).finish()
}

/// Starts a server on threads of this process, which ends with it; returns its URL.
fn serve(delay: fn(usize, f64) -> u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // A busy machine may take a second to start the client.
    let first = Arc::new(OnceLock::new());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let first = Arc::clone(&first);
            thread::spawn(move || {
                echo(&stream, || {
                    let since = (now() - *first.get_or_init(now)).as_secs_f64();
                    Duration::from_millis(delay(number, since))
                })
            });
        }
    });
    format!("tcp://{address}")
}

/// Echoes lines, each after a while, until the connection ends.
fn echo(stream: &TcpStream, delay: impl Fn() -> Duration) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).ok()? > 0 {
        wait(delay());
        writer.write_all(&line).ok()?;
        line.clear();
    }
    Some(())
}

fn stop_and_go() -> Said {
    let server = tokio();
    let client = client(&server, &["-c", "16"]);
    wait_into_window(0.5);
    for _ in 0..3 {
        server.process.signal(Signal::SIGSTOP);
        wait(Duration::from_millis(100));
        server.process.signal(Signal::SIGCONT);
        wait(Duration::from_millis(900));
    }
    client.finish()
}

/// Another client sends a fifth as much.
fn shared() -> Said {
    let server = tokio();
    let flags = ["-c", "4", "--rate", "200", "-d", "5s"];
    let other = Client::start(&[&["throughput", &server.url], &flags[..]].concat());
    let said = client(&server, &["-c", "16", "--rate", "1k"]).finish();
    other.finish();
    said
}

fn miscounted() -> Said {
    let server = tokio();
    let metrics = halve(server.metrics_address().to_owned());
    let flags = ["-d", "3s", "--rate", "1k", "--server-metrics", &metrics];
    netping(&[&["throughput", &server.url], &flags[..]].concat())
}

/// Serves the metrics of this address with half of the requests, until this process ends; returns their
/// URL.
fn halve(upstream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &upstream);
        }
    });
    format!("http://{address}/metrics")
}

/// Answers the one request of a connection.
fn answer(mut stream: &TcpStream, upstream: &str) -> io::Result<()> {
    let mut head = BufReader::new(stream).lines();
    while head
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    server.read_to_string(&mut text)?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let half = |line: &str| {
        let count = line
            .strip_prefix("netping_requests_total ")?
            .parse::<u64>()
            .ok()?;
        Some(format!("netping_requests_total {}\n", count / 2))
    };
    let lines = body
        .lines()
        .map(|line| half(line).unwrap_or_else(|| format!("{line}\n")));
    let body: String = lines.collect();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn ladder() -> Said {
    let page = tempfile::NamedTempFile::new().expect("a file");
    let page = page.path().to_str().expect("a path");
    // It gives cores to its client and its servers itself.
    netping_anywhere(&["ladder", "--quick", "--html", page])
}
