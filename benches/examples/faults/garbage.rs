//! Peers that say too much or nonsense, and that break off.

use netping_benches::processes::{Server, time_of_day};
use netping_protocol::secure::Connector;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    Fault, Kind, Outcome,
    closings::{SHORT, WITHIN, closed},
    frames::opening,
    peer::{PATIENCE, Peer},
    restarts::connections_left,
    serves, word,
};

pub const FAULTS: [Fault; 6] = [
    Fault {
        what: "random bytes for a handshake, 20 times",
        promised: "closed within 4 s each, others served",
        servers: Kind::is_secure_tcp,
        try_it: |kind| garbage(kind, &Connector::Plain),
    },
    Fault {
        what: "64 KiB of random bytes, 20 times",
        promised: "closed within 4 s each, others served",
        servers: Kind::is_tcp,
        try_it: |kind| garbage(kind, &kind.connector),
    },
    Fault {
        what: "1 MiB without an end",
        promised: "closed within 4 s, others served",
        servers: Kind::is_tcp,
        try_it: |kind| refused(kind, &vec![b'x'; 1 << 20]),
    },
    Fault {
        what: "a frame of 4 GiB announced",
        promised: "closed within 4 s, others served",
        servers: Kind::is_tcp,
        try_it: |kind| {
            let frame: &[u8] = if kind.is_grpc() {
                // A frame has a length of three bytes.
                &[opening(65_535), vec![0xFF; 9]].concat()
            } else {
                b"\0NP1\xFF\xFF\xFF\xFF\0\0\0\0"
            };
            refused(kind, frame)
        },
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
];

fn at_once(server: &Server, kind: &Kind, ended: Option<f64>) -> Outcome {
    let in_time = ended.is_some_and(|seconds| seconds <= WITHIN);
    closed(server, kind, ended, in_time)
}

/// Sends bytes that the server need not take. It closes before any deadline.
fn refused(kind: &Kind, bytes: &[u8]) -> Outcome {
    let server = kind.start(&[]);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    // The server may close before it has all.
    let _ = peer.send(bytes, PATIENCE);
    let ended = peer.end(begun);
    at_once(&server, kind, ended)
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
    at_once(&server, kind, longest)
}

fn half_close(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let _ = peer.send(b"abc", PATIENCE);
    peer.finish();
    let ended = peer.end(begun);
    at_once(&server, kind, ended)
}

fn resets(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    for _ in 0..300 {
        let mut peer = Peer::resetting(&server, &kind.connector);
        let _ = peer.send(b"abc", PATIENCE);
    }
    let honest = serves(&server, kind);
    let open = connections_left(&server);
    Outcome::new(open == 0.0, format!("{open} connections left")).and(honest, word(honest))
}
