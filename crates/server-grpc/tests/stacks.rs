//! Replies that all stacks have in common, and those of the floor alone.

use std::{
    io::{self, Read, Write},
    net::{Shutdown as Direction, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use bytes::Bytes;
use netping_protocol::{
    echopb::{EchoRequest, WatchRequest, echo_client::EchoClient},
    grpc_bench::{DataRequest, data_service_client::DataServiceClient},
    hello::hello_client::HelloClient,
    message,
    secure::{self, Connector},
    tls::{self, ClientOptions},
};
use netping_server_grpc::SERVICE;
use netping_serving::testing::{TestServer, eventually, read_all};
use prost::Message;
use tokio::time;
use tonic::{Code, transport::Channel};

const STACKS: [&str; 3] = ["tonic", "hyper", "floor"];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn start(stack: &str, flags: &[&str]) -> TestServer {
    TestServer::start(&SERVICE, &[&["--stack", stack], flags].concat())
}

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
async fn every_stack_and_runtime_answers_echo_and_say() {
    for (stack, runtime) in STACKS
        .into_iter()
        .flat_map(|stack| [(stack, "per-core"), (stack, "multi-thread")])
    {
        let server = start(stack, &["--runtime", runtime]);
        let channel = channel(&server).await;
        let mut echo = EchoClient::new(channel.clone());
        for (response_bytes, expected) in [(0, "abc"), (7, "abcabca")] {
            let reply = echo.echo(request("abc", response_bytes)).await.unwrap();
            assert_eq!(reply.into_inner().output, expected, "{stack}");
        }
        // Larger than a frame, than the windows, and than the memory that is given without a reservation.
        let long = "x".repeat(3 << 20);
        let reply = echo.echo(request(&long, 0)).await.unwrap();
        assert!(reply.into_inner().output == long, "{stack}");
        let reply = echo.echo(request("yx", 3 << 20)).await.unwrap();
        assert!(reply.into_inner().output == "yx".repeat(3 << 19), "{stack}");
        let reply = HelloClient::new(channel)
            .say(message::benchmark())
            .await
            .unwrap();
        assert_eq!(
            reply.into_inner(),
            message::say(message::benchmark()),
            "{stack}"
        );
        assert_eq!(
            server.metric("netping_requests_total").unwrap(),
            "5",
            "{stack}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_stack_refuses_with_the_same_codes() {
    for stack in STACKS {
        let server = start(stack, &["--max-message", "1000"]);
        let mut client = Http2::connect(&server).await;
        for (what, headers, body, code) in [
            (
                "an unknown method",
                &[(":path", "/echopb.Echo/Other")][..],
                EMPTY,
                Code::Unimplemented,
            ),
            (
                "an unknown service",
                &[(":path", "/other.Other/Echo")],
                EMPTY,
                Code::Unimplemented,
            ),
            (
                "an encoding",
                &[("grpc-encoding", "gzip")],
                b"\x01\0\0\0\x01x",
                Code::Unimplemented,
            ),
            (
                "a compressed message",
                &[],
                b"\x01\0\0\0\x01x",
                Code::Internal,
            ),
            ("no message", &[], b"", Code::Internal),
            ("half a message", &[], b"\0\0\0\0\x05\x0a", Code::Internal),
            ("no UTF-8", &[], b"\0\0\0\0\x03\x0a\x01\xff", Code::Internal),
            ("no protobuf", &[], b"\0\0\0\0\x01\x0a", Code::Internal),
            (
                "another wire type",
                &[],
                b"\0\0\0\0\x02\x08\x01",
                Code::Internal,
            ),
            (
                "an over-long message",
                &[],
                b"\0\0\0\x03\xe9",
                Code::OutOfRange,
            ),
            (
                "an over-long reply",
                &[],
                b"\0\0\0\0\x06\x0a\x01x\x10\xe9\x07",
                Code::InvalidArgument,
            ),
            (
                "text that is cut",
                &[],
                b"\0\0\0\0\x06\x0a\x02\xc3\xa9\x10\x01",
                Code::InvalidArgument,
            ),
            (
                "a good one",
                &[("content-type", "application/grpc+proto")],
                EMPTY,
                Code::Ok,
            ),
        ] {
            let (answer, _sending) = client.send(headers, body, true).await;
            assert_eq!(answer.await.unwrap().1, code, "{stack}: {what}");
        }
        assert_eq!(server.errors("grpc_invalid_argument"), 2, "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_the_floor_looks_at_the_content_type_and_the_method() {
    for (stack, status) in [("tonic", 200), ("hyper", 200), ("floor", 415)] {
        let server = start(stack, &[]);
        let mut client = Http2::connect(&server).await;
        let headers = [("content-type", "text/plain")];
        let (answer, _sending) = client.send(&headers, EMPTY, true).await;
        assert_eq!(answer.await.unwrap().0, status, "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_stack_finishes_the_call_in_flight_of_a_drain() {
    for stack in STACKS {
        let server = start(stack, &["--delay", "300ms", "--drain-timeout", "20s"]);
        let mut client = Http2::connect(&server).await;
        let (call, _sending) = client.send(&[], EMPTY, true).await;
        // This one waits for nothing. It comes after the call, so that the server has that one.
        let other = [(":path", "/other.Other/Echo")];
        let (other, _sending) = client.send(&other, EMPTY, true).await;
        assert_eq!(other.await.unwrap().1, Code::Unimplemented, "{stack}");
        server.shut_down();
        eventually("a closed port", || {
            TcpStream::connect(server.address()).is_err()
        });
        assert_eq!(call.await.unwrap().1, Code::Ok, "{stack}");
        // The connection is at its end, which the server waits for.
        drop(client);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_stack_answers_over_tls() {
    for stack in STACKS {
        let server = start(stack, &["--tls-self-signed"]);
        let mut client = Http2::on(over_tls(server.connect()).await.unwrap()).await;
        let (answer, _sending) = client.send(&[], EMPTY, true).await;
        assert_eq!(answer.await.unwrap().1, Code::Ok, "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_stack_finishes_a_handshake_before_its_goodbye() {
    for stack in STACKS {
        let server = start(stack, &["--tls-self-signed", "--drain-timeout", "20s"]);
        let stream = server.connect();
        server.await_connections(1);
        server.shut_down();
        eventually("a closed port", || {
            TcpStream::connect(server.address()).is_err()
        });
        assert!(over_tls(stream).await.is_ok(), "{stack}");
    }
}

async fn over_tls(stream: TcpStream) -> io::Result<secure::Stream> {
    stream.set_nonblocking(true)?;
    let options = ClientOptions {
        insecure: true,
        ..ClientOptions::default()
    };
    let config = tls::client(&options, &[b"h2"]).unwrap();
    let name = "localhost".try_into().unwrap();
    let stream = tokio::net::TcpStream::from_std(stream)?;
    Connector::Tls(config.into(), name).connect(stream).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_stack_ends_a_request_that_does_not_go_on() {
    for stack in STACKS {
        let server = start(stack, &["--request-timeout", "200ms"]);
        let mut client = Http2::connect(&server).await;
        // The sender stays, so that the stream is not reset.
        let (answer, _sending) = client.send(&[], b"\0\0\0\0\x03\x0a", false).await;
        assert_eq!(answer.await.unwrap().1, Code::DeadlineExceeded, "{stack}");
        assert_eq!(server.errors("request_timeout"), 1, "{stack}");
        let (answer, _sending) = client.send(&[], EMPTY, true).await;
        assert_eq!(answer.await.unwrap().1, Code::Ok, "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_that_comes_by_single_bytes_is_not_given_more_time() {
    // A message of 300 bytes, which take 3 s.
    const HEAD: &[u8] = b"\0\0\0\x01\x2c";
    let conversations = [
        "/echopb.Echo/Chat",
        "/grpc.testing.BenchmarkService/StreamingCall",
    ];
    for stack in ["tonic", "hyper"] {
        let server = start(stack, &["--request-timeout", "1s"]);
        let mut client = Http2::connect(&server).await;
        for path in conversations {
            let (call, mut sending) = client.send(&[(":path", path)], HEAD, false).await;
            while !call.is_finished() {
                let _ = sending.send_data(Bytes::from_static(b"\0"), false);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let (_, code) = call.await.unwrap();
            assert_eq!(code, Code::DeadlineExceeded, "{stack}, {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_ends_at_the_calls_deadline_though_it_could_go_on() {
    for stack in ["tonic", "hyper"] {
        let server = start(stack, &["--drain-timeout", "100ms"]);
        let mut client = DataServiceClient::new(channel(&server).await);
        let mut request = tonic::Request::new(DataRequest {
            total_bytes: 1 << 40,
            ..DataRequest::default()
        });
        request.set_timeout(Duration::from_millis(200));
        let mut stream = client.give_me_data(request).await.unwrap().into_inner();
        let end = loop {
            match stream.message().await {
                Ok(message) => assert!(message.is_some(), "{stack}"),
                Err(status) => break status.code(),
            }
        };
        assert_eq!(end, Code::DeadlineExceeded, "{stack}");
    }
}

/// Kinds of frames of HTTP/2 (RFC 9113, section 6).
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

/// Sends these frames on a connection of its own; returns the number of frames that come before one of this kind, and its
/// payload.
fn first(server: &TestServer, kind: u8, frames: &[u8]) -> (usize, Vec<u8>) {
    let mut peer = server.connect();
    peer.write_all(PREFACE).unwrap();
    // SETTINGS, its acknowledgement, and WINDOW_UPDATE, which allows more than the initial window.
    peer.read_exact(&mut [0; 33 + 9 + 13]).unwrap();
    // The server may close while this is being written.
    let _ = peer.write_all(frames);
    let mut before = 0;
    loop {
        let mut head = [0; 9];
        peer.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        peer.read_exact(&mut payload).unwrap();
        if head[3] == kind {
            return (before, payload);
        }
        before += 1;
    }
}

/// Checks that a GOAWAY says that the connection held too much, and that the server has counted one.
fn assert_held_too_much(stack: &str, server: &TestServer, goaway: &[u8]) {
    // ENHANCE_YOUR_CALM.
    let expected = [&[0, 0, 0, 11][..], b"max_held"].concat();
    assert!(goaway.ends_with(&expected), "{stack}: {goaway:?}");
    assert_eq!(server.errors("max_held"), 1, "{stack}");
}

#[test]
fn every_stack_closes_a_connection_whose_requests_hold_too_much() {
    for stack in STACKS {
        let server = start(stack, &["--max-held", "1MiB", "--max-message", "400000"]);
        // So many calls that are not whole, and one that is.
        let calls = |count: u32| {
            // A part of a message of 400,000 bytes.
            let part = [&[0][..], &400_000_u32.to_be_bytes(), &[b'x'; 15_000]].concat();
            let mut bytes = Vec::new();
            for stream in (1..2 * count).step_by(2) {
                bytes.extend(head(stream, b"/echopb.Echo/Echo"));
                bytes.extend(frame(0, 0, stream, &part).repeat(4));
            }
            bytes.extend(call(2 * count + 1, b"/echopb.Echo/Echo", EMPTY));
            bytes
        };
        // 1.8 MB, and 10 KiB for each stream.
        first(&server, HEADERS, &calls(30));
        assert_eq!(server.errors("max_held"), 0, "{stack}");
        let (_, goaway) = first(&server, GOAWAY, &calls(80));
        assert_held_too_much(stack, &server, &goaway);
    }
}

#[test]
fn every_stack_closes_a_connection_whose_short_replies_hold_too_much() {
    for stack in STACKS {
        let server = start(stack, &["--max-held", "1MiB", "--max-message", "4000"]);
        // So many calls, whose replies have no window.
        let calls = |count: u32| {
            let mut bytes = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
            let message = request("x", 4000).encode_to_vec();
            let length = (message.len() as u32).to_be_bytes();
            let message = [&[0][..], &length, &message].concat();
            for stream in (1..2 * count).step_by(2) {
                bytes.extend(call(stream, b"/echopb.Echo/Echo", &message));
            }
            bytes
        };
        first(&server, HEADERS, &calls(50));
        assert_eq!(server.errors("max_held"), 0, "{stack}");
        let (answers, goaway) = first(&server, GOAWAY, &calls(4000));
        assert_held_too_much(stack, &server, &goaway);
        // It reads no further.
        assert!(answers < 2000, "{stack}: {answers}");
    }
}

#[test]
fn every_stack_bounds_the_resets_that_a_peer_provokes() {
    for stack in STACKS {
        let server = start(stack, &[]);
        let mut bytes = PREFACE.to_vec();
        for stream in (1..2 * 1100_u32).step_by(2) {
            // HEADERS with a method only: the server must reset the stream.
            bytes.extend(frame(1, 5, stream, &[0x82]));
        }
        let frames = answer(&server, &bytes);
        let resets = frames.iter().filter(|(kind, _)| *kind == 3).count() as u64;
        assert!(resets <= 1024, "{stack}: {resets}");
        // ENHANCE_YOUR_CALM.
        let (_, goaway) = frames.iter().find(|(kind, _)| *kind == 7).unwrap();
        assert_eq!(goaway[4..8], [0, 0, 0, 11], "{stack}");
        server.await_error("http2_goaway_enhance_your_calm");
        assert_eq!(
            server.errors("http2_reset_protocol_error"),
            resets,
            "{stack}"
        );
    }
}

#[test]
fn every_stack_lets_a_drain_end_without_an_answer() {
    for stack in STACKS {
        let server = start(stack, &["--drain-timeout", "1h"]);
        let mut silent = server.connect();
        silent.write_all(PREFACE).unwrap();
        server.await_connections(1);
        server.shut_down();
        read_all(&mut silent);
    }
}

#[test]
fn every_stack_closes_a_peer_that_is_late_or_speaks_tls() {
    for stack in STACKS {
        let server = start(stack, &["--first-byte-timeout", "200ms"]);
        let mut peer = server.connect();
        // Half a preface is not enough.
        peer.write_all(&PREFACE[..12]).unwrap();
        read_all(&mut peer);
        server.await_error("first_byte_timeout");
        let mut peer = server.connect();
        peer.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
        read_all(&mut peer);
        server.await_error("tls");
    }
}

#[test]
fn every_stack_closes_a_peer_whose_frame_does_not_go_on() {
    for stack in STACKS {
        let server = start(stack, &["--request-timeout", "200ms"]);
        let headers = frame(1, 5, 1, &[0x82; 1000]);
        let block = [frame(1, 1, 1, &[0x82]), frame(9, 0, 1, &[0x82; 1000])].concat();
        // A part of a frame's header, of its payload, and of a header block.
        for (bytes, begin) in [(&headers, 5), (&headers, 30), (&block, 10)] {
            let mut peer = server.connect();
            peer.write_all(&[PREFACE, &bytes[..begin]].concat())
                .unwrap();
            let rest = trickle(&peer, bytes[begin..].to_vec(), 1);
            read_all(&mut peer);
            assert!(rest.join().unwrap(), "{stack}");
        }
        server.await_error("request_timeout");
        assert_eq!(server.errors("request_timeout"), 3, "{stack}");
    }
}

#[test]
fn every_stack_closes_a_peer_that_sends_no_request() {
    for stack in STACKS {
        let server = start(stack, &["--idle-timeout", "300ms"]);
        let mut peer = server.connect();
        peer.write_all(PREFACE).unwrap();
        // PING, SETTINGS, PRIORITY, WINDOW_UPDATE of the connection, and a frame that nobody knows.
        let calm = [
            frame(6, 0, 0, &[7; 8]),
            frame(4, 0, 0, b""),
            frame(2, 0, 1, &[0, 0, 0, 0, 7]),
            frame(8, 0, 0, &[0, 0, 0, 1]),
            frame(99, 0, 0, &[7; 8]),
        ];
        let sending = trickle(&peer, calm.concat().repeat(300), 97);
        read_all(&mut peer);
        assert!(sending.join().unwrap(), "{stack}");
        server.await_error("idle_timeout");
    }
}

#[test]
fn every_stack_closes_a_peer_that_floods_it_with_frames_of_no_request() {
    for stack in STACKS {
        let server = start(stack, &[]);
        let mut peer = server.connect();
        peer.write_all(PREFACE).unwrap();
        let mut flooding = peer.try_clone().unwrap();
        let block = frame(6, 0, 0, &[7; 8]).repeat(1000);
        let flood = thread::spawn(move || while flooding.write_all(&block).is_ok() {});
        read_all(&mut peer);
        flood.join().unwrap();
        server.await_error("control_frames");
    }
}

#[test]
fn other_connections_have_their_turn_between_many_requests_of_one() {
    const REQUESTS: u32 = 3000;
    let path = b"/echopb.Echo/Echo";
    let calls = (0..REQUESTS).map(|number| call(2 * number + 1, path, EMPTY));
    let many = calls.collect::<Vec<_>>().concat();
    for stack in ["tonic", "hyper"] {
        let server = start(stack, &["--workers", "1", "--work", "1ms"]);
        let [mut greedy, mut other] = [(); 2].map(|()| server.connect());
        for peer in [&mut greedy, &mut other] {
            peer.write_all(PREFACE).unwrap();
            peer.read_exact(&mut [0; 9]).unwrap();
        }
        greedy.write_all(&many).unwrap();
        other.write_all(&call(1, path, EMPTY)).unwrap();
        other.shutdown(Direction::Write).unwrap();
        let reply = read_all(&mut other);
        // It takes the server three seconds to make all.
        greedy.set_nonblocking(true).unwrap();
        let mut replies = Vec::new();
        let error = greedy.read_to_end(&mut replies).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let answered = |bytes: &[u8]| {
            let frames = frames(bytes);
            frames.iter().filter(|(kind, _)| *kind == 0).count()
        };
        assert_eq!(answered(&reply), 1, "{stack}");
        let count = answered(&replies);
        assert!(count < REQUESTS as usize / 4, "{stack}: {count}");
    }
}

#[test]
fn every_stack_closes_a_peer_that_gives_window_for_nothing() {
    for stack in STACKS {
        let server = start(stack, &[]);
        let mut peer = server.connect();
        peer.write_all(&large_call()).unwrap();
        let mut flooding = peer.try_clone().unwrap();
        let block = frame(8, 0, 0, &[0, 0, 0, 1]).repeat(1000);
        let flood = thread::spawn(move || while flooding.write_all(&block).is_ok() {});
        read_all(&mut peer);
        flood.join().unwrap();
        server.await_error("control_frames");
    }
}

#[test]
fn every_stack_says_why_it_closes_a_connection() {
    let half = &frame(1, 5, 1, &[0x82; 10])[..5];
    for stack in STACKS {
        for (limit, bytes, code) in [
            ("idle-timeout", &b""[..], 0),
            // ENHANCE_YOUR_CALM.
            ("request-timeout", half, 11),
        ] {
            let server = start(stack, &[&format!("--{limit}"), "200ms"]);
            let mut peer = server.connect();
            peer.write_all(&[PREFACE, bytes].concat()).unwrap();
            let frames = frames(&read_all(&mut peer));
            let (_, goaway) = frames.iter().find(|(kind, _)| *kind == 7).unwrap();
            let words = limit.replace('-', "_");
            assert_eq!(goaway[4..8], [0, 0, 0, code], "{stack} {limit}");
            assert_eq!(goaway[8..], *words.as_bytes(), "{stack}");
        }
    }
}

#[test]
fn every_stack_ends_a_reply_that_is_taken_by_single_bytes() {
    for stack in STACKS {
        let server = start(stack, &["--reply-timeout", "200ms"]);
        let mut peer = server.connect();
        peer.write_all(&large_call()).unwrap();
        let single = frame(8, 0, 1, &[0, 0, 0, 1]);
        let sending = trickle(&peer, single.repeat(1500), single.len());
        server.await_error("reply_timeout");
        // The others have closed the connection.
        let _ = peer.shutdown(Direction::Write);
        let frames = frames(&read_all(&mut peer));
        sending.join().unwrap();
        // The floor ends the stream alone, with CANCEL.
        let is_reset = frames.contains(&(3, vec![0, 0, 0, 8]));
        assert_eq!(is_reset, stack == "floor", "{stack}");
        assert_eq!(server.errors("reply_timeout"), 1, "{stack}");
    }
}

#[test]
fn every_stack_ends_an_echo_of_which_one_byte_is_taken() {
    for stack in STACKS {
        let server = start(stack, &["--reply-timeout", "200ms"]);
        let mut peer = server.connect();
        let echo = request(&"x".repeat(16_000), 0);
        peer.write_all(&opening(1, &echo)).unwrap();
        server.await_error("reply_timeout");
    }
}

#[test]
fn every_stack_goes_on_with_a_reply_that_is_taken_frame_by_frame() {
    for stack in STACKS {
        let server = start(stack, &["--reply-timeout", "1s"]);
        let mut peer = server.connect();
        let all = frame(8, 0, 0, &[0x40, 0, 0, 0]);
        peer.write_all(&[large_call(), all].concat()).unwrap();
        let next = frame(8, 0, 1, &[0, 0, 64, 0]);
        // Longer than the limit, and less than the reply.
        let sending = trickle(&peer, next.repeat(90), next.len());
        assert!(!sending.join().unwrap(), "{stack}");
        assert_eq!(server.errors("reply_timeout"), 0, "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_with_an_open_call_makes_no_room_on_any_stack() {
    for stack in STACKS {
        let server = start(stack, &["--delay", "1500ms", "--max-connections", "1"]);
        let mut echo = EchoClient::new(channel(&server).await);
        let call = tokio::spawn(async move { echo.echo(request("abc", 0)).await });
        // One that is idle does so after a second.
        while !call.is_finished() {
            drop(server.connect());
            time::sleep(Duration::from_millis(20)).await;
        }
        let reply = call.await.unwrap().unwrap();
        assert_eq!(reply.into_inner().output, "abc", "{stack}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_ticker_that_skips_every_tick_ends_at_once() {
    for stack in ["tonic", "hyper"] {
        let server = start(stack, &[]);
        let mut echo = EchoClient::new(channel(&server).await);
        let all = WatchRequest {
            count: u32::MAX,
            skipped: 1,
            ..WatchRequest::default()
        };
        let ticks = async { echo.watch(all).await?.into_inner().message().await };
        let tick = time::timeout(Duration::from_secs(5), ticks).await;
        assert_eq!(tick.unwrap().unwrap(), None, "{stack}");
    }
}

#[test]
fn every_stack_awaits_the_rest_of_a_frame_after_a_write_that_had_to_wait() {
    for stack in STACKS {
        let server = start(stack, &["--request-timeout", "200ms"]);
        let mut peer = server.connect();
        let windows = [
            frame(8, 0, 0, &[0x40, 0, 0, 0]),
            frame(8, 0, 1, &[0x40, 0, 0, 0]),
        ];
        // More than sockets hold, and the beginning of a frame.
        let reply = opening(0, &request("x", 16 << 20));
        let part = [0, 0, 100, 1];
        peer.write_all(&[&reply, &windows.concat(), &part[..]].concat())
            .unwrap();
        read_all(&mut peer);
        server.await_error("request_timeout");
    }
}

/// A client's first bytes: a window of nothing, and a call for a reply of 2,000,000 bytes.
fn large_call() -> Vec<u8> {
    opening(0, &request("x", 2_000_000))
}

/// A client's first bytes: a window, and a call of Echo.
fn opening(window: u8, echo: &EchoRequest) -> Vec<u8> {
    let window = frame(4, 0, 0, &[0, 4, 0, 0, 0, window]);
    let message = echo.encode_to_vec();
    let length = (message.len() as u32).to_be_bytes();
    let body = [&[0], &length[..], &message].concat();
    [PREFACE, &window, &call(1, b"/echopb.Echo/Echo", &body)].concat()
}

/// Returns the frames of a call with a message.
fn call(stream: u32, path: &[u8], body: &[u8]) -> Vec<u8> {
    [head(stream, path), frame(0, 1, stream, body)].concat()
}

/// Returns the head of a call.
fn head(stream: u32, path: &[u8]) -> Vec<u8> {
    let headers = [
        &[0x83, 0x86, 4, path.len() as u8][..],
        path,
        b"\x0f\x10\x10application/grpc",
    ]
    .concat();
    frame(1, 4, stream, &headers)
}

/// Sends bytes, so many every 20 ms, until all are sent or the server closes; returns true if it closed.
fn trickle(peer: &TcpStream, bytes: Vec<u8>, each: usize) -> JoinHandle<bool> {
    let mut peer = peer.try_clone().unwrap();
    thread::spawn(move || {
        bytes.chunks(each).any(|part| {
            thread::sleep(Duration::from_millis(20));
            peer.write_all(part).is_err()
        })
    })
}

#[test]
fn the_floor_frees_a_call_that_is_reset() {
    let server = start("floor", &["--delay", "1h", "--max-streams", "1"]);
    let mut bytes = PREFACE.to_vec();
    for stream in [1, 3, 5] {
        bytes.extend(call(stream, b"/echopb.Echo/Echo", EMPTY));
        // CANCEL.
        bytes.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    bytes.extend(call(7, b"/other.Other/Echo", EMPTY));
    let frames = answer(&server, &bytes);
    // REFUSED_STREAM.
    assert!(!frames.contains(&(3, vec![0, 0, 0, 7])), "{frames:?}");
    // The last call, which need not wait, has its reply.
    assert!(frames.iter().any(|(kind, _)| *kind == 1), "{frames:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_floor_waits_with_large_replies_that_nobody_takes() {
    let server = start("floor", &[]);
    let mut client = Http2::connect(&server).await;
    let message = request("x", 16 << 20).encode_to_vec();
    let prefix = (message.len() as u32).to_be_bytes();
    let body: &'static [u8] = [&[0], &prefix[..], &message].concat().leak();
    let mut heads = Vec::new();
    for _ in 0..5 {
        heads.push(client.open(&[], body).await);
    }
    // Four replies of 16 MiB are 64 MiB. Nothing of them is read.
    let fifth = heads.pop().unwrap();
    let mut unread = Vec::new();
    for head in heads {
        unread.push(head.await.unwrap());
    }
    // This one came after the fifth, and is small.
    client.open(&[], EMPTY).await.await.unwrap();
    let mut fifth = Box::pin(fifth);
    let waited = tokio::time::timeout(Duration::ZERO, fifth.as_mut()).await;
    assert!(waited.is_err());
    drop(unread);
    fifth.await.unwrap();
}

/// An empty message.
const EMPTY: &[u8] = b"\0\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends bytes, and returns the kinds and payloads of the frames of the answer.
fn answer(server: &TestServer, bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut peer = server.connect();
    // The server may close while this is being written.
    let _ = peer.write_all(bytes);
    let _ = peer.shutdown(Direction::Write);
    frames(&read_all(&mut peer))
}

/// Returns the kinds and payloads of frames.
fn frames(mut rest: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let (payload, next) = after.split_at(length.min(after.len()));
        frames.push((header[3], payload.to_vec()));
        rest = next;
    }
    frames
}

/// A client that sends its own bytes as messages.
struct Http2 {
    requests: h2::client::SendRequest<Bytes>,
}

impl Http2 {
    async fn connect(server: &TestServer) -> Self {
        Self::on(
            tokio::net::TcpStream::connect(server.address())
                .await
                .unwrap(),
        )
        .await
    }

    async fn on<S>(stream: S) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self { requests }
    }

    /// Sends a call of Echo with headers, of which some replace the usual ones. The body may go on.
    async fn begin(
        &mut self,
        headers: &[(&str, &str)],
        body: &'static [u8],
        is_whole: bool,
    ) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
        let all = [
            &[
                (":path", "/echopb.Echo/Echo"),
                ("content-type", "application/grpc"),
            ],
            headers,
        ]
        .concat();
        let last = |name| all.iter().rfind(|(other, _)| *other == name).unwrap().1;
        let mut request = http::Request::post(format!("http://test{}", last(":path")));
        for (name, value) in &all[1..] {
            if !name.starts_with(':') && last(name) == *value {
                request = request.header(*name, *value);
            }
        }
        self.requests = self.requests.clone().ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (reply, mut sending) = self.requests.send_request(request, false).unwrap();
        // It fails if the server has refused the head already, and ended the stream.
        let _ = sending.send_data(Bytes::from_static(body), is_whole);
        (reply, sending)
    }

    /// Sends a whole call, and returns the head of its reply to come.
    async fn open(
        &mut self,
        headers: &[(&str, &str)],
        body: &'static [u8],
    ) -> h2::client::ResponseFuture {
        self.begin(headers, body, true).await.0
    }

    /// Sends a call, and returns its status of HTTP and its code to come.
    async fn send(
        &mut self,
        headers: &[(&str, &str)],
        body: &'static [u8],
        is_whole: bool,
    ) -> (tokio::task::JoinHandle<(u16, Code)>, h2::SendStream<Bytes>) {
        let (reply, sending) = self.begin(headers, body, is_whole).await;
        (tokio::spawn(status(reply)), sending)
    }
}

async fn status(reply: h2::client::ResponseFuture) -> (u16, Code) {
    let Ok(reply) = reply.await else {
        return (0, Code::Cancelled);
    };
    let (head, mut body) = reply.into_parts();
    while let Some(data) = body.data().await {
        data.unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    let status = trailers
        .get("grpc-status")
        .or(head.headers.get("grpc-status"));
    let code = status.map_or(Code::Unknown, |status| Code::from_bytes(status.as_bytes()));
    (head.status.as_u16(), code)
}
