//! HTTP/2 peers that ask for much and take nothing, or leave their requests open.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use h2::{SendStream, client};
use http::{Request, request::Builder};
use netping_benches::processes::{Server, time_of_day};
use tokio::time;

use crate::{
    Fault, Kind, Outcome, counted,
    frames::{
        BULK, CHAT, ECHO, ECHO_OF_300_KB, LARGE_BULK, LARGE_ECHO, SHORT_CHUNKS, TICKER, WATCH,
        WINDOW_UPDATE, frame, headers, opening, request, streams,
    },
    memory::{Held, Moment, held, rest},
    peer::{self, End, PATIENCE, open, pour, try_open},
};

pub const FAULTS: [Fault; 14] = [
    Fault {
        what: "100 bulk streams, window 0",
        promised: "all sent, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| no_window(kind, BULK, LARGE_BULK),
    },
    Fault {
        what: "100 echoes of 16 MiB, window 0",
        promised: "all sent, at most 160 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| no_window(kind, ECHO, LARGE_ECHO),
    },
    Fault {
        what: "10,000 echoes of 300 kB, the largest windows, never read",
        promised: "all sent, at most 256 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| never_read(kind, 10_000, ECHO, ECHO_OF_300_KB, 256.0),
    },
    Fault {
        what: "2,000 bulk streams of messages of 1 KiB, the largest windows, never read",
        promised: "all sent, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, BULK, SHORT_CHUNKS, 160.0),
    },
    Fault {
        what: "2,000 tickers, the largest windows, never read",
        promised: "all sent, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, WATCH, TICKER, 160.0),
    },
    Fault {
        what: "100 conversations with answers of 16 MiB, the largest windows, never read",
        promised: "all sent, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 100, CHAT, LARGE_ECHO, 160.0),
    },
    Fault {
        what: "20 conversations with answers of 16 MiB, one after the other, never read",
        promised: "all sent, at most 160 MiB more memory, counted, others served",
        servers: Kind::has_bulk,
        try_it: in_turn,
    },
    Fault {
        what: "300 conversations with a message of 2 MiB",
        promised: "64 MiB taken, at most 256 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| all_came(kind, 1000, &LARGE_MESSAGE),
    },
    Fault {
        what: "300 echoes of 2 MiB that have come, window 0",
        promised: "64 MiB taken, at most 256 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| all_came(kind, 0, &WHOLE_ECHO),
    },
    Fault {
        what: "40,000 requests left open",
        promised: "all sent or GOAWAY, at most 256 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: many_open,
    },
    Fault {
        what: "a message of 4 GiB announced",
        promised: "refused within 4 s",
        servers: Kind::is_grpc,
        try_it: too_long,
    },
    Fault {
        what: "half a request with a grpc-timeout of 1 s",
        promised: "DEADLINE_EXCEEDED after 1 to 4 s",
        servers: Kind::is_grpc,
        try_it: past_deadline,
    },
    Fault {
        what: "16,000 requests left open, on each of 4 connections, --max-memory 256MiB",
        promised: "all sent or counted, at most 640 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: left_open,
    },
    Fault {
        what: "150 requests of 16 MiB, 3.7 MiB of each sent",
        promised: "64 MiB taken, at most 192 MiB more memory, counted, others served",
        servers: Kind::is_grpc,
        try_it: unfinished,
    },
];

/// Sends so many requests on a connection that may cost so many MiB, in blocks that begin with its opening, and has an
/// honest client tried when the server is at rest. Returns the bytes that left, and how it ended.
fn sent(
    kind: &Kind,
    most: f64,
    blocks: impl Iterator<Item = Vec<u8>> + Send,
    reads: bool,
) -> Held<(usize, End)> {
    held(kind, &[], most, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        let poured = pour(&mut stream, blocks, reads).await;
        hold.others(Moment::Rest).await;
        poured
    })
}

/// Judges whether all was sent.
fn all_sent(held: Held<(usize, End)>) -> Outcome {
    let (sent, end) = held.result;
    let came = format!("{sent} bytes sent, {end:?}");
    held.outcome.and(end == End::Taken, &came)
}

/// Sends 100 requests whose replies it gives no room.
fn no_window(kind: &Kind, path: &str, message: &[u8]) -> Outcome {
    let requests = streams(100).map(|stream| request(stream, path, message));
    let blocks = [opening(0)].into_iter().chain(requests);
    all_sent(sent(kind, 160.0, blocks, true))
}

/// Sends so many requests, gives their replies the largest windows, and reads nothing.
fn never_read(kind: &Kind, count: u32, path: &str, message: &[u8], most: f64) -> Outcome {
    let increment = (0x7FFF_FFFF_u32 - 65_535).to_be_bytes();
    let window = frame(WINDOW_UPDATE, 0, 0, &increment);
    let requests = streams(count).map(|stream| request(stream, path, message));
    let blocks = [opening(0x7FFF_FFFF), window].into_iter().chain(requests);
    all_sent(sent(kind, most, blocks, false))
}

/// Begins a conversation when the server has done what it can for the last one, and reads nothing.
fn in_turn(kind: &Kind) -> Outcome {
    let held = held(kind, &[], 160.0, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        let (mut taken, mut end) = (0, End::Taken);
        let requests = streams(20).map(|stream| request(stream, CHAT, LARGE_ECHO));
        for block in [opening(0x7FFF_FFFF)].into_iter().chain(requests) {
            let (sent, then) = pour(&mut stream, [block].into_iter(), false).await;
            taken += sent;
            if then != End::Taken {
                end = then;
                break;
            }
            rest(server);
        }
        hold.others(Moment::Rest).await;
        (taken, end)
    });
    let counted = counted(&held.server);
    let is_counted = counted.contains("max_memory");
    all_sent(held).and(is_counted, &counted)
}

/// Returns the beginnings of so many requests.
fn beginnings(count: u32) -> Vec<u8> {
    let requests = streams(count).flat_map(|stream| headers(stream, ECHO));
    requests.collect()
}

/// Leaves more requests open than the server takes on a connection.
fn many_open(kind: &Kind) -> Outcome {
    let blocks = [opening(65_535), beginnings(40_000)].into_iter();
    let held = sent(kind, 256.0, blocks, true);
    let (sent, end) = held.result;
    let counted = counted(&held.server);
    let kept = end == End::Taken || counted.contains("http2_goaway");
    let came = format!("{sent} bytes sent, {end:?}");
    held.outcome.and(kept, &came).noting(&counted)
}

fn left_open(kind: &Kind) -> Outcome {
    let flags = ["--max-memory", "256MiB"];
    let held = held(kind, &flags, 640.0, async |server, hold| {
        let (mut peers, mut taken) = (Vec::new(), 0);
        for _ in 0..4 {
            // For further ones, there may be no memory.
            let Ok(mut stream) = try_open(server, &kind.connector).await else {
                break;
            };
            let blocks = [opening(65_535), beginnings(16_000)].into_iter();
            let (_, end) = pour(&mut stream, blocks, false).await;
            taken += u8::from(end == End::Taken);
            peers.push(stream);
        }
        hold.others(Moment::Full).await;
        taken
    });
    let (taken, counted) = (held.result, counted(&held.server));
    let kept = taken == 4 || counted.contains("max_memory");
    let came = format!("all sent on {taken}");
    held.outcome.and(kept, &came).noting(&counted)
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
            let request = head(server, Builder::new(), large.path);
            let Ok((reply, mut body)) = sender.send_request(request, false) else {
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

/// Least bytes of the large requests that a server must have taken: those that it may keep of a connection.
const LEAST: usize = 64 << 20;

fn all_came(kind: &Kind, window: u32, large: &Large) -> Outcome {
    let held = large_requests(kind, 256.0, 300, window, large);
    let came = format!("{} MiB sent", held.result >> 20);
    held.outcome.and(held.result >= LEAST, &came)
}

fn unfinished(kind: &Kind) -> Outcome {
    let held = large_requests(kind, 192.0, 150, 0, &UNFINISHED);
    let errors = held.server.errors();
    let is_counted = errors.iter().any(|(kind, _)| kind == "max_memory");
    let kept = is_counted && held.result >= LEAST;
    let came = format!("{} MiB sent: {}", held.result >> 20, counted(&held.server));
    held.outcome.and(kept, &came)
}

/// Announces a message that is longer than any may be, and sends a byte of it.
fn too_long(kind: &Kind) -> Outcome {
    let announced = [&[0, 0xFF, 0xFF, 0xFF, 0xFF][..], b"x"].concat();
    let (status, seconds) = refused(kind, Builder::new(), &announced);
    // That of tonic is OUT_OF_RANGE.
    let kept = ["8", "11"].contains(&status.as_str()) && seconds <= 4.0;
    Outcome::new(kept, format!("status {status} after {seconds:.1} s"))
}

fn past_deadline(kind: &Kind) -> Outcome {
    let head = Builder::new().header("grpc-timeout", "1S");
    let (status, seconds) = refused(kind, head, &[0; 3]);
    let kept = status == "4" && (0.95..=4.0).contains(&seconds);
    Outcome::new(kept, format!("status {status} after {seconds:.1} s"))
}

/// Sends a request with these headers and these bytes, which does not end. Returns the status with which it is
/// refused, and when.
fn refused(kind: &Kind, head: Builder, bytes: &[u8]) -> (String, f64) {
    let server = kind.start(&[]);
    peer::runtime().block_on(async {
        let stream = open(&server, &kind.connector).await;
        let handshake = client::handshake(stream).await;
        let (sender, connection) = handshake.expect("a handshake");
        // The server may end it.
        tokio::spawn(async move { drop(connection.await) });
        let mut sender = sender.ready().await.expect("room for a request");
        let begun = time_of_day();
        let sending = sender.send_request(self::head(&server, head, ECHO), false);
        let (reply, mut body) = sending.expect("a request");
        let bytes = Bytes::copy_from_slice(bytes);
        body.send_data(bytes, false).expect("bytes");
        let status = match time::timeout(PATIENCE, reply).await {
            Err(_) => "none".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(reply)) => {
                let status = reply.headers().get("grpc-status").cloned();
                status.map_or("none at once".to_owned(), |status| {
                    String::from_utf8_lossy(status.as_bytes()).into_owned()
                })
            }
        };
        (status, time_of_day() - begun)
    })
}

fn head(server: &Server, head: Builder, path: &str) -> Request<()> {
    head.method("POST")
        .uri(format!("http://{}{path}", server.address()))
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
