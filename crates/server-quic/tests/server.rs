//! The QUIC server as its clients, good and bad, see it.
//!
//! Runtimes have a thread of their own: a client closes its connections while the test waits for
//! the server to end.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use netping_protocol::{
    frame::{Reply, RequestHeader},
    scheme::Scheme,
    tls::{self, ClientOptions},
};
use netping_server_quic::SERVICE;
use netping_serving::testing::TestServer;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig,
    crypto::rustls::QuicClientConfig,
};

/// Limit on a reply, in bytes.
const LONGEST: usize = 1 << 20;

fn start(flags: &[&str]) -> TestServer {
    // With one runtime, all clients meet on one socket.
    let base = ["--tls-self-signed", "--workers", "1"];
    TestServer::start(&SERVICE, &[&base, flags].concat())
}

/// A client's socket.
fn client() -> Endpoint {
    let options = ClientOptions {
        insecure: true,
        ..ClientOptions::default()
    };
    let tls = tls::client(&options, Scheme::Quic.alpn()).unwrap();
    let config = QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let mut config = ClientConfig::new(Arc::new(config));
    // Silent by what it sends, not by what QUIC does.
    let mut transport = TransportConfig::default();
    transport.keep_alive_interval(Some(Duration::from_millis(50)));
    config.transport_config(Arc::new(transport));
    endpoint.set_default_client_config(config);
    endpoint
}

async fn connect(client: &Endpoint, server: &TestServer) -> Result<Connection, ConnectionError> {
    let connecting = client.connect(server.address(), "localhost").unwrap();
    connecting.await
}

fn frame(payload: &[u8], reply: Reply) -> Vec<u8> {
    let header = RequestHeader {
        payload: payload.len() as u32,
        reply,
    };
    [&header.encode(), payload].concat()
}

/// Sends a frame and reads a reply of this length with its header.
async fn call(
    (send, receive): &mut (SendStream, RecvStream),
    request: &[u8],
    length: usize,
) -> Vec<u8> {
    send.write_all(request).await.unwrap();
    let mut reply = vec![0; 4 + length];
    receive.read_exact(&mut reply).await.unwrap();
    reply
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn frames_are_echoed_on_every_stream() {
    let (server, client) = (start(&[]), client());
    let connection = connect(&client, &server).await.unwrap();
    let mut one = connection.open_bi().await.unwrap();
    let mut other = connection.open_bi().await.unwrap();
    let (echo, bytes) = (frame(b"ab", Reply::Echo), frame(b"cd", Reply::Bytes(3)));
    assert_eq!(call(&mut one, &echo, 2).await, b"\0\0\0\x02ab");
    assert_eq!(call(&mut other, &bytes, 3).await, b"\0\0\0\x03cdc");
    assert_eq!(call(&mut one, &bytes, 3).await, b"\0\0\0\x03cdc");
    assert_eq!(server.metric("netping_requests_total").unwrap(), "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_a_server_that_is_told_to_follows_a_client_to_another_address() {
    let echo = frame(b"ab", Reply::Echo);
    for (flags, follows) in [(&["--migration"][..], true), (&[], false)] {
        let (server, client) = (start(flags), client());
        let connection = connect(&client, &server).await.unwrap();
        let mut stream = connection.open_bi().await.unwrap();
        call(&mut stream, &echo, 2).await;
        client
            .rebind(UdpSocket::bind("127.0.0.1:0").unwrap())
            .unwrap();
        let moved = call(&mut stream, &echo, 2);
        if follows {
            assert_eq!(moved.await, b"\0\0\0\x02ab");
        } else {
            let patience = Duration::from_millis(500);
            tokio::time::timeout(patience, moved).await.unwrap_err();
            assert_eq!(server.metric("netping_requests_total").unwrap(), "1");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_over_long_frame_is_refused_and_other_streams_go_on() {
    let (server, client) = (start(&["--max-frame", "1000"]), client());
    let connection = connect(&client, &server).await.unwrap();
    let mut good = connection.open_bi().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&frame(b"x", Reply::Bytes(1001)))
        .await
        .unwrap();
    send.finish().unwrap();
    let answer = receive.read_to_end(LONGEST).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[4..]);
    assert!(
        answer.contains("1001 bytes, longer than 1000 (the server's --max-frame)"),
        "{answer}"
    );
    assert_eq!(server.errors("frame_too_long"), 1);
    let echo = frame(b"ab", Reply::Echo);
    assert_eq!(call(&mut good, &echo, 2).await, b"\0\0\0\x02ab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_within_a_frame_is_counted() {
    let (server, client) = (start(&[]), client());
    let connection = connect(&client, &server).await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&frame(b"abc", Reply::Echo)[..9])
        .await
        .unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(LONGEST).await.unwrap(), b"");
    assert_eq!(server.errors("eof_in_request"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_over_the_limit_are_refused_and_counted() {
    let (server, client) = (start(&["--max-connections", "1"]), client());
    let first = connect(&client, &server).await.unwrap();
    // An idle one would make room.
    let mut stream = first.open_bi().await.unwrap();
    let busy = tokio::spawn(async move {
        loop {
            call(&mut stream, &frame(b"ab", Reply::Echo), 2).await;
        }
    });
    let refused = connect(&client, &server).await.unwrap_err();
    assert!(
        matches!(&refused, ConnectionError::ConnectionClosed(close)
            if close.error_code == quinn::TransportErrorCode::CONNECTION_REFUSED),
        "{refused}"
    );
    assert_eq!(server.errors("max_connections"), 1);
    busy.abort();
    first.close(0_u32.into(), b"");
    server.await_connections(0);
    assert!(connect(&client, &server).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn streams_over_the_limit_wait() {
    let (server, client) = (start(&["--max-streams", "1"]), client());
    let connection = connect(&client, &server).await.unwrap();
    let mut first = connection.open_bi().await.unwrap();
    let echo = frame(b"ab", Reply::Echo);
    assert_eq!(call(&mut first, &echo, 2).await, b"\0\0\0\x02ab");
    let second = connection.open_bi();
    tokio::pin!(second);
    tokio::select! {
        biased;
        _ = &mut second => panic!("a second stream while the first is open"),
        () = std::future::ready(()) => {}
    }
    first.0.finish().unwrap();
    assert_eq!(first.1.read_to_end(LONGEST).await.unwrap(), b"");
    let mut second = second.await.unwrap();
    assert_eq!(call(&mut second, &echo, 2).await, b"\0\0\0\x02ab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silent_connection_is_closed_by_the_idle_deadline() {
    let flags = ["--first-byte-timeout", "10s", "--idle-timeout", "400ms"];
    let (server, client) = (start(&flags), client());
    let connection = connect(&client, &server).await.unwrap();
    let closed = connection.closed().await;
    assert!(
        matches!(&closed, ConnectionError::ApplicationClosed(close) if close.error_code == 1_u32.into()),
        "{closed}"
    );
    assert_eq!(server.errors("idle_timeout"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_on_which_nobody_takes_a_reply_is_closed() {
    let (server, client) = (start(&["--reply-timeout", "200ms"]), client());
    let connection = connect(&client, &server).await.unwrap();
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    // More than the server keeps for it.
    let request = frame(b"x", Reply::Bytes(16 << 20));
    send.write_all(&request.repeat(3)).await.unwrap();
    let closed = connection.closed().await;
    assert!(
        matches!(&closed, ConnectionError::ApplicationClosed(close) if close.error_code == 1_u32.into()),
        "{closed}"
    );
    assert_eq!(server.errors("reply_timeout"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_on_which_nobody_takes_the_last_reply_is_closed() {
    let (server, client) = (start(&["--reply-timeout", "200ms"]), client());
    let connection = connect(&client, &server).await.unwrap();
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    // Less than the server keeps for it, and more than the client takes unread.
    let request = frame(b"x", Reply::Bytes(2 << 20));
    send.write_all(&request).await.unwrap();
    send.finish().unwrap();
    connection.closed().await;
    assert_eq!(server.errors("reply_timeout"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_incomplete_requests_hold_is_limited() {
    let (server, client) = (start(&["--max-held", "1MiB"]), client());
    let connection = connect(&client, &server).await.unwrap();
    let long = frame(&vec![b'x'; 16 << 20], Reply::Bytes(1));
    let mut streams = Vec::new();
    loop {
        let Ok(mut stream) = connection.open_bi().await else {
            break;
        };
        if stream.0.write_all(&long[..3 << 20]).await.is_err() {
            break;
        }
        streams.push(stream);
    }
    let end = connection.closed().await;
    assert!(end.to_string().contains("max_held"), "{end}");
    assert_eq!(server.errors("max_held"), 1);
    // They may hold 33 MiB, and each takes 4 to 8, since memory doubles as a request comes.
    assert!((4..20).contains(&streams.len()), "{}", streams.len());
    let connection = connect(&client, &server).await.unwrap();
    let mut stream = connection.open_bi().await.unwrap();
    call(&mut stream, &frame(b"ab", Reply::Echo), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_drain_answers_received_requests_and_closes() {
    let (server, client) = (
        start(&["--delay", "300ms", "--drain-timeout", "20s"]),
        client(),
    );
    let connection = connect(&client, &server).await.unwrap();
    let mut stream = connection.open_bi().await.unwrap();
    let echo = frame(b"ab", Reply::Echo);
    call(&mut stream, &echo, 2).await;
    let (mut send, mut receive) = stream;
    send.write_all(&echo).await.unwrap();
    send.finish().unwrap();
    // The server has acknowledged the request, and waits for the delay to pass.
    assert_eq!(send.stopped().await, Ok(None));
    server.shut_down();
    assert_eq!(receive.read_to_end(LONGEST).await.unwrap(), b"\0\0\0\x02ab");
    let closed = connection.closed().await;
    assert!(
        matches!(&closed, ConnectionError::ApplicationClosed(close) if close.error_code == 0_u32.into()),
        "{closed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_without_the_protocol_is_refused_and_counted() {
    let server = start(&[]);
    let options = ClientOptions {
        insecure: true,
        ..ClientOptions::default()
    };
    let tls = tls::client(&options, &[b"h3"]).unwrap();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let mut client = client();
    client.set_default_client_config(config);
    assert!(connect(&client, &server).await.is_err());
    server.await_error("tls");
}
