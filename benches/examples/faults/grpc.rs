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
        BULK, CHAT, ECHO, ECHO_OF_300_KB, END_HEADERS, HEADERS, LARGE_BULK, LARGE_ECHO,
        SHORT_CHUNKS, TICKER, WATCH, WINDOW_UPDATE, block, frame, opening, request, streams,
    },
    memory::{Held, Moment, held, rest},
    peer::{self, End, PATIENCE, Peer, open, pour, try_open},
    serves,
};

pub const FAULTS: [Fault; 16] = [
    Fault {
        what: "100 bulk streams, window 0",
        promised: "all sent, not closed, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| no_window(kind, BULK, LARGE_BULK),
    },
    Fault {
        what: "100 echoes of 16 MiB, window 0",
        promised: "all sent, not closed, at most 160 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| no_window(kind, ECHO, LARGE_ECHO),
    },
    Fault {
        what: "10,000 echoes of 300 kB, the largest windows, never read",
        promised: "all sent or counted, at most 192 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| never_read(kind, 10_000, ECHO, ECHO_OF_300_KB, 192.0),
    },
    Fault {
        what: "2,000 bulk streams of messages of 1 KiB, the largest windows, never read",
        promised: "all sent or counted, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, BULK, SHORT_CHUNKS, 160.0),
    },
    Fault {
        what: "2,000 tickers, the largest windows, never read",
        promised: "all sent or counted, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 2000, WATCH, TICKER, 160.0),
    },
    Fault {
        what: "100 conversations with answers of 16 MiB, the largest windows, never read",
        promised: "all sent or counted, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| never_read(kind, 100, CHAT, LARGE_ECHO, 160.0),
    },
    Fault {
        what: "20 conversations with answers of 16 MiB, one after the other, never read",
        promised: "counted, at most 160 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: in_turn,
    },
    Fault {
        what: "300 conversations with a message of 2 MiB",
        promised: "64 MiB taken, counted, at most 224 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| many_large(kind, 300, 1000, &LARGE_MESSAGE),
    },
    Fault {
        what: "300 echoes of 2 MiB that have come, window 0",
        promised: "64 MiB taken, counted, at most 224 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| many_large(kind, 300, 0, &WHOLE_ECHO),
    },
    Fault {
        what: "16,000 requests left open",
        promised: "counted, at most 192 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| left_open(kind, 0),
    },
    Fault {
        what: "16,000 requests with 400 headers, left open",
        promised: "counted, at most 192 MiB more memory, others served",
        servers: Kind::has_bulk,
        try_it: |kind| left_open(kind, 400),
    },
    Fault {
        what: "3,000 requests left open, --max-streams 1000",
        promised: "those beyond it refused, or GOAWAY, others served",
        servers: Kind::is_grpc,
        try_it: beyond_streams,
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
        what: "10,000 requests left open, on each of 4 connections, --max-memory 256MiB",
        promised: "all sent or counted, one stays open, at most 640 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: many_left_open,
    },
    Fault {
        what: "150 requests of 16 MiB, 3.7 MiB of each sent",
        promised: "64 MiB taken, counted, at most 224 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: |kind| many_large(kind, 150, 0, &UNFINISHED),
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

/// The kind under which a connection that holds too much is counted.
const MAX_HELD: &str = "max_held";

/// Judges what was sent, and whether the connection was closed for what it held.
fn judged(held: Held<(usize, End)>, kept: impl FnOnce(End, bool) -> bool) -> Outcome {
    let (sent, end) = held.result;
    let counted = counted(&held.server);
    let kept = kept(end, counted.contains(MAX_HELD));
    let came = format!("{sent} bytes sent, {end:?}");
    held.outcome.and(kept, &came).noting(&counted)
}

/// Sends 100 requests whose replies it gives no room: these wait.
fn no_window(kind: &Kind, path: &str, message: &[u8]) -> Outcome {
    let requests = streams(100).map(|stream| request(stream, path, message));
    let blocks = [opening(0)].into_iter().chain(requests);
    judged(sent(kind, 160.0, blocks, true), |end, is_over| {
        end == End::Taken && !is_over
    })
}

/// Sends so many requests, gives their replies the largest windows, and reads nothing.
fn never_read(kind: &Kind, count: u32, path: &str, message: &[u8], most: f64) -> Outcome {
    let increment = (0x7FFF_FFFF_u32 - 65_535).to_be_bytes();
    let window = frame(WINDOW_UPDATE, 0, 0, &increment);
    let requests = streams(count).map(|stream| request(stream, path, message));
    let blocks = [opening(0x7FFF_FFFF), window].into_iter().chain(requests);
    judged(sent(kind, most, blocks, false), |end, is_over| {
        end == End::Taken || is_over
    })
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
    judged(held, |_, is_over| is_over)
}

/// Returns the beginnings of so many requests, each with so many headers more.
fn beginnings(count: u32, more: u32) -> impl Iterator<Item = Vec<u8>> {
    // Literals that are not indexed, without a value.
    let more =
        (0..more).flat_map(|number| [&[0, 3], format!("{number:03x}").as_bytes(), &[0]].concat());
    let block = [block(ECHO), more.collect()].concat();
    streams(count).map(move |stream| frame(HEADERS, END_HEADERS, stream, &block))
}

/// Leaves 16,000 requests open, each with so many headers more.
fn left_open(kind: &Kind, more: u32) -> Outcome {
    let blocks = [opening(65_535)]
        .into_iter()
        .chain(beginnings(16_000, more));
    judged(sent(kind, 192.0, blocks, true), |_, is_over| is_over)
}

/// Leaves more requests open than the server takes on a connection.
fn beyond_streams(kind: &Kind) -> Outcome {
    let server = kind.start(&["--max-streams", "1000"]);
    let mut peer = Peer::new(&server, &kind.connector);
    let blocks = [opening(65_535)].into_iter().chain(beginnings(3000, 0));
    let bytes: Vec<u8> = blocks.flatten().collect();
    // The server may close the connection.
    let _ = peer.send(&bytes, PATIENCE);
    rest(&server);
    let counted = counted(&server);
    let kept = ["http2_reset_refused_stream", "http2_goaway"]
        .iter()
        .any(|kind| counted.contains(kind));
    Outcome::new(kept && serves(&server, kind), counted)
}

fn many_left_open(kind: &Kind) -> Outcome {
    let flags = ["--max-memory", "256MiB"];
    let held = held(kind, &flags, 640.0, async |server, hold| {
        let (mut peers, mut taken) = (Vec::new(), 0);
        for _ in 0..4 {
            // For further ones, there may be no memory.
            let Ok(mut stream) = try_open(server, &kind.connector).await else {
                break;
            };
            let blocks = [opening(65_535)].into_iter().chain(beginnings(10_000, 0));
            let (_, end) = pour(&mut stream, blocks, false).await;
            taken += u8::from(end == End::Taken);
            peers.push(stream);
        }
        hold.others(Moment::Full).await;
        // What has been freed counts as such for three seconds; then it has to be.
        time::sleep(Duration::from_secs(4)).await;
        let errors = server.errors();
        let closed = errors.iter().find(|(kind, _)| kind == "max_memory");
        (taken, closed.map_or(0, |(_, count)| *count))
    });
    let (taken, closed) = held.result;
    let kept = closed < 4 && (taken == 4 || closed > 0);
    let came = format!("all sent on {taken}, {closed} closed");
    held.outcome.and(kept, &came)
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

/// Sends large requests, of which the server may keep so many that they have [`LEAST`] bytes.
fn many_large(kind: &Kind, count: u32, window: u32, large: &Large) -> Outcome {
    let held = large_requests(kind, 224.0, count, window, large);
    let counted = counted(&held.server);
    let kept = held.result >= LEAST && counted.contains(MAX_HELD);
    let came = format!("{} MiB sent: {counted}", held.result >> 20);
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
