//! HTTP/2 peers that take no bytes, that reset what they ask for, and that send frames without end.

use std::time::Duration;

use h2::{Reason, client};
use http::Request;
use netping_benches::processes::Server;
use tokio::time;

use crate::{
    Fault, Kind, Outcome, errors, memory,
    peer::{self, Peer},
    serves, word,
};

pub const FAULTS: [Fault; 6] = [
    Fault {
        what: "100 bulk streams, window 0",
        promised: "at most 160 MiB more memory, others served",
        servers: Kind::is_grpc,
        try_it: no_window,
    },
    Fault {
        what: "3,000 requests, each reset",
        promised: "at most 64 MiB more memory, counted, others served",
        servers: Kind::is_grpc,
        try_it: rapid_reset,
    },
    Fault {
        what: "PING flood, acknowledgements never read",
        promised: FLOODED,
        servers: Kind::is_grpc,
        try_it: |kind| flood(kind, &[], &frame(PING, 0, 0, &[0; 8])),
    },
    Fault {
        what: "SETTINGS flood, acknowledgements never read",
        promised: FLOODED,
        servers: Kind::is_grpc,
        try_it: |kind| flood(kind, &[], &frame(SETTINGS, 0, 0, &[])),
    },
    Fault {
        what: "headers without an end",
        promised: FLOODED,
        servers: Kind::is_grpc,
        try_it: |kind| {
            let first = frame(HEADERS, 0, 1, &[0x82]);
            flood(kind, &first, &frame(CONTINUATION, 0, 1, &LONG_HEADER))
        },
    },
    Fault {
        what: "PRIORITY flood",
        promised: FLOODED,
        servers: Kind::is_grpc,
        try_it: |kind| flood(kind, &[], &frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 0])),
    },
];

const FLOODED: &str = "at most 64 MiB more memory, others served";

/// Types of frames: RFC 9113, section 6.
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

/// A header of 1,000 bytes that is not indexed: RFC 7541, section 6.2.2. Its name is `x`.
const LONG_HEADER: [u8; 1000] = {
    let mut bytes = [b'y'; 1000];
    // The length of the value is 995: 127 in the prefix, and 868 in two bytes more.
    (bytes[0], bytes[1], bytes[2]) = (0, 1, b'x');
    (bytes[3], bytes[4], bytes[5]) = (0x7F, 0xE3, 0x06);
    bytes
};

/// Bytes of a flood.
const FLOOD: usize = 32 << 20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Sends a frame again and again, until the server has taken 32 MiB or wants no more for a second.
fn flood(kind: &Kind, first: &[u8], again: &[u8]) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let before = memory(&server);
    let mut peer = Peer::new(&server, &kind.connector);
    let mut takes = |bytes: &[u8]| peer.send(bytes, Duration::from_secs(1)).is_ok();
    let opening = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &frame(SETTINGS, 0, 0, &[]),
    ]
    .concat();
    let block = again.repeat((64 << 10) / again.len());
    let mut sent = 0;
    if takes(&opening) && takes(first) {
        while sent < FLOOD && takes(&block) {
            sent += block.len();
        }
    }
    let more = memory(&server) - before;
    let honest = serves(&server, kind);
    Outcome {
        came: format!(
            "{more:.0} MiB more after {} MiB; others {}",
            sent >> 20,
            word(honest)
        ),
        kept: honest && more <= 64.0,
    }
}

/// `DataRequest` of 16 MiB in one chunk, as a gRPC message.
const BULK: &[u8] = b"\x00\x00\x00\x00\x0a\x08\x80\x80\x80\x08\x10\x80\x80\x80\x08";

fn request(server: &Server, path: &str) -> Request<()> {
    Request::post(format!("http://{}{path}", server.address()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request")
}

/// Runs a peer on a connection of its own. Returns the server's additional memory while it, and what it
/// asked for, is open, in MiB.
fn peer<F, T>(
    kind: &Kind,
    server: &Server,
    window: u32,
    ask: impl FnOnce(client::SendRequest<bytes::Bytes>) -> F,
) -> f64
where
    F: Future<Output = T>,
{
    let before = memory(server);
    peer::runtime().block_on(async {
        let stream = peer::connected(server).await;
        let stream = kind.connector.connect(stream).await.expect("a handshake");
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(window)
            .max_concurrent_reset_streams(10_000);
        let (send, connection) = builder.handshake(stream).await.expect("a handshake");
        // The server may end it.
        let connection = async move { drop(connection.await) };
        let held = async {
            let asked = ask(send).await;
            time::sleep(Duration::from_secs(1)).await;
            let more = memory(server) - before;
            drop(asked);
            more
        };
        tokio::pin!(connection);
        tokio::pin!(held);
        tokio::select! {
            more = &mut held => more,
            // What is asked then fails.
            () = &mut connection => held.await,
        }
    })
}

fn no_window(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let more = peer(kind, &server, 0, |mut send| {
        let request = || request(&server, "/grpc_bench.DataService/GiveMeData");
        let requests: Vec<_> = (0..100).map(|_| request()).collect();
        async move {
            let mut replies = Vec::new();
            for request in requests {
                let Ok(ready) = send.clone().ready().await else {
                    break;
                };
                send = ready;
                let Ok((reply, mut body)) = send.send_request(request, false) else {
                    break;
                };
                let _ = body.send_data(bytes::Bytes::from_static(BULK), true);
                replies.push(reply);
            }
            // Dropping a reply would reset its stream.
            replies
        }
    });
    let honest = serves(&server, kind);
    Outcome {
        came: format!("{more:.0} MiB more; others {}", word(honest)),
        kept: honest && more <= 160.0,
    }
}

fn rapid_reset(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let more = peer(kind, &server, 65_535, |mut send| {
        let requests: Vec<_> = (0..3000)
            .map(|_| request(&server, "/echopb.Echo/Echo"))
            .collect();
        async move {
            for request in requests {
                let Ok(ready) = send.clone().ready().await else {
                    return;
                };
                send = ready;
                let Ok((_, mut body)) = send.send_request(request, false) else {
                    return;
                };
                body.send_reset(Reason::CANCEL);
                tokio::task::yield_now().await;
            }
        }
    });
    let counted = errors(&server, "http2_goaway_enhance_your_calm");
    let honest = serves(&server, kind);
    let open = server.metric("netping_connections").unwrap_or(f64::NAN);
    Outcome {
        came: format!(
            "{more:.0} MiB more; {counted} goodbyes counted, {open} connections left; others {}",
            word(honest)
        ),
        kept: honest && more <= 64.0 && counted > 0.0,
    }
}
