//! HTTP/2 peers that take no bytes, and that reset what they ask for.

use std::time::Duration;

use h2::{Reason, client};
use http::Request;
use netping_benches::processes::Server;
use tokio::{net::TcpStream, runtime::Builder, time};

use crate::{Fault, Kind, Outcome, errors, memory, serves, word};

pub const FAULTS: [Fault; 2] = [
    Fault {
        what: "100 bulk streams, window 0",
        promised: "at most 160 MiB more memory, others served",
        servers: &["grpc"],
        try_it: no_window,
    },
    Fault {
        what: "3,000 requests, each reset",
        promised: "at most 64 MiB more memory, counted, others served",
        servers: &["grpc"],
        try_it: rapid_reset,
    },
];

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
    server: &Server,
    window: u32,
    ask: impl FnOnce(client::SendRequest<bytes::Bytes>) -> F,
) -> f64
where
    F: Future<Output = T>,
{
    let before = memory(server);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let stream = TcpStream::connect(server.address())
            .await
            .expect("a connection");
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
    if !kind.flags.is_empty() {
        return in_the_clear();
    }
    let server = kind.start(&[]);
    serves(&server, kind);
    let more = peer(&server, 0, |mut send| {
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
    if !kind.flags.is_empty() {
        return in_the_clear();
    }
    let server = kind.start(&[]);
    serves(&server, kind);
    let more = peer(&server, 65_535, |mut send| {
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

fn in_the_clear() -> Outcome {
    Outcome {
        came: "in the clear only".to_owned(),
        kept: true,
    }
}
