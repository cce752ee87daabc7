//! Peers that break off, say nothing, too little, too much, or nonsense.

use std::time::Duration;

use netping_benches::processes::{Server, time_of_day, wait};
use netping_protocol::secure::Connector;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    Fault, Kind, Outcome, errors, memory,
    peer::{PATIENCE, Peer},
    serves, word,
};

pub const FAULTS: [Fault; 11] = [
    Fault {
        what: "silent peer",
        promised: "closed within 4 s, counted",
        servers: |kind| kind.is_grpc() || kind.is_secure_tcp(),
        try_it: |kind| silent(kind, &Connector::Plain),
    },
    Fault {
        what: "silent peer, after the handshake",
        promised: "closed within 4 s, counted",
        servers: |kind| kind.is_grpc() && kind.is_secure_tcp(),
        try_it: |kind| silent(kind, &kind.connector),
    },
    Fault {
        what: "half a handshake",
        promised: "closed within 4 s, counted",
        servers: Kind::is_secure_tcp,
        try_it: half_handshake,
    },
    Fault {
        what: "random bytes for a handshake, 20 times",
        promised: "closed within 4 s each, others served",
        servers: Kind::is_secure_tcp,
        try_it: |kind| garbage(kind, &Connector::Plain),
    },
    Fault {
        what: "half an opening",
        promised: "closed within 4 s, counted",
        servers: Kind::is_tcp,
        try_it: half_opening,
    },
    Fault {
        what: "a byte every 100 ms",
        promised: "closed within 4 s, counted",
        servers: Kind::is_tcp,
        try_it: trickle,
    },
    Fault {
        what: "1 MiB without an end",
        promised: "closed within 4 s, others served",
        servers: Kind::is_tcp,
        try_it: endless,
    },
    Fault {
        what: "64 KiB of random bytes, 20 times",
        promised: "closed within 4 s each, others served",
        servers: Kind::is_tcp,
        try_it: |kind| garbage(kind, &kind.connector),
    },
    Fault {
        what: "end in mid-request",
        promised: "closed within 4 s, others served",
        servers: Kind::is_tcp,
        try_it: half_close,
    },
    Fault {
        what: "300 resets in mid-request",
        promised: "others served, no connection left",
        servers: Kind::is_tcp,
        try_it: resets,
    },
    Fault {
        what: "32 x 16 MiB asked for, never read",
        promised: "at most 64 MiB more memory, others served",
        servers: Kind::is_lines,
        try_it: unread,
    },
];

/// Flags of a server whose deadlines a test can wait for.
pub const SHORT: [&str; 4] = ["--first-byte-timeout", "1s", "--request-timeout", "1s"];

/// Seconds within which a server with these deadlines ends a connection: they are a second, and the
/// machine may be busy.
const WITHIN: f64 = 4.0;

/// Says when a connection ended and how the server counted it.
pub fn told(ended: Option<f64>, counted: &[(&str, f64)], honest: bool) -> Outcome {
    let when = ended.map_or_else(
        || "not closed".to_owned(),
        |seconds| format!("closed after {seconds:.1} s"),
    );
    let counts: Vec<String> = counted
        .iter()
        .filter(|(_, count)| *count > 0.0)
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let is_counted = counted.is_empty() || !counts.is_empty();
    let others = word(honest);
    Outcome {
        came: format!("{when}; {}; others {others}", counts.join(", ")).replace("; ;", ";"),
        kept: ended.is_some_and(|seconds| seconds <= WITHIN) && is_counted && honest,
    }
}

/// Counts of the deadlines that a server may name.
pub fn deadlines(server: &Server) -> [(&'static str, f64); 4] {
    [
        "first_byte_timeout",
        "request_timeout",
        "handshake_timeout",
        "tls",
    ]
    .map(|kind| (kind, errors(server, kind)))
}

fn silent(kind: &Kind, connector: &Connector) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let ended = Peer::new(&server, connector).end(begun);
    told(ended, &deadlines(&server), serves(&server, kind))
}

/// Sends the first bytes of a handshake: a record of TLS, or as many of Noise.
fn half_handshake(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &Connector::Plain);
    let _ = peer.send(b"\x16\x03\x01", PATIENCE);
    let ended = peer.end(begun);
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn half_opening(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let opening: &[u8] = if kind.is_grpc() { b"PRI * HT" } else { b"\0N" };
    let _ = peer.send(opening, PATIENCE);
    let ended = peer.end(begun);
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn trickle(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let mut ended = None;
    let opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for at in 0..50 {
        let byte = if kind.is_grpc() {
            opening[at % opening.len()]
        } else {
            b'x'
        };
        let sent = peer.send(&[byte], PATIENCE);
        // The look takes the time between bytes.
        if sent.is_err() || !peer.stays_open(Duration::from_millis(100)) {
            ended = Some(time_of_day() - begun);
            break;
        }
    }
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn endless(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    // The server may close before it has all.
    let _ = peer.send(&vec![b'x'; 1 << 20], PATIENCE);
    let ended = peer.end(begun);
    told(ended, &[], serves(&server, kind))
}

fn garbage(kind: &Kind, connector: &Connector) -> Outcome {
    let server = kind.start(&SHORT);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut longest = Some(0.0);
    for _ in 0..20 {
        let mut bytes = vec![0; 64 << 10];
        random.fill_bytes(&mut bytes);
        // It ends as a line does.
        bytes.push(b'\n');
        let begun = time_of_day();
        let mut peer = Peer::new(&server, connector);
        let _ = peer.send(&bytes, PATIENCE);
        peer.finish();
        let took = peer.end(begun);
        longest = longest
            .zip(took)
            .map(|(one, other): (f64, f64)| one.max(other));
    }
    told(longest, &[], serves(&server, kind))
}

fn half_close(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let _ = peer.send(b"abc", PATIENCE);
    peer.finish();
    let ended = peer.end(begun);
    told(ended, &[], serves(&server, kind))
}

fn resets(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    for _ in 0..300 {
        let mut peer = Peer::resetting(&server, &kind.connector);
        let _ = peer.send(b"abc", PATIENCE);
    }
    let honest = serves(&server, kind);
    let mut open = f64::NAN;
    for _ in 0..100 {
        open = server.metric("netping_connections").unwrap_or(f64::NAN);
        if open == 0.0 {
            break;
        }
        wait(Duration::from_millis(20));
    }
    Outcome {
        came: format!("{open} connections left; others {}", word(honest)),
        kept: honest && open == 0.0,
    }
}

fn unread(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let before = memory(&server);
    let request = [
        &b"\0NP1"[..],
        &1_u32.to_be_bytes(),
        &(16_u32 << 20).to_be_bytes(),
        b"x",
    ]
    .concat();
    let ask = |_| {
        let mut peer = Peer::new(&server, &kind.connector);
        peer.send(&request, PATIENCE).expect("a request");
        peer
    };
    let peers: Vec<Peer> = (0..32).map(ask).collect();
    wait(Duration::from_secs(1));
    let more = memory(&server) - before;
    let honest = serves(&server, kind);
    drop(peers);
    Outcome {
        came: format!("{more:.0} MiB more; others {}", word(honest)),
        kept: honest && more <= 64.0,
    }
}
