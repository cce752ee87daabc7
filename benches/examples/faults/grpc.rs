//! HTTP/2 peers that ask for much and take nothing, or leave their requests open.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use h2::{SendStream, client};
use http::Request;
use netping_benches::processes::Server;
use tokio::time;

use crate::{
    Fault, Kind, Outcome, counted,
    frames::{
        BULK, CHAT, ECHO, ECHO_OF_300_KB, LARGE_BULK, LARGE_ECHO, SHORT_CHUNKS, TICKER, WATCH,
        WINDOW_UPDATE, frame, headers, opening, request, streams,
    },
    memory::{Held, Moment, held},
    peer::{open, pour, try_open},
};

pub const FAULTS: [Fault; 10] = [
    Fault {
        what: "100 bulk streams, window 0",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| no_window(kind, BULK, LARGE_BULK),
    },
    Fault {
        what: "100 echoes of 16 MiB, window 0",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| no_window(kind, ECHO, LARGE_ECHO),
    },
    Fault {
        what: "10,000 echoes of 300 kB, the largest windows, never read",
        promised: "at most 256 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| never_read(kind, 10_000, ECHO, ECHO_OF_300_KB, 256.0),
    },
    Fault {
        what: "2,000 bulk streams of messages of 1 KiB, the largest windows, never read",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, BULK, SHORT_CHUNKS, 160.0),
    },
    Fault {
        what: "2,000 tickers, the largest windows, never read",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, WATCH, TICKER, 160.0),
    },
    Fault {
        what: "100 conversations with answers of 16 MiB, the largest windows, never read",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 100, CHAT, LARGE_ECHO, 160.0),
    },
    Fault {
        what: "300 conversations with a message of 2 MiB",
        promised: "at most 256 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| large_requests(kind, 256.0, 300, 1000, &LARGE_MESSAGE).outcome,
    },
    Fault {
        what: "300 echoes of 2 MiB that have come, window 0",
        promised: "at most 256 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| large_requests(kind, 256.0, 300, 0, &WHOLE_ECHO).outcome,
    },
    Fault {
        what: "16,000 requests left open, on each of 4 connections, --max-memory 256MiB",
        promised: "at most 640 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: left_open,
    },
    Fault {
        what: "150 requests of 16 MiB, of each 3.7 MiB",
        promised: "at most 192 MiB more memory, counted, others served",
        servers: Kind::is_grpc,
        try_it: unfinished,
    },
];

/// Sends 100 requests whose replies it gives no room.
fn no_window(kind: &Kind, path: &str, message: &[u8]) -> Outcome {
    held(kind, &[], 160.0, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        let requests = streams(100).map(|stream| request(stream, path, message));
        let blocks = [opening(0)].into_iter().chain(requests);
        pour(&mut stream, blocks, true).await;
        hold.others(Moment::Rest).await;
    })
    .outcome
}

/// Sends so many requests, gives their replies the largest windows, and reads nothing.
fn never_read(kind: &Kind, count: u32, path: &str, message: &[u8], most: f64) -> Outcome {
    let held = held(kind, &[], most, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        let window = frame(
            WINDOW_UPDATE,
            0,
            0,
            &(0x7FFF_FFFF_u32 - 65_535).to_be_bytes(),
        );
        let requests = streams(count).map(|stream| request(stream, path, message));
        let blocks = [opening(0x7FFF_FFFF), window].into_iter().chain(requests);
        let poured = pour(&mut stream, blocks, false).await;
        hold.others(Moment::Rest).await;
        poured
    });
    let (sent, end) = held.result;
    held.outcome.noting(&format!("{sent} bytes sent, {end:?}"))
}

fn left_open(kind: &Kind) -> Outcome {
    let flags = ["--max-memory", "256MiB"];
    let held = held(kind, &flags, 640.0, async |server, hold| {
        let mut peers = Vec::new();
        for _ in 0..4 {
            // For further ones, there may be no memory.
            let Ok(mut stream) = try_open(server, &kind.connector).await else {
                break;
            };
            let requests: Vec<u8> = streams(16_000)
                .flat_map(|stream| headers(stream, ECHO))
                .collect();
            let blocks = [opening(65_535), requests].into_iter();
            pour(&mut stream, blocks, false).await;
            peers.push(stream);
        }
        hold.others(Moment::Full).await;
    });
    held.outcome.noting(&counted(&held.server))
}

/// Bytes that are sent of each request: less than the window of a stream.
const PART: usize = 3_700 << 10;

/// The beginning of an echo of 16 MiB.
const UNFINISHED: Large = Large {
    path: ECHO,
    head: b"\0\x01\0\0\0\x0A\xFB\xFF\xFF\x07",
    bytes: PART,
    is_whole: false,
};

/// An echo of 2 MiB.
const WHOLE_ECHO: Large = Large {
    path: ECHO,
    head: b"\0\0\x20\0\x05\x0A\x80\x80\x80\x01",
    bytes: 2 << 20,
    is_whole: true,
};

/// The beginning of a conversation: a message of 2 MiB, whose answer is to have a byte.
const LARGE_MESSAGE: Large = Large {
    path: CHAT,
    head: b"\0\0\x20\0\x07\x10\x01\x0A\x80\x80\x80\x01",
    bytes: 2 << 20,
    is_whole: false,
};

/// A large request.
struct Large {
    path: &'static str,
    /// gRPC's prefix, and the key and length of the text.
    head: &'static [u8],
    /// Bytes of the text that are sent.
    bytes: usize,
    /// The request ends with them.
    is_whole: bool,
}

/// Sends so many requests, gives their replies this window, and has an honest client tried. Returns the bytes that left.
fn large_requests(kind: &Kind, most: f64, count: u32, window: u32, large: &Large) -> Held<usize> {
    held(kind, &[], most, async |server, hold| {
        let stream = open(server, &kind.connector).await;
        let mut builder = client::Builder::new();
        let handshake = builder.initial_window_size(window).handshake(stream);
        let (mut sender, connection) = handshake.await.expect("a handshake");
        // The server may end it.
        let connection = tokio::spawn(async move { drop(connection.await) });
        let (mut requests, mut sent) = (Vec::new(), 0);
        for _ in 0..count {
            let Ok(ready) = sender.ready().await else {
                break;
            };
            sender = ready;
            let Ok((reply, mut body)) = sender.send_request(head(server, large.path), false) else {
                break;
            };
            // The server may give no more room.
            let part = time::timeout(Duration::from_secs(1), large.send(&mut body)).await;
            sent += part.unwrap_or(0);
            // Dropping one would reset it.
            requests.push((reply, body));
        }
        hold.others(Moment::Rest).await;
        connection.abort();
        sent
    })
}

fn unfinished(kind: &Kind) -> Outcome {
    let held = large_requests(kind, 192.0, 150, 0, &UNFINISHED);
    let errors = held.server.errors();
    let is_counted = errors.iter().any(|(kind, _)| kind == "max_memory");
    let came = format!("{} MiB sent: {}", held.result >> 20, counted(&held.server));
    held.outcome.and(is_counted, &came)
}

fn head(server: &Server, path: &str) -> Request<()> {
    Request::post(format!("http://{}{path}", server.address()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request")
}

impl Large {
    /// Sends it; returns the bytes that left.
    async fn send(&self, body: &mut SendStream<Bytes>) -> usize {
        let text = [self.head, &vec![b'a'; self.bytes]].concat();
        let mut left = Bytes::from(text);
        let length = left.len();
        body.reserve_capacity(length);
        while !left.is_empty() {
            let Some(Ok(room)) = poll_fn(|cx| body.poll_capacity(cx)).await else {
                break;
            };
            let next = left.split_to(room.min(left.len()));
            if body
                .send_data(next, self.is_whole && left.is_empty())
                .is_err()
            {
                break;
            }
        }
        length - left.len()
    }
}
