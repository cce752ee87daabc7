//! Peers that break off, say nothing, too little, too much, or nonsense.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use netping_benches::processes::{Server, time_of_day, wait};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use socket2::SockRef;

use crate::{Fault, Kind, Outcome, errors, memory, serves, word};

const TCP: [&str; 3] = ["threads", "tokio", "grpc"];

pub const FAULTS: [Fault; 8] = [
    Fault {
        what: "silent peer",
        promised: "closed within 4 s, counted",
        servers: &TCP,
        try_it: silent,
    },
    Fault {
        what: "half an opening",
        promised: "closed within 4 s, counted",
        servers: &TCP,
        try_it: half_opening,
    },
    Fault {
        what: "a byte every 100 ms",
        promised: "closed within 4 s, counted",
        servers: &TCP,
        try_it: trickle,
    },
    Fault {
        what: "1 MiB without an end",
        promised: "closed within 4 s, others served",
        servers: &TCP,
        try_it: endless,
    },
    Fault {
        what: "64 KiB of random bytes, 20 times",
        promised: "closed within 4 s each, others served",
        servers: &TCP,
        try_it: garbage,
    },
    Fault {
        what: "end in mid-request",
        promised: "closed within 4 s, others served",
        servers: &TCP,
        try_it: half_close,
    },
    Fault {
        what: "300 resets in mid-request",
        promised: "others served, no connection left",
        servers: &TCP,
        try_it: resets,
    },
    Fault {
        what: "32 x 16 MiB asked for, never read",
        promised: "at most 64 MiB more memory, others served",
        servers: &["threads", "tokio"],
        try_it: unread,
    },
];

/// Flags of a server whose deadlines a test can wait for.
pub const SHORT: [&str; 4] = ["--first-byte-timeout", "1s", "--request-timeout", "1s"];

/// Seconds within which a server with these deadlines ends a connection: they are a second, and the
/// machine may be busy.
const WITHIN: f64 = 4.0;

/// Longest wait for the end of a connection.
pub const PATIENCE: Duration = Duration::from_secs(5);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Reads to the end of the connection; returns the time that it took, in seconds; `None` if it did not
/// come.
fn end(mut stream: &TcpStream, since: f64) -> Option<f64> {
    let late = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let ended = match io::copy(&mut stream, &mut io::sink()) {
        Err(error) => !late(&error),
        Ok(_) => true,
    };
    ended.then(|| time_of_day() - since)
}

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

fn silent(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let ended = end(&connect(&server), begun);
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn half_opening(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut stream = connect(&server);
    let opening: &[u8] = if kind.server == "grpc" {
        b"PRI * HT"
    } else {
        b"\0N"
    };
    stream.write_all(opening).expect("bytes");
    told(
        end(&stream, begun),
        &deadlines(&server),
        serves(&server, kind),
    )
}

fn trickle(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut stream = connect(&server);
    let mut ended = None;
    stream
        .set_read_timeout(Some(Duration::from_millis(100)))
        .expect("a socket");
    let opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for at in 0..50 {
        let byte = if kind.server == "grpc" {
            opening[at % opening.len()]
        } else {
            b'x'
        };
        let sent = stream.write_all(&[byte]);
        // The read takes the time between bytes; a server may speak first.
        let open = match stream.read(&mut [0; 64]) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if sent.is_err() || !open {
            ended = Some(time_of_day() - begun);
            break;
        }
    }
    told(ended, &deadlines(&server), serves(&server, kind))
}

fn endless(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut stream = connect(&server);
    // The server may close before it has all.
    let _ = stream.write_all(&vec![b'x'; 1 << 20]);
    told(end(&stream, begun), &[], serves(&server, kind))
}

fn garbage(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut longest = Some(0.0);
    for _ in 0..20 {
        let mut bytes = vec![0; 64 << 10];
        random.fill_bytes(&mut bytes);
        // It ends as a line does.
        bytes.push(b'\n');
        let begun = time_of_day();
        let mut stream = connect(&server);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let took = end(&stream, begun);
        longest = longest
            .zip(took)
            .map(|(one, other): (f64, f64)| one.max(other));
    }
    told(longest, &[], serves(&server, kind))
}

fn half_close(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    let begun = time_of_day();
    let mut stream = connect(&server);
    stream.write_all(b"abc").expect("bytes");
    let _ = stream.shutdown(Shutdown::Write);
    told(end(&stream, begun), &[], serves(&server, kind))
}

fn resets(kind: &Kind) -> Outcome {
    let server = kind.start(&SHORT);
    for _ in 0..300 {
        let mut stream = connect(&server);
        let _ = stream.write_all(b"abc");
        // Closing with this resets the connection.
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
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
    if !kind.flags.is_empty() {
        // The bytes of this peer are those of a server in the clear.
        return Outcome {
            came: "in the clear only".to_owned(),
            kept: true,
        };
    }
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
    let streams: Vec<TcpStream> = (0..32)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(&request).expect("a request");
            stream
        })
        .collect();
    wait(Duration::from_secs(1));
    let more = memory(&server) - before;
    let honest = serves(&server, kind);
    drop(streams);
    Outcome {
        came: format!("{more:.0} MiB more; others {}", word(honest)),
        kept: honest && more <= 64.0,
    }
}
