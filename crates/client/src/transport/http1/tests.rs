use std::time::Duration;

use netping_protocol::secure::Connector;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::yield_now,
    time::timeout,
};

use super::*;
use crate::{
    plan::{Destination, Trust},
    probe::metrics::ServerSource,
    transport::prepared::Prepared,
};

mod against_hyper;

/// A server's end of a connection, and the client's.
pub(super) fn pair(head: RequestHead) -> (Http1, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (Http1::new(Stream::Unix(near), Arc::new(head)), far)
}

pub(super) fn head(prepared: Prepared) -> RequestHead {
    let url = "http://h:81/x?y=1".parse().unwrap();
    let plain = (Connector::Plain, Trust::default());
    let mut destination = Destination::new(url, ServerSource::Nowhere, plain);
    destination.prepared = Arc::new(prepared);
    RequestHead::new(&destination)
}

fn get() -> RequestHead {
    head(Prepared::default())
}

/// Returns the status and the failure of a request with this body.
async fn call(http1: &mut Http1, body: &[u8]) -> Result<u16, (ErrorKind, String)> {
    let mut reply = HttpReply::expected(&Prepared::default());
    // A reply that is waited for in vain fails the test, instead of holding it up.
    let called = timeout(Duration::from_secs(10), http1.call(body, &mut reply)).await;
    let result = called.expect("an end of the call");
    let status = result.map(|()| reply.status.as_u16());
    status.map_err(|failure| (failure.kind, failure.into_detail()))
}

/// Waits until the connection, whose last reply is whole, has noticed what the server did after it.
async fn noticed(http1: &mut Http1) {
    let noticed = async {
        while !http1.is_spent() && matches!(http1.standing, Standing::Ready) {
            yield_now().await;
        }
    };
    let noticed = timeout(Duration::from_secs(10), noticed).await;
    noticed.expect("something to notice");
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong";

#[tokio::test(flavor = "current_thread")]
async fn requests_have_what_their_bodies_and_the_users_headers_demand() {
    let with = |method: &str, headers: &[(&'static str, &'static str)]| {
        let mut prepared = Prepared {
            method: method.parse().unwrap(),
            ..Prepared::default()
        };
        for (name, value) in headers {
            let name = name.parse::<http::HeaderName>().unwrap();
            prepared.headers.append(name, value.parse().unwrap());
        }
        head(prepared)
    };
    let start = |method: &str| format!("{method} /x?y=1 HTTP/1.1\r\nhost: h:81\r\n");
    for (head, body, method, rest) in [
        (with("GET", &[]), "", "GET", "\r\n"),
        (
            with("GET", &[("X-Key", "a b")]),
            "ab",
            "GET",
            "x-key: a b\r\ncontent-length: 2\r\n\r\nab",
        ),
        (with("POST", &[]), "", "POST", "content-length: 0\r\n\r\n"),
        (with("DELETE", &[]), "", "DELETE", "\r\n"),
        (
            with("DELETE", &[("Content-Length", "7")]),
            "",
            "DELETE",
            "content-length: 0\r\n\r\n",
        ),
        (
            with("PUT", &[("Content-Length", "7")]),
            "0123456789ab",
            "PUT",
            "content-length: 12\r\n\r\n0123456789ab",
        ),
        (
            with("PUT", &[("Transfer-Encoding", "chunked")]),
            "0123456789ab",
            "PUT",
            "transfer-encoding: chunked\r\n\r\nc\r\n0123456789ab\r\n0\r\n\r\n",
        ),
        (
            with("PUT", &[("Transfer-Encoding", "gzip")]),
            "",
            "PUT",
            "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
    ] {
        let (mut http1, mut far) = pair(head);
        far.write_all(OK).await.unwrap();
        assert_eq!(call(&mut http1, body.as_bytes()).await, Ok(200));
        let mut sent = vec![0; 1024];
        let length = far.read(&mut sent).await.unwrap();
        let expected = format!("{}{rest}", start(method));
        assert_eq!(String::from_utf8_lossy(&sent[..length]), expected);
    }
    let (mut http1, mut far) = pair(with("GET", &[("Host", "other")]));
    far.write_all(OK).await.unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    let mut sent = vec![0; 1024];
    let length = far.read(&mut sent).await.unwrap();
    assert_eq!(
        &sent[..length],
        b"GET /x?y=1 HTTP/1.1\r\nhost: other\r\n\r\n"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn bodies_of_any_length_are_sent_whole() {
    for coding in ["", "chunked"] {
        let mut prepared = Prepared {
            method: http::Method::POST,
            ..Prepared::default()
        };
        if !coding.is_empty() {
            let name = http::header::TRANSFER_ENCODING;
            prepared.headers.insert(name, coding.parse().unwrap());
        }
        let (mut http1, mut far) = pair(head(prepared));
        for length in [0, 1, 16 << 10, (16 << 10) + 1, 3 << 20, 1] {
            let body: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
            let end = if coding.is_empty() {
                &b""[..]
            } else {
                b"\r\n0\r\n\r\n"
            };
            let expected = [&body[..], end].concat();
            let server = async {
                let mut all = Vec::new();
                loop {
                    let from = all.windows(4).position(|four| four == b"\r\n\r\n");
                    if from.is_some_and(|from| all.len() - from > expected.len())
                        && all.ends_with(&expected)
                    {
                        break;
                    }
                    far.read_buf(&mut all).await.unwrap();
                }
                far.write_all(OK).await.unwrap();
            };
            let (status, ()) = tokio::join!(call(&mut http1, &body), server);
            assert_eq!(status, Ok(200), "{length}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_reply_before_the_request_is_sent_counts_and_ends_the_connection() {
    let refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    let (mut http1, mut far) = pair(get());
    far.write_all(refusal).await.unwrap();
    assert_eq!(call(&mut http1, &vec![0; 8 << 20]).await, Ok(413));
    assert!(http1.is_spent());
    // Also one of a server that then closes the connection.
    let (mut http1, mut far) = pair(get());
    far.write_all(refusal).await.unwrap();
    drop(far);
    assert_eq!(call(&mut http1, b"x").await, Ok(413));
    // Without a reply, the failure of writing is what there is to tell.
    let (mut http1, far) = pair(get());
    drop(far);
    let failure = call(&mut http1, b"x").await.unwrap_err();
    assert_eq!(failure.0, ErrorKind::Reset);
}

#[tokio::test(flavor = "current_thread")]
async fn bytes_after_a_reply_fail_the_next_request() {
    let expected = "bytes after the reply, before the next request: \"more\"";
    let expected = Err((ErrorKind::Protocol, expected.to_owned()));
    // Together with the reply.
    let (mut http1, mut far) = pair(get());
    far.write_all(&[OK, b"more"].concat()).await.unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    assert!(!http1.is_spent());
    assert_eq!(call(&mut http1, b"").await, expected);
    // Later.
    let (mut http1, mut far) = pair(get());
    far.write_all(OK).await.unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    assert!(!http1.is_spent());
    far.write_all(b"more").await.unwrap();
    noticed(&mut http1).await;
    assert!(!http1.is_spent());
    assert_eq!(call(&mut http1, b"").await, expected);
    // After the last reply, nothing is expected.
    let (mut http1, mut far) = pair(get());
    far.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\nmore")
        .await
        .unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    assert!(http1.is_spent());
}

#[tokio::test(flavor = "current_thread")]
async fn a_connection_that_the_server_closes_between_requests_is_spent() {
    let (mut http1, mut far) = pair(get());
    far.write_all(OK).await.unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    assert!(!http1.is_spent());
    far.shutdown().await.unwrap();
    noticed(&mut http1).await;
    assert!(http1.is_spent());
    let failure = call(&mut http1, b"").await.unwrap_err();
    assert_eq!(failure.0, ErrorKind::Eof);
}

#[tokio::test(flavor = "current_thread")]
async fn a_request_that_asks_for_the_end_is_the_last() {
    let mut prepared = Prepared::default();
    let name = http::header::CONNECTION;
    prepared.headers.insert(name, "x, Close".parse().unwrap());
    let (mut http1, mut far) = pair(head(prepared));
    far.write_all(OK).await.unwrap();
    assert_eq!(call(&mut http1, b"").await, Ok(200));
    assert!(http1.is_spent());
}

#[tokio::test(flavor = "current_thread")]
async fn a_connection_whose_request_was_given_up_gets_no_other() {
    let (mut http1, mut far) = pair(get());
    let mut reply = HttpReply::default();
    tokio::select! {
        biased;
        _ = http1.call(b"", &mut reply) => unreachable!("there is no reply"),
        () = yield_now() => {}
    }
    far.write_all(OK).await.unwrap();
    assert!(http1.is_spent());
}

#[tokio::test(flavor = "current_thread")]
async fn replies_that_come_in_pieces_are_read_whole() {
    let (mut http1, mut far) = pair(get());
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\npong\r\n0\r\nA: b\r\n\r\n";
    for length in [1, 7, 40] {
        let server = async {
            for piece in text.chunks(length) {
                far.write_all(piece).await.unwrap();
                yield_now().await;
            }
        };
        let prepared = Prepared::default();
        let mut reply = HttpReply::expected(&prepared);
        let (result, ()) = tokio::join!(http1.call(b"", &mut reply), server);
        result.unwrap();
        let first = std::sync::OnceLock::from(4);
        reply.verify(&prepared, &first).unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_malformed_reply_is_a_protocol_error_that_says_what_is_wrong() {
    let (mut http1, mut far) = pair(get());
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n")
        .await
        .unwrap();
    let expected = "the reply has two different Content-Lengths: 5 and 7";
    assert_eq!(
        call(&mut http1, b"").await,
        Err((ErrorKind::Protocol, expected.to_owned()))
    );
}
