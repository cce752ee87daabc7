//! Peers that say nothing, or too little: the deadlines, which come neither late nor early.

use std::time::Duration;

use netping_benches::processes::{Server, time_of_day, wait};
use netping_protocol::secure::Connector;

use crate::{
    Fault, Kind, Outcome, counted,
    frames::{
        CHAT, DATA, ECHO, HEADERS, LARGE_ECHO, PREFACE, SHORT_ECHO, WINDOW_UPDATE, ends_call,
        frame, headers, opening, ping, prefixed, request,
    },
    lines::large_frame,
    peer::{PATIENCE, Peer},
    serves, word,
};

pub const FAULTS: [Fault; 16] = [
    Fault {
        what: "silent peer",
        promised: BY_DEADLINE,
        servers: |kind| kind.is_grpc() || kind.is_secure_tcp(),
        try_it: |kind| sends(kind, &Connector::Plain, b""),
    },
    Fault {
        what: "silent peer, after the handshake",
        promised: BY_DEADLINE,
        servers: |kind| kind.is_grpc() && kind.is_secure_tcp(),
        try_it: |kind| sends(kind, &kind.connector, b""),
    },
    Fault {
        what: "half a handshake",
        promised: BY_DEADLINE,
        servers: Kind::is_secure_tcp,
        try_it: half_handshake,
    },
    Fault {
        what: "half an opening",
        promised: BY_DEADLINE,
        servers: Kind::is_tcp,
        try_it: |kind| {
            let opening: &[u8] = if kind.is_grpc() { b"PRI * HT" } else { b"\0N" };
            sends(kind, &kind.connector, opening)
        },
    },
    Fault {
        what: "a byte every 100 ms",
        promised: BY_DEADLINE,
        servers: Kind::is_tcp,
        try_it: |kind| {
            let bytes = if kind.is_grpc() { PREFACE } else { &[b'x'; 50] };
            let bytes = bytes.iter().cycle().take(50).map(|byte| vec![*byte]);
            trickles(kind, &SHORT, b"", bytes, Duration::from_millis(100))
        },
    },
    Fault {
        what: "a byte of a frame every 100 ms",
        promised: BY_DEADLINE,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let bytes = headers(1, ECHO).into_iter().take(50).map(|byte| vec![byte]);
            trickles(
                kind,
                &SHORT,
                &opening(65_535),
                bytes,
                Duration::from_millis(100),
            )
        },
    },
    Fault {
        what: "half a frame, and a PING in it every 300 ms",
        promised: BY_DEADLINE,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let mut begun = [opening(65_535), frame(HEADERS, 0, 1, &[0; 1000])].concat();
            begun.truncate(begun.len() - 990);
            pings(kind, &SHORT, &begun)
        },
    },
    Fault {
        what: "half a request, and a PING every 300 ms",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| unfinished(kind, &headers(1, ECHO), &ping()),
    },
    Fault {
        what: "a message of a conversation, a byte every 300 ms",
        promised: ENDED,
        servers: Kind::has_bulk,
        try_it: |kind| {
            let half = &prefixed(&[0; 100])[..50];
            let begun = [headers(1, CHAT), frame(DATA, 0, 1, half)].concat();
            unfinished(kind, &begun, &frame(DATA, 0, 1, &[0]))
        },
    },
    Fault {
        what: "nothing but a PING every 300 ms",
        promised: BY_DEADLINE,
        servers: Kind::is_grpc,
        try_it: |kind| pings(kind, &IDLE, &opening(65_535)),
    },
    Fault {
        what: "a reply that is never read",
        promised: COUNTED,
        servers: Kind::is_tcp,
        try_it: |kind| {
            let windows = frame(WINDOW_UPDATE, 0, 0, &0x4000_0000_u32.to_be_bytes());
            let request = if kind.is_grpc() {
                let request = request(1, ECHO, LARGE_ECHO);
                [opening(0x4000_0000), windows, request].concat()
            } else {
                large_frame()
            };
            untaken(kind, &request, b"")
        },
    },
    Fault {
        what: "a reply for which there is no window",
        promised: COUNTED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let request = [opening(0), request(1, ECHO, LARGE_ECHO)].concat();
            untaken(kind, &request, b"")
        },
    },
    Fault {
        what: "a short reply for which there is no window",
        promised: COUNTED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let request = [opening(0), request(1, ECHO, SHORT_ECHO)].concat();
            untaken(kind, &request, b"")
        },
    },
    Fault {
        what: "a short reply with a window for a part of it",
        promised: COUNTED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let request = [opening(1), request(1, ECHO, SHORT_ECHO)].concat();
            untaken(kind, &request, b"")
        },
    },
    Fault {
        what: "a reply that is taken byte by byte",
        promised: COUNTED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let request = [opening(0), request(1, ECHO, LARGE_ECHO)].concat();
            let single = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
            untaken(kind, &request, &single)
        },
    },
    Fault {
        what: "silence after a request",
        promised: "closed as idle after 1 to 4 s",
        servers: Kind::is_tcp,
        try_it: silence,
    },
];

const BY_DEADLINE: &str = "closed after 1 to 4 s, counted";
const ENDED: &str = "the call ended after 1 to 4 s, counted";
const COUNTED: &str = "counted after 1 to 4 s";

/// Flags of a server whose deadlines a test can wait for: each is a second.
pub const SHORT: [&str; 4] = ["--first-byte-timeout", "1s", "--request-timeout", "1s"];
pub const IDLE: [&str; 2] = ["--idle-timeout", "1s"];
pub const REPLY: [&str; 2] = ["--reply-timeout", "1s"];

/// Seconds after which a server with such a deadline ends a connection. The machine may be busy, and the clocks
/// differ a little.
const DEADLINE: f64 = 0.95;
pub const WITHIN: f64 = 4.0;

/// Says when a connection ended of which a deadline was the cause.
pub fn by_deadline(server: &Server, kind: &Kind, ended: Option<f64>) -> Outcome {
    let is_counted = |(kind, _): &(String, u64)| kind.ends_with("_timeout");
    let is_counted = server.errors().iter().any(is_counted);
    let in_time = ended.is_some_and(|seconds| (DEADLINE..=WITHIN).contains(&seconds));
    closed(server, kind, ended, in_time && is_counted)
}

/// Says when a connection ended, how the server counted it, and whether others are served.
pub fn closed(server: &Server, kind: &Kind, ended: Option<f64>, kept: bool) -> Outcome {
    let when = ended.map_or_else(
        || "never".to_owned(),
        |seconds| format!("after {seconds:.1} s"),
    );
    let outcome = Outcome::new(kept, when).noting(&counted(server));
    let honest = serves(server, kind);
    outcome.and(honest, word(honest))
}

/// Sends these bytes and nothing more.
fn sends(kind: &Kind, connector: &Connector, bytes: &[u8]) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, connector);
    let _ = peer.send(bytes, PATIENCE);
    let ended = peer.end(begun);
    by_deadline(&server, kind, ended)
}

/// Sends the first bytes of a handshake: of a record of TLS, or of a message of Noise, which has 48.
fn half_handshake(kind: &Kind) -> Outcome {
    let begun = if kind.is_psk() {
        b"\x00\x30\x01"
    } else {
        b"\x16\x03\x01"
    };
    sends(kind, &Connector::Plain, begun)
}

fn pings(kind: &Kind, flags: &[&str], opening: &[u8]) -> Outcome {
    let pings = (0..17).map(|_| ping());
    trickles(kind, flags, opening, pings, Duration::from_millis(300))
}

/// Sends one part after the other at this interval, until the server closes the connection.
fn trickles(
    kind: &Kind,
    flags: &[&str],
    opening: &[u8],
    parts: impl Iterator<Item = Vec<u8>>,
    interval: Duration,
) -> Outcome {
    let server = kind.start(flags);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let _ = peer.send(opening, PATIENCE);
    let mut ended = None;
    for part in parts {
        // The look takes the time between the parts.
        if peer.send(&part, PATIENCE).is_err() || !peer.stays_open(interval) {
            ended = Some(time_of_day() - begun);
            break;
        }
    }
    by_deadline(&server, kind, ended)
}

/// Sends a whole request and nothing more: no deadline but the one of silence is for that, however short the others.
fn silence(kind: &Kind) -> Outcome {
    let others = ["--request-timeout", "200ms", "--reply-timeout", "200ms"];
    let server = kind.start(&[&IDLE[..], &others].concat());
    let mut peer = Peer::new(&server, &kind.connector);
    let whole = if kind.is_grpc() {
        [opening(65_535), request(1, ECHO, b"")].concat()
    } else {
        b"text\n".to_vec()
    };
    let begun = time_of_day();
    let _ = peer.send(&whole, PATIENCE);
    let ended = peer.end(begun);
    let is_idle = server
        .errors()
        .iter()
        .any(|(kind, _)| kind == "idle_timeout");
    by_deadline(&server, kind, ended).and(is_idle, "")
}

/// Begins a request and sends `more` every 300 ms, until the server ends the call.
fn unfinished(kind: &Kind, request: &[u8], more: &[u8]) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut peer = Peer::new(&server, &kind.connector);
    let _ = peer.send(&[&opening(65_535), request].concat(), PATIENCE);
    let mut came = Vec::new();
    let mut ended = None;
    for _ in 0..17 {
        let _ = peer.send(more, PATIENCE);
        let is_open = peer.hear(&mut came, Duration::from_millis(300));
        if ends_call(&came) || !is_open {
            ended = Some(time_of_day() - begun);
            break;
        }
    }
    by_deadline(&server, kind, ended)
}

/// Sends a request and reads nothing, but sends `more` every 100 ms, until the server counts that the reply was not
/// taken.
fn untaken(kind: &Kind, request: &[u8], more: &[u8]) -> Outcome {
    let server = kind.start(&REPLY);
    let mut peer = Peer::new(&server, &kind.connector);
    let begun = time_of_day();
    peer.send(request, PATIENCE).expect("a request");
    let mut ended = None;
    for _ in 0..50 {
        if !server.errors().is_empty() {
            ended = Some(time_of_day() - begun);
            break;
        }
        wait(Duration::from_millis(100));
        let _ = peer.send(more, PATIENCE);
    }
    by_deadline(&server, kind, ended)
}
