//! Limits of the system: files, and a log that cannot be written.

use std::{
    fs::OpenOptions,
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use netping_benches::processes::{Server, time_of_day, wait};
use netping_protocol::secure::Connector;
use nix::sys::signal::Signal;

use crate::{
    Fault, Kind, Outcome, counted,
    frames::{ECHO, LARGE_ECHO, PREFACE, opening, request},
    lines::large_frame,
    memory::rest,
    peer::{PATIENCE, Peer},
    restarts::connections_left,
    serves, word,
};

pub const FAULTS: [Fault; 7] = [
    Fault {
        what: "no file descriptors left",
        promised: "less than 0.3 s of CPU in 1 s, and served afterwards",
        servers: Kind::is_tcp,
        try_it: no_files,
    },
    Fault {
        what: "log on a full disk, then SIGTERM",
        promised: "served, and ended with 0",
        servers: Kind::is_server,
        try_it: full_log,
    },
    Fault {
        what: "a connection beyond --max-connections",
        promised: "closed, counted; served when there is room",
        servers: Kind::is_tcp,
        try_it: too_many,
    },
    Fault {
        what: "silent peers at --max-connections",
        promised: "others served within 3 s, counted",
        servers: Kind::is_tcp,
        try_it: |kind| makes_room(kind, &[]),
    },
    Fault {
        what: "peers with half a preface at --max-connections",
        promised: "others served within 3 s, counted",
        servers: Kind::is_grpc,
        try_it: |kind| makes_room(kind, &PREFACE[..9]),
    },
    Fault {
        what: "a connection above --max-memory",
        promised: "closed, counted",
        servers: Kind::is_tcp,
        try_it: above_memory,
    },
    Fault {
        what: "16 MiB never read, SIGTERM, --drain-timeout 2s",
        promised: "ended with 0 after 2 to 3 s",
        servers: Kind::is_tcp,
        try_it: stuck,
    },
];

fn no_files(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let open = server.metric("process_open_fds").unwrap_or(0.0);
    // Room for a scrape of the metrics.
    let limit = open as u64 + 10;
    let pid = server.process.id().to_string();
    let limited = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={limit}:{limit}")])
        .status();
    if !limited.is_ok_and(|status| status.success()) {
        return Outcome::not_tried("prlimit (util-linux) is missing");
    }
    let used = || cpu_seconds(server.process.id());
    let streams: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(server.address()))
        .collect();
    let before = used();
    wait(Duration::from_secs(1));
    let spent = used() - before;
    drop(streams);
    let honest = serves(&server, kind);
    let came = format!("{spent:.2} s of CPU; {}", word(honest));
    Outcome::new(honest && spent < 0.3, came)
}

/// Returns the CPU time of a process, in seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let usage = netping_system::process::Usage::of(pid);
    usage.map_or(f64::NAN, |usage| usage.cpu_seconds)
}

fn full_log(kind: &Kind) -> Outcome {
    let full = OpenOptions::new().write(true).open("/dev/full");
    let log = Stdio::from(full.expect("/dev/full"));
    let flags = kind.all(&["--max-connections", "3"]);
    let mut server = Server::start_logging_to(["127.0.0.1:0"; 2], kind.server, &flags, log);
    // Each that is refused is logged.
    for _ in 0..20 {
        let streams: Vec<_> = (0..6)
            .map(|_| TcpStream::connect(server.address()))
            .collect();
        drop(streams);
    }
    let mut honest = false;
    for _ in 0..20 {
        honest = serves(&server, kind);
        if honest {
            break;
        }
        wait(Duration::from_millis(100));
    }
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(Duration::from_secs(6));
    let came = format!("{}, exit code {code:?}", word(honest));
    Outcome::new(honest && code == Some(0), came)
}

fn too_many(kind: &Kind) -> Outcome {
    let server = kind.start(&["--max-connections", "3"]);
    let peers: Vec<_> = (0..3)
        .map(|_| Peer::new(&server, &kind.connector))
        .collect();
    let closed = Peer::new(&server, &Connector::Plain).end(time_of_day());
    let is_counted = server.errors() == [("max_connections".to_owned(), 1)];
    let came = format!("closed: {}; {}", closed.is_some(), counted(&server));
    drop(peers);
    connections_left(&server);
    let honest = serves(&server, kind);
    Outcome::new(closed.is_some() && is_counted, came).and(honest, word(honest))
}

/// Takes all places with peers that have sent so much.
fn makes_room(kind: &Kind, sent: &[u8]) -> Outcome {
    let server = kind.start(&["--max-connections", "3"]);
    let begun = |_| {
        let mut peer = Peer::new(&server, &kind.connector);
        peer.send(sent, PATIENCE).expect("a peer");
        peer
    };
    let peers: Vec<_> = (0..3).map(begun).collect();
    let begun = time_of_day();
    let mut took = None;
    while took.is_none() && time_of_day() - begun < 3.0 {
        took = serves(&server, kind).then(|| time_of_day() - begun);
    }
    drop(peers);
    let counted = counted(&server);
    let when = took.map_or_else(
        || "never".to_owned(),
        |seconds| format!("after {seconds:.1} s"),
    );
    Outcome::new(took.is_some(), when).and(counted.contains("max_connections"), &counted)
}

fn above_memory(kind: &Kind) -> Outcome {
    // No process is that small.
    let server = kind.start(&["--max-memory", "64KiB"]);
    // It looks at its memory every 100 ms.
    let is_closed = (0..50).any(|_| {
        let mut peer = Peer::new(&server, &Connector::Plain);
        !peer.stays_open(Duration::from_millis(20))
    });
    let counted = counted(&server);
    let is_counted = counted.contains("max_memory");
    Outcome::new(is_closed && is_counted, format!("closed: {is_closed}")).noting(&counted)
}

/// Asks for a reply that it does not take.
fn stuck(kind: &Kind) -> Outcome {
    let mut server = kind.start(&["--drain-timeout", "2s"]);
    let mut peer = Peer::new(&server, &kind.connector);
    let request = if kind.is_grpc() {
        [opening(0), request(1, ECHO, LARGE_ECHO)].concat()
    } else {
        large_frame()
    };
    peer.send(&request, PATIENCE).expect("a request");
    rest(&server);
    drained(&mut server, peer)
}

/// Ends a server with `--drain-timeout 2s`, for which it waits because of this peer.
pub fn drained<P>(server: &mut Server, peer: P) -> Outcome {
    let begun = time_of_day();
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(PATIENCE);
    let took = time_of_day() - begun;
    drop(peer);
    let came = format!("exit code {code:?} after {took:.1} s");
    Outcome::new(code == Some(0) && (1.95..=3.0).contains(&took), came)
}
