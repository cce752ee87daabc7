//! Peers of lines and frames that ask for much, announce much, or send it in the smallest parts.

use netping_protocol::frame::{MAGIC, Reply, RequestHeader};
use tokio::io::AsyncWriteExt;

use crate::{
    Fault, Kind, Outcome,
    frames::{ECHO, opening, request, streams},
    memory::{Moment, held},
    peer::{End, open, pour},
};

pub const FAULTS: [Fault; 3] = [
    Fault {
        what: "32 x 16 MiB asked for, never read",
        promised: "at most 3 MiB more memory for each, others served",
        servers: Kind::is_lines,
        try_it: |kind| connections(kind, 32, &large_frame()),
    },
    Fault {
        what: "300 frames of 16 MiB, 1 byte of each sent",
        promised: "at most 3 MiB more memory for each, others served",
        servers: Kind::is_lines,
        try_it: |kind| connections(kind, 300, &frame(16 << 20, 1, b"x")),
    },
    Fault {
        what: "20,000 TLS records of a byte",
        promised: "all taken, at most 16 MiB more memory, others served",
        servers: Kind::is_tls_tcp,
        try_it: small_records,
    },
];

/// Returns the opening of frames, and a request of which the payload need not be whole.
fn frame(payload: u32, reply: u32, bytes: &[u8]) -> Vec<u8> {
    let header = RequestHeader {
        payload,
        reply: Reply::Bytes(reply),
    };
    [&MAGIC, &header.encode()[..], bytes].concat()
}

/// Returns the opening of frames, and a request for 16 MiB.
pub fn large_frame() -> Vec<u8> {
    frame(1, 16 << 20, b"x")
}

/// The most that a server may hold more for one of these connections, in MiB: a thread of the threads server that
/// speaks TLS takes 2 of them for itself.
const EACH: u32 = 3;

/// Sends the same on so many connections, and reads nothing.
fn connections(kind: &Kind, count: u32, bytes: &[u8]) -> Outcome {
    let most = f64::from(EACH * count);
    held(kind, &[], most, async |server, hold| {
        let mut peers = Vec::new();
        for _ in 0..count {
            let mut stream = open(server, &kind.connector).await;
            stream.write_all(bytes).await.expect("a request");
            peers.push(stream);
        }
        hold.others(Moment::Rest).await;
    })
    .outcome
}

fn small_records(kind: &Kind) -> Outcome {
    let text = if kind.is_grpc() {
        let requests = streams(200).flat_map(|stream| request(stream, ECHO, b""));
        opening(65_535).into_iter().chain(requests).collect()
    } else {
        b"text\n".repeat(4000)
    };
    let taken = held(kind, &[], 16.0, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        // Each write is a record.
        let bytes = text.iter().map(|byte| vec![*byte]);
        tokio::join!(pour(&mut stream, bytes, true), hold.others(Moment::Now)).0
    });
    let (sent, end) = taken.result;
    let came = format!("{sent} records, {end:?}");
    taken.outcome.and(end == End::Taken, &came)
}
