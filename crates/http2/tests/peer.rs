//! The client against the `h2` crate's server, in memory: what either side sends is what the other one receives,
//! whatever the lengths, the windows, the limits and the pieces in which bytes arrive.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use bytes::Bytes;
use h2::{Reason as Code, RecvStream, server};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use netping_http2::{
    Config, Reason,
    client::{Body, Client, Event, Slot},
    fields::Fields,
    head::{Head, Target},
};
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    task::LocalSet,
};

/// What is sent, and what is answered.
#[derive(Debug, Clone)]
struct Call {
    head: usize,
    body: usize,
    status: u16,
    headers: Vec<(String, String)>,
    reply: usize,
    trailers: Option<Vec<(String, String)>>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// The server resets the stream after the head.
    Reset,
    /// The client cancels once the head has come.
    Cancelled,
}

#[derive(Debug, Clone)]
struct Plan {
    config: Config,
    window: u32,
    connection_window: u32,
    frame: u32,
    streams: u32,
    table: u32,
    /// What the server adds to its first window, after some requests.
    changes: Vec<u32>,
    heads: Vec<Vec<(String, String)>>,
    calls: Vec<Call>,
    /// Lengths of the pieces in which the client reads and writes.
    pieces: Vec<usize>,
    /// Room for bytes on their way.
    pipe: usize,
}

fn fields(most: usize) -> impl Strategy<Value = Vec<(String, String)>> {
    let name = "x-[a-c]{1,3}";
    prop::collection::vec((name, "[ -~]{0,60}".prop_map(|value| value.trim().to_owned())), 0..most)
}

fn call(heads: usize) -> impl Strategy<Value = Call> {
    let length = || prop_oneof![6 => 0_usize..200, 2 => 0_usize..50_000, 1 => 0_usize..300_000];
    let end = prop_oneof![8 => Just(End::Whole), 1 => Just(End::Reset), 1 => Just(End::Cancelled)];
    (
        (0..heads, length(), 200_u16..500),
        (fields(4), length(), prop::option::of(fields(3)), end),
    )
        .prop_map(|((head, body, status), (headers, reply, trailers, end))| Call {
            head,
            body,
            status,
            headers,
            reply: if status == 204 || status == 304 { 0 } else { reply },
            trailers,
            end,
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    let window = || prop_oneof![300_u32..5000, Just(65_535), 65_535_u32..4_000_000];
    let table = prop_oneof![Just(0_u32), 0_u32..200, Just(4096), Just(65_536)];
    let server = (window(), 65_535_u32..1_000_000, 16_384_u32..200_000, 1_u32..8, table);
    let heads = prop::collection::vec(fields(6), 1..5);
    heads.prop_flat_map(move |heads| {
        let calls = prop::collection::vec(call(heads.len()), 1..12);
        let own = (window(), 65_535_u32..1_000_000);
        let pieces = prop::collection::vec(prop_oneof![1_usize..50, 1_usize..100_000], 1..6);
        let changes = prop::collection::vec(window(), 0..3);
        (Just(heads), calls, own, server.clone(), changes, pieces, 64_usize..200_000)
    })
    .prop_map(|(heads, calls, own, server, mut changes, pieces, pipe)| {
        changes.sort_unstable();
        Plan {
        config: Config { stream_window: own.0, connection_window: own.1 },
        window: server.0,
        connection_window: server.1,
        frame: server.2,
        streams: server.3,
        table: server.4,
        changes,
        heads,
        calls,
        // Very short pieces alone would take long.
        pieces: pieces.into_iter().chain([5000]).collect(),
        pipe,
        }
    })
}

fn contents(number: usize, length: usize) -> Bytes {
    (0..length).map(|at| (at * 7 + number + (at >> 8)) as u8).collect()
}

fn map(fields: &[(String, String)]) -> HeaderMap {
    let fields = fields.iter();
    let parsed = fields.map(|(name, value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let mut map = HeaderMap::new();
    for (name, value) in parsed {
        map.append(name, value);
    }
    map
}

fn seen(fields: &Fields) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields.iter().filter(|(name, _)| *name != b":status") {
        let name = HeaderName::from_bytes(name).unwrap();
        map.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    map
}

async fn serve(plan: Rc<Plan>, pipe: DuplexStream) {
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(plan.window)
        .initial_connection_window_size(plan.connection_window)
        .max_frame_size(plan.frame)
        .max_concurrent_streams(plan.streams)
        .header_table_size(plan.table);
    let mut connection = builder.handshake::<_, Bytes>(pipe).await.unwrap();
    let mut changes = plan.changes.iter();
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = match accepted {
            Ok(accepted) => accepted,
            // The client has all that it wants, and is gone.
            Err(error) if error.is_io() => return,
            Err(error) => panic!("the client breaks the protocol: {error}"),
        };
        // It fails while the last change is not acknowledged.
        // Larger only, as `ask` says.
        if let Some(more) = changes.next() {
            let _ = connection.set_initial_window_size(plan.window + more);
        }
        tokio::task::spawn_local(answer(Rc::clone(&plan), request, respond));
    }
}

async fn answer(plan: Rc<Plan>, request: Request<RecvStream>, mut respond: server::SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let number: usize = head.headers["number"].to_str().unwrap().parse().unwrap();
    let call = &plan.calls[number];
    let mut expected = map(&plan.heads[call.head]);
    expected.append("number", HeaderValue::from(number));
    assert_eq!(head.headers, expected);
    assert_eq!((head.method.as_str(), head.uri.path()), ("PUT", "/a"));
    let mut received = Vec::new();
    while let Some(part) = body.data().await {
        // A cancelled request may end anywhere.
        let Ok(part) = part else { return };
        received.extend_from_slice(&part);
        let _ = body.flow_control().release_capacity(part.len());
    }
    assert!(received == contents(number, call.body), "the body of {number}");
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(call.status).unwrap();
    *response.headers_mut() = map(&call.headers);
    let is_bare = call.reply == 0 && call.trailers.is_none() && call.end == End::Whole;
    let Ok(mut stream) = respond.send_response(response, is_bare) else { return };
    if is_bare {
        return;
    }
    if call.end == End::Reset {
        return stream.send_reset(Code::INTERNAL_ERROR);
    }
    let mut rest = contents(number + 1, call.reply);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let Some(Ok(capacity)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else {
            return;
        };
        let is_end = capacity >= rest.len() && call.trailers.is_none();
        let part = rest.split_to(capacity.min(rest.len()));
        if stream.send_data(part, is_end).is_err() {
            return;
        }
    }
    match &call.trailers {
        Some(trailers) => drop(stream.send_trailers(map(trailers))),
        None if call.reply == 0 => drop(stream.send_data(Bytes::new(), true)),
        None => {}
    }
}

/// A reply as it comes.
#[derive(Debug, Default)]
struct Seen {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    end: Option<Reason>,
}

async fn ask(plan: Rc<Plan>, pipe: DuplexStream) {
    let (mut from, mut to) = split(pipe);
    let mut client = Client::new(plan.config);
    let heads: Vec<_> = plan.calls.iter().enumerate().map(|(number, call)| {
        let number = number.to_string();
        let own = plan.heads[call.head].iter();
        let own = own.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let target = Target { method: "PUT", scheme: "http", authority: "localhost", path: "/a" };
        Head::new(target, own.chain([(&b"number"[..], number.as_bytes())]))
    }).collect();
    let mut open: HashMap<usize, (Slot, usize)> = HashMap::new();
    let replies: RefCell<Vec<Seen>> = RefCell::default();
    let send = |client: &mut Client, number: usize| {
        let body = contents(number, plan.calls[number].body);
        let body = if number % 2 == 0 { Body::Short(&body) } else { Body::Shared(&body) };
        client.request(&heads[number], body).unwrap()
    };
    let (mut input, mut buffer) = (Vec::new(), vec![0; 100_000]);
    // h2 gives a stream no more room whose window its settings made negative, so that the client knows
    // a small one first.
    let mut is_known = plan.window >= 65_535;
    while !is_known {
        let output = client.output().to_vec();
        to.write_all(&output).await.unwrap();
        client.written(output.len());
        let read = from.read(&mut buffer).await.unwrap();
        input.extend_from_slice(&buffer[..read]);
        let taken = client.receive(&input, |_, _| {}).unwrap();
        input.drain(..taken);
        is_known = taken > 0;
    }
    for number in 0..heads.len() {
        let slot = send(&mut client, number);
        open.insert(slot.index(), (slot, number));
        replies.borrow_mut().push(Seen::default());
    }
    let mut pieces = plan.pieces.iter().copied().cycle();
    while !open.is_empty() {
        let piece = pieces.next().unwrap();
        let length = client.output().len().min(piece);
        let output = client.output()[..length].to_vec();
        tokio::select! {
            written = to.write(&output), if !output.is_empty() => client.written(written.unwrap()),
            read = from.read(&mut buffer[..piece]) => {
                let read = read.unwrap();
                assert!(read > 0, "the server closed the connection");
                input.extend_from_slice(&buffer[..read]);
            }
        }
        let mut released = Vec::new();
        let (mut done, mut refused) = (Vec::new(), Vec::new());
        let taken = client.receive(&input, |slot, event| {
            let (_, number) = open[&slot.index()];
            let reply = &mut replies.borrow_mut()[number];
            match event {
                Event::Head(fields) => {
                    reply.status = fields.status().unwrap();
                    reply.headers = seen(fields);
                    if plan.calls[number].end == End::Cancelled {
                        done.push(slot);
                    }
                }
                Event::Data(data) => {
                    reply.body.extend_from_slice(data);
                    released.push((slot, data.len()));
                }
                Event::Trailers(fields) => reply.trailers = Some(seen(fields)),
                Event::End => {
                    reply.end = Some(Reason::NO_ERROR);
                    done.push(slot);
                }
                Event::Reset(reason) => {
                    reply.end = Some(reason);
                    done.push(slot);
                }
                // The server's limit was not known yet.
                Event::Refused => refused.push((slot, number)),
                other => panic!("{other:?}"),
            }
        });
        input.drain(..taken.unwrap());
        for (slot, length) in released {
            client.release(slot, length);
        }
        for (slot, number) in refused {
            open.remove(&slot.index());
            client.close(slot);
            let slot = send(&mut client, number);
            open.insert(slot.index(), (slot, number));
        }
        for slot in done {
            if open.remove(&slot.index()).is_some() {
                client.close(slot);
            }
        }
    }
    for (number, reply) in replies.into_inner().into_iter().enumerate() {
        check(&plan.calls[number], number, &reply);
    }
    // What is left, so that the server sees the end.
    client.say_goodbye();
    while !client.output().is_empty() {
        tokio::select! {
            written = to.write(client.output()) => match written {
                Ok(written) => client.written(written),
                Err(_) => return,
            },
            read = from.read(&mut buffer) => if !matches!(read, Ok(1..)) { return },
        }
    }
}

fn check(call: &Call, number: usize, reply: &Seen) {
    if call.end == End::Reset && reply.status == 0 {
        // The reset may come before the head.
        return assert_eq!(reply.end, Some(Reason::INTERNAL_ERROR));
    }
    assert_eq!(reply.status, call.status);
    let mut headers = reply.headers.clone();
    headers.remove("date");
    headers.remove("content-length");
    assert_eq!(headers, map(&call.headers));
    match call.end {
        End::Whole => {
            assert_eq!(reply.end, Some(Reason::NO_ERROR));
            assert!(reply.body == contents(number + 1, call.reply), "the reply of {number}");
            assert_eq!(reply.trailers, call.trailers.as_ref().map(|trailers| map(trailers)));
        }
        End::Reset => assert_eq!(reply.end, Some(Reason::INTERNAL_ERROR)),
        End::Cancelled => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn both_ends_understand_each_other(plan in plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (near, far) = duplex(plan.pipe);
        let plan = Rc::new(plan);
        LocalSet::new().block_on(&runtime, async {
            let shown = format!("{plan:?}");
            tokio::time::timeout(std::time::Duration::from_secs(20), async {
            let serving = tokio::task::spawn_local(serve(Rc::clone(&plan), far));
            ask(plan, near).await;
            serving.await.unwrap();
            }).await.map_err(|_| panic!("hangs: {shown}")).unwrap();
        });
    }
}
