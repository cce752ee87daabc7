//! The same bytes mean the same to hyper's client, but for what is wanted otherwise.

use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use proptest::{prelude::*, sample::select, test_runner::TestRunner};

use super::*;

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// A whole reply: its status, and the length of its body.
    Whole(u16, u64),
    /// The same, and bytes after it.
    Followed(u16, u64),
    Refused,
    /// The connection ended within it.
    Cut,
}

/// Returns what netping makes of these bytes, after which the connection ends.
async fn own(method: &str, bytes: &[u8]) -> Outcome {
    let prepared = Prepared {
        method: method.parse().unwrap(),
        ..Prepared::default()
    };
    let (mut http1, mut far) = pair(head(prepared));
    far.write_all(bytes).await.unwrap();
    far.shutdown().await.unwrap();
    let mut reply = HttpReply::default();
    match http1.call(b"", &mut reply).await {
        Ok(()) => {
            let whole = if matches!(http1.standing, Standing::Broken(_)) {
                Outcome::Followed
            } else {
                Outcome::Whole
            };
            whole(reply.status.as_u16(), reply.length())
        }
        Err(failure) if failure.kind == ErrorKind::Eof => Outcome::Cut,
        Err(failure) => {
            assert_eq!(failure.kind, ErrorKind::Protocol, "{failure}");
            Outcome::Refused
        }
    }
}

/// Returns what hyper makes of them.
async fn hypers(method: &str, bytes: &[u8]) -> Outcome {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(bytes).await.unwrap();
    far.shutdown().await.unwrap();
    let (mut send, connection) = handshake(TokioIo::new(near)).await.unwrap();
    let request = http::Request::builder().method(method).uri("/x");
    let request = request.header("host", "h").body(Empty::<Bytes>::new());
    let exchange = async move {
        let response = send.send_request(request.unwrap()).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>(Outcome::Whole(status, body.len() as u64))
    };
    match tokio::join!(exchange, connection) {
        (Ok(whole), _) => whole,
        // The connection's end explains more than the request's.
        (Err(_), Err(error)) | (Err(error), Ok(())) => failed(&error),
    }
}

fn failed(error: &hyper::Error) -> Outcome {
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(error) = source {
        let io = error.downcast_ref::<io::Error>();
        let http = error.downcast_ref::<hyper::Error>();
        let is_cut = io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
            || http.is_some_and(|error| {
                error.is_incomplete_message() || error.is_canceled() || error.is_closed()
            });
        if is_cut {
            return Outcome::Cut;
        }
        source = error.source();
    }
    Outcome::Refused
}

/// Lines that a reply may have.
const LINES: &[&str] = &[
    "Content-Length: 4",
    "Content-Length: 5",
    "content-length:  4 ",
    "Content-Length: x",
    "Content-Length: -4",
    "Content-Length: 4 4",
    "Content-Length: 99999999999999999999999",
    "Transfer-Encoding: chunked",
    "transfer-encoding: CHUNKED",
    "Connection: close",
    "Connection: keep-alive",
    "X-Other: a",
    "no colon",
    "Bad Name: a",
    " folded",
    "X-Empty:",
];

const BODIES: &[&str] = &[
    "",
    "pong",
    "pongs",
    "4\r\npong\r\n0\r\n\r\n",
    "4;a=b\r\npong\r\n0\r\nA: b\r\n\r\n",
    "2\r\npo\r\n2\r\nng\r\n0\r\n\r\n",
    "4\r\npongs\r\n0\r\n\r\n",
    "4\r\npong\r\n",
    "4\r\npo",
    "zz\r\n",
    "\r\n",
    "-1\r\n",
    "fffffffffffffffff\r\n",
    "4\r\npong\r\n0\r\nbad trailer\r\n\r\n",
];

const STARTS: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.1 404",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
    "HTTP/1.1 103 Early\r\nContent-Length: 4\r\n\r\nHTTP/1.1 201 Created",
    "HTTP/1.1 099 X",
    "HTTP/1.1 2000 OK",
    "HTTP/2 200 OK",
    "SSH-2.0-x",
];

/// Returns true for the differences that are wanted.
fn is_wanted(text: &str, method: &str, own: Outcome, hypers: Outcome) -> bool {
    use Outcome::{Cut, Followed, Refused, Whole};
    let has_no_body = method == "HEAD" || text.contains(" 204 ") || text.contains(" 304 ");
    let has_coding = text.to_ascii_lowercase().contains("transfer-encoding");
    match (own, hypers) {
        // Bytes after a reply are the next request's error; hyper has forgotten the reply by then, or not
        // seen the bytes.
        (Followed(..), Refused) => true,
        (Followed(status, length), Whole(other, others)) => (status, length) == (other, others),
        // hyper does not look at the lengths of bodies that are not there, or that are chunked, nor at some
        // codings.
        (Refused, Whole(..) | Cut) => has_no_body || has_coding,
        _ => false,
    }
}

#[test]
fn replies_mean_what_they_mean_to_hyper() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let case = (
        select(vec!["GET", "HEAD", "POST"]),
        select(STARTS),
        prop::collection::vec(select(LINES), 0..4),
        select(BODIES),
        0..3_usize,
    );
    let config = ProptestConfig::with_cases(4_000);
    TestRunner::new(config)
        .run(&case, |(method, start, lines, body, cut)| {
            let headers: Vec<String> = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let text = format!("{start}\r\n{}\r\n{body}", headers.concat());
            // Some end early.
            let bytes = match cut {
                0 => &text.as_bytes()[..text.len() / 2],
                _ => text.as_bytes(),
            };
            let (own, hypers) =
                runtime.block_on(async { (own(method, bytes).await, hypers(method, bytes).await) });
            prop_assert!(
                own == hypers || is_wanted(&text, method, own, hypers),
                "{method} {text:?}: {own:?}, hyper {hypers:?}"
            );
            Ok(())
        })
        .unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn differences_from_hyper_are_wanted() {
    let ok = |lines: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}");
    let chunks = "4\r\npong\r\n0\r\n\r\n";
    let late = ok("Content-Length: 0\r\n", "");
    for (text, expected, hypers_outcome) in [
        // A list of lengths: RFC 9112, section 6.3, allows both.
        (
            ok("Content-Length: 4, 4\r\n", "pong"),
            Outcome::Refused,
            Outcome::Whole(200, 4),
        ),
        // Codings that nobody decodes, so the body would not be what the server meant.
        (
            ok("Transfer-Encoding: gzip, chunked\r\n", chunks),
            Outcome::Refused,
            Outcome::Whole(200, 4),
        ),
        (
            ok("Transfer-Encoding: gzip\r\n", "pong"),
            Outcome::Refused,
            Outcome::Whole(200, 4),
        ),
        // Lengths of bodies that are not there, or that are chunked.
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: x\r\n\r\n".to_owned(),
            Outcome::Refused,
            Outcome::Whole(204, 0),
        ),
        (
            ok(
                "Content-Length: x\r\nTransfer-Encoding: chunked\r\n",
                chunks,
            ),
            Outcome::Refused,
            Outcome::Whole(200, 4),
        ),
        // Another protocol.
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
            Outcome::Refused,
            Outcome::Whole(101, 0),
        ),
        // Any number of interim replies, and heads of 400 KiB.
        (
            "HTTP/1.1 100 Continue\r\n\r\n".repeat(30) + &late,
            Outcome::Refused,
            Outcome::Whole(200, 0),
        ),
        (
            ok(
                &format!("A: {}\r\nContent-Length: 0\r\n", "b".repeat(100_000)),
                "",
            ),
            Outcome::Refused,
            Outcome::Whole(200, 0),
        ),
    ] {
        let shown = &text[..text.len().min(100)];
        assert_eq!(own("GET", text.as_bytes()).await, expected, "{shown}");
        let other = hypers("GET", text.as_bytes()).await;
        assert_eq!(other, hypers_outcome, "{shown}");
    }
}
