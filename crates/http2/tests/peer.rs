//! The client against the `h2` crate's server, in memory: what either side sends is what the other one receives,
//! whatever the lengths, the windows, the limits and the pieces in which bytes arrive.

use std::{
    collections::{HashMap, VecDeque},
    rc::Rc,
    time::Duration,
};

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
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    task::LocalSet,
};

/// Time after which two ends that wait for each other are given up.
const STALLED: Duration = Duration::from_secs(20);

/// A request and its reply.
#[derive(Debug, Clone)]
struct Call {
    head: usize,
    body: usize,
    /// Lengths of the first pieces in which the body is given, if that is not done at once.
    streamed: Option<Vec<usize>>,
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
    /// The increment of the server's first window, after some requests.
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
    prop::collection::vec(
        (
            name,
            "[ -~]{0,60}".prop_map(|value| value.trim().to_owned()),
        ),
        0..most,
    )
}

fn call(heads: usize) -> impl Strategy<Value = Call> {
    let length = || prop_oneof![6 => 0_usize..200, 2 => 0_usize..50_000, 1 => 0_usize..300_000];
    let end = prop_oneof![8 => Just(End::Whole), 1 => Just(End::Reset), 1 => Just(End::Cancelled)];
    let piece = prop_oneof![6 => 1_usize..200, 2 => 1_usize..50_000, 1 => Just(0)];
    let streamed = prop::option::of(prop::collection::vec(piece, 0..6));
    (
        (0..heads, length(), streamed, 200_u16..500),
        (fields(4), length(), prop::option::of(fields(3)), end),
    )
        .prop_map(
            |((head, body, streamed, status), (headers, reply, trailers, end))| Call {
                head,
                body,
                streamed,
                status,
                headers,
                reply: if status == 204 || status == 304 {
                    0
                } else {
                    reply
                },
                trailers,
                end,
            },
        )
}

fn plan() -> impl Strategy<Value = Plan> {
    let window = || prop_oneof![300_u32..5000, Just(65_535), 65_535_u32..4_000_000];
    let table = prop_oneof![Just(0_u32), 0_u32..200, Just(4096), Just(65_536)];
    let server = (
        window(),
        65_535_u32..1_000_000,
        16_384_u32..200_000,
        1_u32..8,
        table,
    );
    let heads = prop::collection::vec(fields(6), 1..5);
    heads
        .prop_flat_map(move |heads| {
            let calls = prop::collection::vec(call(heads.len()), 1..12);
            let own = (window(), 65_535_u32..1_000_000, 16_384_u32..200_000);
            let pieces = prop::collection::vec(prop_oneof![1_usize..50, 1_usize..100_000], 1..6);
            let changes = prop::collection::vec(window(), 0..3);
            (
                Just(heads),
                calls,
                own,
                server.clone(),
                changes,
                pieces,
                64_usize..200_000,
            )
        })
        .prop_map(|(heads, calls, own, server, mut changes, pieces, pipe)| {
            changes.sort_unstable();
            Plan {
                config: Config {
                    stream_window: own.0,
                    connection_window: own.1,
                    frame: own.2,
                },
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
    (0..length)
        .map(|at| (at * 7 + number + (at >> 8)) as u8)
        .collect()
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
        // Larger only, as `Asking` says.
        if let Some(more) = changes.next() {
            let _ = connection.set_initial_window_size(plan.window + more);
        }
        tokio::task::spawn_local(answer(Rc::clone(&plan), request, respond));
    }
}

async fn answer(
    plan: Rc<Plan>,
    request: Request<RecvStream>,
    mut respond: server::SendResponse<Bytes>,
) {
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
    assert!(
        received == contents(number, call.body),
        "the body of {number}"
    );
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(call.status).unwrap();
    *response.headers_mut() = map(&call.headers);
    let is_bare = call.reply == 0 && call.trailers.is_none() && call.end == End::Whole;
    let Ok(mut stream) = respond.send_response(response, is_bare) else {
        return;
    };
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

/// The client, and its end of the pipe.
struct Asking {
    plan: Rc<Plan>,
    client: Client,
    from: ReadHalf<DuplexStream>,
    to: WriteHalf<DuplexStream>,
    input: Vec<u8>,
    buffer: Vec<u8>,
    heads: Vec<Head>,
    /// The calls that are not at their end, by their slots' indexes.
    open: HashMap<usize, (Slot, usize)>,
    replies: Vec<Seen>,
    /// The bytes not yet given of bodies that are streamed, by the calls' numbers, and the next pieces' lengths.
    streaming: HashMap<usize, (Bytes, VecDeque<usize>)>,
}

impl Asking {
    fn new(plan: Rc<Plan>, pipe: DuplexStream) -> Self {
        let (from, to) = split(pipe);
        let head = |(number, call): (usize, &Call)| {
            let number = number.to_string();
            let own = plan.heads[call.head].iter();
            let own = own.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let target = Target {
                method: "PUT",
                scheme: "http",
                authority: "localhost",
                path: "/a",
            };
            Head::new(target, own.chain([(&b"number"[..], number.as_bytes())]))
        };
        Self {
            client: Client::new(plan.config),
            heads: plan.calls.iter().enumerate().map(head).collect(),
            replies: plan.calls.iter().map(|_| Seen::default()).collect(),
            plan,
            from,
            to,
            input: Vec::new(),
            buffer: vec![0; 100_000],
            open: HashMap::new(),
            streaming: HashMap::new(),
        }
    }

    async fn run(mut self) {
        // h2 gives a stream no more room whose window its settings made negative, so that the client knows
        // a small one first.
        while self.plan.window < 65_535 && self.turn(1000).await == 0 {}
        for number in 0..self.heads.len() {
            self.send(number);
        }
        let pieces = Rc::clone(&self.plan);
        let mut pieces = pieces.pieces.iter().copied().cycle();
        while !self.open.is_empty() {
            self.turn(pieces.next().unwrap()).await;
        }
        for (number, reply) in self.replies.iter().enumerate() {
            check(&self.plan.calls[number], number, reply);
        }
    }

    fn send(&mut self, number: usize) {
        let body = contents(number, self.plan.calls[number].body);
        if let Some(lengths) = &self.plan.calls[number].streamed {
            self.streaming
                .insert(number, (body, lengths.clone().into()));
            let slot = self.client.stream(&self.heads[number]).unwrap();
            self.open.insert(slot.index(), (slot, number));
            return self.send_pieces(slot);
        }
        let body = if number.is_multiple_of(2) {
            Body::Short(&body)
        } else {
            Body::Shared(&body)
        };
        let slot = self.client.request(&self.heads[number], body).unwrap();
        self.open.insert(slot.index(), (slot, number));
    }

    /// Gives the next pieces of a streamed body until one of them cannot be sent at once.
    fn send_pieces(&mut self, slot: Slot) {
        let (_, number) = self.open[&slot.index()];
        while self.client.unsent(slot) == 0
            && let Some((rest, lengths)) = self.streaming.get_mut(&number)
        {
            // A server does not accept a long body in very short pieces.
            let length = lengths.pop_front().unwrap_or(rest.len());
            let piece = rest.split_to(length.min(rest.len()));
            // The end comes with the last piece, or alone.
            let is_last = rest.is_empty() && (piece.is_empty() || number.is_multiple_of(3));
            if is_last {
                self.streaming.remove(&number);
            }
            let body = if number.is_multiple_of(2) {
                Body::Short(&piece)
            } else {
                Body::Shared(&piece)
            };
            assert!(self.client.send(slot, body, is_last));
        }
    }

    /// Writes or reads a piece, and returns the bytes that the client has taken.
    async fn turn(&mut self, piece: usize) -> usize {
        let length = self.client.output().len().min(piece);
        let output = &self.client.output()[..length];
        tokio::select! {
            written = self.to.write(output), if length > 0 => {
                self.client.written(written.unwrap());
            }
            read = self.from.read(&mut self.buffer[..piece]) => {
                let read = read.unwrap();
                assert!(read > 0, "the server closed the connection");
                self.input.extend_from_slice(&self.buffer[..read]);
            }
        }
        let (mut released, mut done, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let taken = self.client.receive(&self.input, |slot, event| {
            let (_, number) = self.open[&slot.index()];
            let reply = &mut self.replies[number];
            let is_cancelled = self.plan.calls[number].end == End::Cancelled;
            match event {
                Event::Data(data) => released.push((slot, data.len())),
                // The server's limit was not known yet.
                Event::Refused => refused.push((slot, number)),
                Event::Head(_) if !is_cancelled => {}
                Event::Trailers(_) => {}
                _ => done.push(slot),
            }
            reply.take(&event);
        });
        let taken = taken.unwrap();
        self.input.drain(..taken);
        // No more is kept than what frames other than DATA may have.
        assert!(self.input.len() < 65_536 + 9);
        while let Some(slot) = self.client.next_sent() {
            let is_open = self
                .open
                .get(&slot.index())
                .is_some_and(|(open, _)| *open == slot);
            if is_open && !done.contains(&slot) && !refused.iter().any(|(other, _)| *other == slot)
            {
                self.send_pieces(slot);
            }
        }
        for (slot, length) in released {
            self.client.release(slot, length);
        }
        for (slot, number) in refused {
            self.open.remove(&slot.index());
            self.client.close(slot);
            self.send(number);
        }
        for slot in done {
            if self.open.remove(&slot.index()).is_some() {
                self.client.close(slot);
            }
        }
        taken
    }
}

impl Seen {
    fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Head(fields) => {
                self.status = fields.status().unwrap();
                self.headers = seen(fields);
            }
            Event::Data(data) => self.body.extend_from_slice(data),
            Event::Trailers(fields) => self.trailers = Some(seen(fields)),
            Event::End => self.end = Some(Reason::NO_ERROR),
            Event::Reset(reason) => self.end = Some(*reason),
            Event::Refused => {}
            other => panic!("{other:?}"),
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
            assert!(
                reply.body == contents(number + 1, call.reply),
                "the reply of {number}"
            );
            assert_eq!(
                reply.trailers,
                call.trailers.as_ref().map(|trailers| map(trailers))
            );
        }
        End::Reset => assert_eq!(reply.end, Some(Reason::INTERNAL_ERROR)),
        End::Cancelled => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn both_ends_understand_each_other(plan in plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (near, far) = duplex(plan.pipe);
        let plan = Rc::new(plan);
        let both = async {
            let serving = tokio::task::spawn_local(serve(Rc::clone(&plan), far));
            Asking::new(plan, near).run().await;
            serving.await.unwrap();
        };
        let both = async { tokio::time::timeout(STALLED, both).await };
        prop_assert!(LocalSet::new().block_on(&runtime, both).is_ok(), "both ends wait");
    }
}
