//! The gRPC server as its clients, good and bad, see it.
//!
//! Runtimes have a thread of their own: a client closes its connections while the test waits for
//! the server to end.

use std::{
    io::Write,
    net::{Shutdown as Direction, TcpStream},
    pin::Pin,
    task::{Context, Waker},
};

use bytes::Bytes;
use h2::{SendStream, client::ResponseFuture};
use netping_protocol::{
    echopb::{EchoRequest, echo_client::EchoClient},
    grpc_bench::{DataRequest, data_service_client::DataServiceClient},
    hello::hello_client::HelloClient,
    message,
};
use netping_server_grpc::SERVICE;
use netping_serving::testing::{TestServer, eventually, read_all};
use prost::Message;
use tokio_stream::StreamExt;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn channel(server: &TestServer) -> Channel {
    let url = format!("http://{}", server.address());
    Channel::from_shared(url).unwrap().connect().await.unwrap()
}

fn request(input: &str, response_bytes: u32) -> EchoRequest {
    EchoRequest {
        input: input.to_owned(),
        response_bytes,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_rpc_answers() {
    let server = TestServer::start(&SERVICE, &[]);
    let channel = channel(&server).await;
    let mut echo = EchoClient::new(channel.clone());
    for (response_bytes, expected) in [(0, "abc"), (7, "abcabca")] {
        let reply = echo.echo(request("abc", response_bytes)).await.unwrap();
        assert_eq!(reply.into_inner().output, expected);
    }
    let reply = HelloClient::new(channel.clone())
        .say(message::benchmark())
        .await
        .unwrap();
    assert_eq!(reply.into_inner(), message::say(message::benchmark()));
    let bulk = DataRequest {
        total_bytes: 2500,
        chunk_bytes: 1000,
    };
    let stream = DataServiceClient::new(channel)
        .give_me_data(bulk)
        .await
        .unwrap()
        .into_inner();
    let lengths: Vec<_> = stream
        .map(|chunk| chunk.unwrap().data.len())
        .collect()
        .await;
    assert_eq!(lengths, [1000, 1000, 500]);
    assert_eq!(server.metric("netping_requests_total").unwrap(), "4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_and_reflection_answer() {
    let server = TestServer::start(&SERVICE, &[]);
    let channel = channel(&server).await;
    let health = HealthClient::new(channel.clone())
        .check(HealthCheckRequest::default())
        .await
        .unwrap();
    assert_eq!(health.into_inner().status(), ServingStatus::Serving);

    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut replies = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::once(list))
        .await
        .unwrap()
        .into_inner();
    let reply = replies.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(services)) = reply else {
        panic!("{reply:?}");
    };
    let names: Vec<_> = services
        .service
        .iter()
        .map(|service| &*service.name)
        .collect();
    for name in ["echopb.Echo", "pb.Hello", "grpc_bench.DataService"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn over_long_messages_and_replies_are_refused() {
    let server = TestServer::start(&SERVICE, &["--max-message", "1000"]);
    let mut echo = EchoClient::new(channel(&server).await);
    let long = echo.echo(request(&"x".repeat(1001), 0)).await.unwrap_err();
    assert_eq!(long.code(), Code::OutOfRange, "{long}");
    let reply = echo.echo(request("x", 1001)).await.unwrap_err();
    assert_eq!(reply.code(), Code::InvalidArgument, "{reply}");
    assert!(reply.message().contains("--max-message"), "{reply}");
    assert_eq!(server.errors("grpc_invalid_argument"), 1);
    // The connection stays.
    assert!(echo.echo(request("x", 0)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn text_that_is_not_utf8_is_refused() {
    let server = TestServer::start(&SERVICE, &[]);
    let mut client = Http2::connect(&server).await;
    // An uncompressed message of three bytes: field 1, one byte of text, which is not UTF-8.
    let status = client.call(b"\0\0\0\0\x03\x0a\x01\xff").await;
    assert_eq!(status, Code::Internal);
    let status = client.call(b"\0\0\0\0\x03\x0a\x01a").await;
    assert_eq!(status, Code::Ok);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn concurrent_streams_are_capped() {
    let server = TestServer::start(&SERVICE, &["--max-streams", "7"]);
    let mut client = Http2::connect(&server).await;
    // The settings have come before the first reply.
    client.call(b"\0\0\0\0\0").await;
    assert_eq!(client.requests.current_max_send_streams(), 7);
}

#[test]
fn a_peer_that_provokes_resets_loses_its_connection() {
    let server = TestServer::start(&SERVICE, &[]);
    let mut peer = server.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut bytes = [PREFACE, &settings].concat();
    for stream in (1..2 * 1100_u32).step_by(2) {
        // HEADERS with the end of headers and stream, and with a method only: the server must reset
        // the stream.
        bytes.extend([0, 0, 1, 1, 5]);
        bytes.extend(stream.to_be_bytes());
        bytes.push(0x82);
    }
    // The server may close while this is being written.
    let _ = peer.write_all(&bytes);
    let _ = peer.shutdown(Direction::Write);
    let answer = read_all(&mut peer);
    let mut rest = &answer[..];
    let (mut resets, mut goaway) = (0, None);
    while let Some((header, after)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let (payload, next) = after.split_at(length.min(after.len()));
        match header[3] {
            3 => resets += 1,
            7 => goaway = payload.get(4..8).map(<[u8]>::to_vec),
            _ => {}
        }
        rest = next;
    }
    assert!(resets <= 1024, "{resets}");
    // ENHANCE_YOUR_CALM.
    assert_eq!(goaway, Some(vec![0, 0, 0, 11]));
    server.await_error("http2_goaway_enhance_your_calm");
    assert_eq!(server.errors("http2_reset_protocol_error"), resets);
}

#[test]
fn a_silent_peer_misses_the_first_byte_deadline() {
    let server = TestServer::start(&SERVICE, &["--first-byte-timeout", "200ms"]);
    let mut silent = server.connect();
    // Half a preface is not enough.
    silent.write_all(&PREFACE[..12]).unwrap();
    read_all(&mut silent);
    server.await_error("first_byte_timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_that_does_not_go_on_is_cut_off_and_counted() {
    let server = TestServer::start(&SERVICE, &["--request-timeout", "200ms"]);
    let mut client = Http2::connect(&server).await;
    // The sender stays, so that the stream is not reset.
    let (reply, _sending) = client.send(b"\0\0\0\0\x03\x0a", false).await;
    assert_eq!(status(reply).await, Code::DeadlineExceeded);
    assert_eq!(server.errors("request_timeout"), 1);
    assert_eq!(client.call(b"\0\0\0\0\0").await, Code::Ok);
}

#[test]
fn a_drain_does_not_wait_for_a_peer_without_requests() {
    let server = TestServer::start(&SERVICE, &["--drain-timeout", "1h"]);
    let mut silent = server.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    silent.write_all(&[PREFACE, &settings].concat()).unwrap();
    server.await_connections(1);
    server.shut_down();
    read_all(&mut silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_large_replies_that_nobody_takes_wait_for_memory() {
    const REPLY: u32 = 16 << 20;
    let server = TestServer::start(&SERVICE, &[]);
    let mut client = Http2::connect(&server).await;
    let message = request("x", REPLY).encode_to_vec();
    let prefix = (message.len() as u32).to_be_bytes();
    let body: &'static [u8] = [&[0], &prefix[..], &message].concat().leak();
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(client.send(body, true).await);
    }
    let (mut fifth, _sending) = sent.pop().unwrap();
    // Four replies of 16 MiB are 64 MiB. Nothing of them is read.
    let mut unread = Vec::new();
    for (reply, sending) in sent {
        unread.push((reply.await.unwrap(), sending));
    }
    // This one came after the fifth, and is small.
    let (small, _sending) = client.send(b"\0\0\0\0\0", true).await;
    small.await.unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let polled = Pin::new(&mut fifth).poll(&mut cx);
    assert!(polled.is_pending(), "{polled:?}");
    drop(unread);
    fifth.await.unwrap();
}

#[test]
fn a_peer_that_speaks_tls_to_a_clear_text_port_is_counted() {
    let server = TestServer::start(&SERVICE, &[]);
    let mut peer = server.connect();
    peer.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    read_all(&mut peer);
    server.await_error("tls");
}

#[test]
fn a_drain_ends_even_if_a_peer_is_silent() {
    let server = TestServer::start(&SERVICE, &["--drain-timeout", "100ms"]);
    let mut silent = server.connect();
    server.await_connections(1);
    server.shut_down();
    read_all(&mut silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_drain_finishes_the_stream_in_flight() {
    let server = TestServer::start(&SERVICE, &["--drain-timeout", "20s"]);
    let total_bytes = 64 << 20;
    let bulk = DataRequest {
        total_bytes,
        chunk_bytes: 0,
    };
    let mut stream = DataServiceClient::new(channel(&server).await)
        .give_me_data(bulk)
        .await
        .unwrap()
        .into_inner();
    let mut received = stream.message().await.unwrap().unwrap().data.len() as u64;
    server.shut_down();
    eventually("a closed port", || {
        TcpStream::connect(server.address()).is_err()
    });
    while let Some(chunk) = stream.message().await.unwrap() {
        received += chunk.data.len() as u64;
    }
    assert_eq!(received, total_bytes);
}

/// A client that sends its own bytes as messages.
struct Http2 {
    requests: h2::client::SendRequest<Bytes>,
}

impl Http2 {
    async fn connect(server: &TestServer) -> Self {
        let stream = tokio::net::TcpStream::connect(server.address())
            .await
            .unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self { requests }
    }

    /// Sends a call of Echo; the body may go on.
    async fn send(&mut self, body: &'static [u8], is_whole: bool) -> Sent {
        let request = http::Request::post("http://test/echopb.Echo/Echo")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        self.requests = self.requests.clone().ready().await.unwrap();
        let (reply, mut sending) = self.requests.send_request(request, false).unwrap();
        sending
            .send_data(Bytes::from_static(body), is_whole)
            .unwrap();
        (reply, sending)
    }

    /// Calls Echo with this body and returns the status.
    async fn call(&mut self, body: &'static [u8]) -> Code {
        let (reply, _sending) = self.send(body, true).await;
        status(reply).await
    }
}

/// The reply to come, and the rest of the request.
type Sent = (ResponseFuture, SendStream<Bytes>);

async fn status(reply: ResponseFuture) -> Code {
    let (head, mut body) = reply.await.unwrap().into_parts();
    while let Some(data) = body.data().await {
        data.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    let status = trailers
        .get("grpc-status")
        .or(head.headers.get("grpc-status"));
    Code::from_bytes(status.unwrap().as_bytes())
}
