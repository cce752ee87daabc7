//! The server's end against the h2 crate's client, in memory: whatever the pieces, the windows and the resets,
//! each call gets its own reply, and the connection stays.

use std::{io, time::Duration};

use bytes::Bytes;
use h2::{Reason, client};
use netping_http2::{
    Config,
    head::Head,
    server::{self, Event, Request, Route, Server, Slot},
};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// The length of a reply, which the path tells.
#[derive(Debug, Clone, Copy)]
struct Length(usize);

impl Route for Length {
    fn of(request: &Request) -> Self {
        let path = std::str::from_utf8(request.path()).unwrap();
        Self(path[1..].parse().unwrap())
    }
}

/// Replies to each request with as many bytes as it asks for, and its own bytes repeated. The client may have to
/// write before it reads on, and thus the server reads while a write waits: the pipe may be too short for what both
/// begin with.
async fn serve(stream: DuplexStream, mut server: Server<Length>, piece: usize) -> io::Result<()> {
    let head = Head::of_reply(Some(200), &[("content-type", "text/plain")]);
    let trailers = Head::of_reply(None, &[("grpc-status", "0")]);
    let mut bodies: Vec<(usize, Vec<u8>)> = Vec::new();
    let (mut input, mut buffer) = (Vec::new(), vec![0; piece]);
    let (mut reading, mut writing) = tokio::io::split(stream);
    loop {
        let length = server.output().len().min(piece);
        let read = tokio::select! {
            written = writing.write(&server.output()[..length]), if length > 0 => {
                server.written(written?);
                continue;
            }
            read = reading.read(&mut buffer) => read?,
        };
        if read == 0 {
            return Ok(());
        }
        input.extend_from_slice(&buffer[..read]);
        let mut rest = &input[..];
        while let Some(event) = server.next(&mut rest).map_err(io::Error::other)? {
            let whole: Option<Slot> = match event {
                Event::Request {
                    slot,
                    route,
                    is_end,
                } => {
                    bodies.resize(bodies.len().max(slot.index() + 1), (0, Vec::new()));
                    bodies[slot.index()] = (route.0, Vec::new());
                    is_end.then_some(slot)
                }
                Event::Data { slot, data, is_end } => {
                    bodies[slot.index()].1.extend_from_slice(data);
                    is_end.then_some(slot)
                }
                Event::Reset(_) => None,
            };
            if let Some(slot) = whole {
                let (length, body) = &bodies[slot.index()];
                let body: Vec<_> = body.iter().copied().cycle().take(*length).collect();
                server.reply(slot, &head, &body, &trailers);
            }
        }
        let taken = input.len() - rest.len();
        input.drain(..taken);
    }
}

/// A call: the lengths of its request and reply, and whether the client resets it, and when.
#[derive(Debug, Clone, Copy)]
struct Call {
    request: usize,
    reply: usize,
    reset: Option<bool>,
}

/// Makes a call whose body is this letter.
async fn call(mut requests: client::SendRequest<Bytes>, call: Call, letter: u8) {
    let request = http::Request::post(format!("http://test/{}", call.reply))
        .body(())
        .unwrap();
    let (reply, mut sending) = requests.send_request(request, false).unwrap();
    let mut left = call.request;
    while left > 0 {
        sending.reserve_capacity(left);
        let granted = std::future::poll_fn(|cx| sending.poll_capacity(cx)).await;
        let granted = granted.unwrap().unwrap().min(left);
        sending
            .send_data(vec![letter; granted].into(), false)
            .unwrap();
        left -= granted;
        if call.reset == Some(true) {
            return sending.send_reset(Reason::CANCEL);
        }
    }
    sending.send_data(Bytes::new(), true).unwrap();
    let (head, mut body) = reply.await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let mut length = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        assert!(data.iter().all(|byte| *byte == letter));
        length += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
        if call.reset == Some(false) {
            return sending.send_reset(Reason::CANCEL);
        }
    }
    assert_eq!(length, if call.request == 0 { 0 } else { call.reply });
    let trailers = body.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
}

/// The settings of the two ends, and how the bytes are cut.
#[derive(Debug, Clone, Copy)]
struct Setup {
    server: server::Config,
    window: u32,
    connection: u32,
    table: u32,
    frame: u32,
    piece: usize,
    pipe: usize,
}

fn setup() -> impl Strategy<Value = Setup> {
    let window = || prop_oneof![Just(65_535_u32), 65_535..200_000_u32];
    let own = (
        window(),
        window(),
        1..6_u32,
        prop_oneof![Just(1_u32 << 14), Just(1 << 20)],
    );
    let client = (
        prop_oneof![1..100_u32, 1000..100_000_u32],
        window(),
        prop_oneof![Just(0_u32), Just(40), Just(4096), Just(65_536)],
        prop_oneof![Just(1_u32 << 14), Just(1 << 16)],
    );
    (own, client, 1..40_000_usize, 1..40_000_usize).prop_map(|(own, client, piece, pipe)| Setup {
        server: server::Config {
            receiving: Config {
                stream_window: own.0,
                connection_window: own.1,
                frame: own.3,
            },
            streams: own.2,
        },
        window: client.0,
        connection: client.1,
        table: client.2,
        frame: client.3,
        piece,
        pipe,
    })
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let length = || prop_oneof![0..20_usize, 0..3000_usize, 0..150_000_usize];
    let reset = prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let call = (length(), length(), reset);
    let call = call.prop_map(|(request, reply, reset)| Call {
        request,
        reply,
        reset,
    });
    prop::collection::vec(call, 1..12)
}

async fn run(setup: Setup, calls: Vec<Call>) {
    let (ours, theirs) = tokio::io::duplex(setup.pipe);
    let served = tokio::spawn(serve(theirs, Server::new(setup.server), setup.piece));
    // Before the server's settings have come, a client may open as many streams as it likes, and those above the
    // server's limit are refused: not the calls that are meant here.
    let handshake = client::Builder::new()
        .initial_max_send_streams(setup.server.streams as usize)
        .initial_window_size(setup.window)
        .initial_connection_window_size(setup.connection)
        .header_table_size(setup.table)
        .max_frame_size(setup.frame)
        .handshake(ours);
    let (requests, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let mut running = Vec::new();
    for (place, one) in calls.into_iter().enumerate() {
        let requests = requests.clone().ready().await.unwrap();
        running.push(tokio::spawn(call(requests, one, b'a' + place as u8)));
    }
    for one in running {
        one.await.unwrap();
    }
    drop(requests);
    connection.await.unwrap().unwrap();
    // A client that is done does not wait for the rest, such as an answer to its last frame.
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    let served = served.await.unwrap();
    assert!(served.as_ref().err().is_none_or(gone), "{served:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn every_call_gets_its_own_reply(setup in setup(), calls in calls()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let run = async { tokio::time::timeout(Duration::from_mins(1), run(setup, calls)).await };
        runtime.block_on(run).expect("the calls end");
    }
}
