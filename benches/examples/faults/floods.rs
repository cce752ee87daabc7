//! HTTP/2 peers that send without end what costs the server more than themselves.

use std::iter;

use crate::{
    Fault, Kind, Outcome,
    frames::{
        CONTINUATION, DATA, ECHO, END_HEADERS, END_STREAM, HEADERS, PRIORITY, RST_STREAM, SETTINGS,
        WINDOW_UPDATE, block, frame, headers, opening, ping, request, streams,
    },
    memory::{Moment, held},
    peer::{End, open, pour},
};

pub const FAULTS: [Fault; 11] = [
    Fault {
        what: "PING flood",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| ended(kind, blocks(&ping())),
    },
    Fault {
        what: "PING flood, acknowledgements never read",
        promised: UNREAD,
        servers: Kind::is_grpc,
        try_it: |kind| unread(kind, &ping()),
    },
    Fault {
        what: "SETTINGS flood",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| ended(kind, blocks(&frame(SETTINGS, 0, 0, &[]))),
    },
    Fault {
        what: "SETTINGS flood, acknowledgements never read",
        promised: UNREAD,
        servers: Kind::is_grpc,
        try_it: |kind| unread(kind, &frame(SETTINGS, 0, 0, &[])),
    },
    Fault {
        what: "PRIORITY flood",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| ended(kind, blocks(&frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 0]))),
    },
    Fault {
        what: "WINDOW_UPDATE flood beside a request",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let update = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]);
            ended(kind, [headers(1, ECHO)].into_iter().chain(blocks(&update)))
        },
    },
    Fault {
        what: "headers without an end",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let first = frame(HEADERS, 0, 1, &[0x82]);
            let again = frame(CONTINUATION, 0, 1, &field(NOT_INDEXED, 1000));
            ended(kind, [first].into_iter().chain(blocks(&again)))
        },
    },
    Fault {
        what: "12,000 requests, each reset",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            resets(kind, |stream| {
                let reset = frame(RST_STREAM, 0, stream, &CANCEL);
                [headers(stream, ECHO), reset].concat()
            })
        },
    },
    Fault {
        what: "12,000 requests with too large a window",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            resets(kind, |stream| {
                let update = frame(WINDOW_UPDATE, 0, stream, &LARGEST_WINDOW);
                [headers(stream, ECHO), update].concat()
            })
        },
    },
    Fault {
        what: "12,000 requests with data after the end",
        promised: ENDED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            resets(kind, |stream| {
                let more = frame(DATA, 0, stream, b"more");
                [request(stream, ECHO, b""), more].concat()
            })
        },
    },
    Fault {
        what: "100 header blocks of 64 MB compressed",
        promised: "all taken or GOAWAY with a reason, at most 16 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: bombs,
    },
];

const UNREAD: &str =
    "1 MiB taken or GOAWAY with a reason, at most 64 MiB more memory, others served";
const ENDED: &str = "GOAWAY with a reason, at most 64 MiB more memory, others served";

/// The most that the server may hold more, in MiB.
const MOST: f64 = 64.0;

/// Bytes of a flood, more than sockets hold; and the least that a server takes whose answers are not read.
const FLOOD: usize = 16 << 20;
const LEAST: usize = 1 << 20;

/// An error code: RFC 9113, section 7.
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();

/// Window that is too large in addition to the initial one.
const LARGEST_WINDOW: [u8; 4] = 0x7FFF_FFFF_u32.to_be_bytes();

/// Forms of a field whose name is new: RFC 7541, sections 6.2.1 and 6.2.2.
const INDEXED: u8 = 0x40;
const NOT_INDEXED: u8 = 0;

/// The newest entry of the dynamic table, which is number 62: RFC 7541, sections 2.3.3 and 6.1.
const NEWEST: u8 = 0x80 | 0x3E;

/// Returns a field named `x` with a value of so many bytes, from 255 to 16,000.
fn field(form: u8, length: u16) -> Vec<u8> {
    // An integer with a prefix of 7 bits, and the rest in 7 bits each (section 5.1).
    let [rest, more] = [(length - 127) & 0x7F, (length - 127) >> 7].map(|bits| bits as u8);
    let head = [form, 1, b'x', 0x7F, rest | 0x80, more];
    [&head[..], &vec![b'y'; length.into()]].concat()
}

/// Returns a flood of one frame.
fn blocks(again: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let block = again.repeat((64 << 10) / again.len());
    let count = FLOOD / block.len() + 1;
    (0..count).map(move |_| block.clone())
}

/// Sends a frame again and again, and reads no answer. The server takes all of it, or some and then no more, or says
/// goodbye with a reason.
fn unread(kind: &Kind, again: &[u8]) -> Outcome {
    poured(kind, MOST, blocks(again), false, |sent, end| match end {
        End::Taken => true,
        End::Stalled => sent >= LEAST,
        End::Closed => false,
    })
}

/// Sends what the server must end with a goodbye.
fn ended(kind: &Kind, blocks: impl Iterator<Item = Vec<u8>> + Send) -> Outcome {
    poured(kind, MOST, blocks, true, |_, _| false)
}

/// Sends requests that lead to a reset each.
fn resets(kind: &Kind, request: impl Fn(u32) -> Vec<u8> + Send) -> Outcome {
    ended(kind, streams(12_000).map(request))
}

/// Pours these blocks, which may cost so many MiB, beside an honest client. The promise is kept if the server has said
/// goodbye with a reason, or `is_kept` says so from the bytes that it took and how it ended.
fn poured(
    kind: &Kind,
    most: f64,
    blocks: impl Iterator<Item = Vec<u8>> + Send,
    reads: bool,
    is_kept: impl Fn(usize, End) -> bool,
) -> Outcome {
    let flood = held(kind, &[], most, async |server, hold| {
        let mut stream = open(server, &kind.connector).await;
        let blocks = [opening(65_535)].into_iter().chain(blocks);
        tokio::join!(pour(&mut stream, blocks, reads), hold.others(Moment::Now)).0
    });
    let (sent, end) = flood.result;
    let errors = flood.server.errors().into_iter();
    let goodbye = errors
        .map(|(kind, _)| kind)
        .find(|kind| kind.starts_with("http2_goaway") || kind == "control_frames");
    let kept = goodbye.is_some() || is_kept(sent, end);
    let end = goodbye.unwrap_or_else(|| format!("{end:?}"));
    let came = format!("{:.1} MiB sent, {end}", sent as f64 / f64::from(1 << 20));
    flood.outcome.and(kept, &came)
}

/// Sends header blocks that each refer 16,000 times to a field of 4,000 bytes in the dynamic table.
fn bombs(kind: &Kind) -> Outcome {
    let first = [block(ECHO), field(INDEXED, 4000)].concat();
    let bomb = [block(ECHO), vec![NEWEST; 16_000]].concat();
    let bombs = streams(101)
        .skip(1)
        .map(|stream| without_message(stream, &bomb));
    let blocks = iter::once(without_message(1, &first)).chain(bombs);
    poured(kind, 16.0, blocks, true, |_, end| end == End::Taken)
}

/// Returns a request that has only this header block.
fn without_message(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
}
