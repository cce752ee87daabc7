//! Implementations of the RPCs.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use netping_protocol::{
    echopb::{EchoRequest, EchoResponse, Tick, WatchRequest, echo_server::Echo},
    grpc_bench::{DataReceived, DataRequest, DataResponse, data_service_server::DataService},
    hello::{BenchmarkMessage, hello_server::Hello},
    message, payload,
};
use netping_serving::{
    Chassis, Connection, Held, Reserved, args::LoadArgs, clock, reply_memory::SMALL,
};
use prost::Message;
use tokio::time;
use tokio_stream::Stream;
use tonic::{Code, Extensions, Request, Response, Status, Streaming};

use crate::{
    GrpcArgs,
    exhausted::exhausted,
    long_work::{LONG, LongWork, NextMessage},
    reply_body::{Announcement, PART},
};

/// Offset of a bulk stream's chunk within a page, in bytes. tonic copies the chunk to a few bytes
/// after the beginning of a page. glibc copies with `rep movsb`, which on AMD's Zen 3 and 4 is
/// several times slower if the source lies just below the destination within its page (glibc bug
/// 30994).
const PAGE_OFFSET: usize = 128;

/// The state of all RPCs.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    chassis: Arc<Chassis>,
    load: LoadArgs,
    pub long_work: LongWork,
    pub args: Arc<GrpcArgs>,
    pattern: Pattern,
    /// The connection that they serve. Those of tonic's own server serve all, and find it at the request.
    connection: Option<Arc<Connection>>,
}

/// The contents of bulk messages, which all streams share.
#[derive(Debug, Clone, Default)]
struct Pattern(Arc<Mutex<Bytes>>);

impl Pattern {
    /// Returns a message of `length` bytes.
    fn of(&self, length: usize) -> Bytes {
        // A lock that is poisoned holds the pattern as it was.
        let mut pattern = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pattern.len() < length {
            let mut bytes = Vec::with_capacity(PAGE_OFFSET + length);
            bytes.resize(PAGE_OFFSET, 0);
            payload::repeat_into(payload::BULK_PATTERN, length, &mut bytes);
            *pattern = Bytes::from(bytes).slice(PAGE_OFFSET..);
        }
        pattern.slice(..length)
    }
}

impl Services {
    /// Returns those of a server.
    pub(crate) fn new(chassis: &Arc<Chassis>, args: &GrpcArgs) -> Self {
        Self {
            chassis: Arc::clone(chassis),
            load: chassis.load,
            long_work: LongWork::new(args.runtime.worker_count()),
            args: Arc::new(args.clone()),
            pattern: Pattern::default(),
            connection: None,
        }
    }

    /// Returns those of a connection.
    pub(crate) fn of(&self, connection: &Arc<Connection>) -> Self {
        Self {
            connection: Some(Arc::clone(connection)),
            ..self.clone()
        }
    }

    /// Returns the connection of a request.
    fn connection<'a>(&'a self, extensions: &'a Extensions) -> Option<&'a Arc<Connection>> {
        let own = self.connection.as_ref();
        own.or_else(|| extensions.get())
    }

    /// Applies the synthetic load to a request and counts it on its connection, which it returns.
    pub(crate) async fn begin<'a>(
        &'a self,
        extensions: &'a Extensions,
    ) -> Option<&'a Arc<Connection>> {
        if !self.load.is_none() {
            // On the heap, as all that few calls need: it would be a part of every call, which is copied.
            Box::pin(self.load.apply()).await;
        }
        let connection = self.connection(extensions)?;
        connection.count_requests(1);
        Some(connection)
    }

    pub(crate) fn invalid(&self, message: String) -> Status {
        self.chassis.shared().count("grpc_invalid_argument");
        Status::invalid_argument(message)
    }

    /// Adds the name of the flag to tonic's refusal of a message over the limit.
    pub(crate) fn name_limit(&self, status: Status) -> Status {
        if status.code() != Code::OutOfRange {
            return status;
        }
        self.chassis.shared().count("grpc_out_of_range");
        Status::out_of_range(format!("{} (the server's --max-message)", status.message()))
    }

    /// Waits until a connection has room for a reply of this many bytes, and its turn to make it; not for a small one.
    /// While it waits for room, the call holds so many of its request.
    pub(crate) async fn reserve(
        &self,
        connection: Option<&Arc<Connection>>,
        request: usize,
        bytes: usize,
    ) -> Result<Option<Reserved>, Status> {
        let Some(connection) = connection.filter(|_| bytes > SMALL) else {
            return Ok(None);
        };
        let reserving = async {
            let reserved = if let Some(reserved) = connection.reserve(bytes).now_or_never() {
                reserved
            } else {
                let mut held = Held::nothing(connection);
                held.set(request as u64).map_err(exhausted)?;
                connection.reserve(bytes).await
            };
            let reserved = reserved.map_err(exhausted)?;
            connection.turn(bytes).await;
            Ok(reserved)
        };
        Box::pin(reserving).await
    }

    /// Rejects a reply or a chunk over the limit.
    pub(crate) fn check_length(&self, what: &str, length: usize) -> Result<(), Status> {
        let limit = self.args.max_message;
        if length <= limit {
            return Ok(());
        }
        let longer = format!("{what} of {length} bytes is longer than {limit}");
        Err(self.invalid(format!("{longer} (the server's --max-message)")))
    }
}

/// Parts of the messages of a long bulk stream, in bytes. Shorter ones would cost it its speed.
const BULK_PART: usize = 512 << 10;

/// Length from which on a bulk stream is long, in bytes: its peer has taken most of it when only a part
/// is left.
const LONG_STREAM: u64 = 8 << 20;

/// Bytes of short messages that tonic hands over at once.
const TOGETHER: usize = 32 << 10;

/// Bytes that hyper takes of a reply before the peer does, up to a part more.
const QUEUED: usize = 400 << 10;

/// The reply to a request.
pub(crate) type Reply<T> = Result<Response<T>, Status>;

/// Returns a reply of which this is said.
pub(crate) fn announcing<T>(message: T, announcement: Announcement) -> Response<T> {
    let mut response = Response::new(message);
    response.extensions_mut().insert(announcement);
    response
}

impl Services {
    /// Returns a reply whose messages have this length, and which holds the memory reserved for it until it has left.
    pub(crate) fn holding<T>(
        &self,
        message: T,
        reserved: Option<Reserved>,
        length: usize,
    ) -> Response<T> {
        if reserved.is_none() && length < LONG {
            return Response::new(message);
        }
        let announcement = Announcement {
            reserved,
            part: PART,
            next: self.long_work.next_of(length),
        };
        announcing(message, announcement)
    }

    /// Returns the length of the answer to a message, in bytes.
    fn answer_length(&self, message: &EchoRequest) -> Result<usize, Status> {
        let length = message.response_bytes as usize;
        if length == 0 {
            return Ok(message.input.len());
        }
        self.check_length("a reply", length)?;
        // It is cut anywhere, and must still be UTF-8.
        if !message.input.is_ascii() {
            return Err(self.invalid("with response_bytes, the input must be ASCII".to_owned()));
        }
        Ok(length)
    }
}

/// Refuses a message of a reply of many before it is made, if its connection would then hold too much. The call keeps
/// room for the `longest` so far. What is returned counts the message until it is made.
pub(crate) fn count_message(
    connection: Option<&Arc<Connection>>,
    longest: usize,
    length: usize,
) -> Result<Option<Held>, Status> {
    let more = length.saturating_sub(longest);
    let mut held = connection
        .filter(|_| more > SMALL)
        .map(|own| Held::nothing(own));
    if let Some(held) = &mut held {
        held.set(2 * more as u64).map_err(exhausted)?;
    }
    Ok(held)
}

/// Waits until it is the connection's turn to make so much of a reply, by [`Connection::turn`].
pub(crate) async fn turn(connection: Option<&Arc<Connection>>, bytes: usize) {
    if let Some(connection) = connection {
        connection.turn(bytes).await;
    }
}

/// Returns the answer of this length to a message.
fn answer(message: EchoRequest, length: usize) -> EchoResponse {
    let EchoRequest {
        mut input,
        response_bytes,
    } = message;
    if response_bytes == 0 {
        return EchoResponse { output: input };
    }
    if input.is_empty() {
        input.push('x');
    }
    // A short text is repeated before it is copied.
    let times = PART.min(length) / input.len();
    let unit = if times > 1 {
        input.repeat(times)
    } else {
        input
    };
    let mut output = String::with_capacity(length);
    while output.len() < length {
        let most = unit.len().min(length - output.len());
        output.push_str(&unit[..most]);
    }
    EchoResponse { output }
}

/// The messages of a conversation.
struct Conversation {
    services: Services,
    messages: Streaming<EchoRequest>,
    connection: Option<Arc<Connection>>,
    /// Length of the longest answer so far.
    longest: usize,
    next: NextMessage,
}

impl Conversation {
    async fn next(&mut self) -> Result<Option<EchoResponse>, Status> {
        let services = &self.services;
        let message = self.messages.message().await;
        let Some(message) = message.map_err(|status| services.name_limit(status))? else {
            return Ok(None);
        };
        services.load.apply().await;
        if let Some(connection) = &self.connection {
            connection.count_requests(1);
        }
        let length = services.answer_length(&message)?;
        let connection = self.connection.as_ref();
        let _held = count_message(connection, self.longest, length)?;
        turn(connection, length).await;
        self.longest = self.longest.max(length);
        self.next.announce(length).await;
        Ok(Some(answer(message, length)))
    }
}

impl Services {
    /// Returns the messages of a ticker, on a schedule that begins now.
    fn ticks(
        &self,
        request: &WatchRequest,
        connection: Option<Arc<Connection>>,
        next: &NextMessage,
    ) -> impl Stream<Item = Result<Tick, Status>> + use<> {
        let WatchRequest {
            period_us,
            count,
            bytes,
            skipped,
        } = *request;
        let period = Duration::from_micros(period_us.into());
        let begun = clock::now();
        let padding = self.pattern.of(bytes as usize);
        let next = next.clone();
        // Where all are skipped, nobody counts them.
        let count = if skipped == 1 { 0 } else { count };
        let numbers =
            (1..=count).filter(move |number| skipped == 0 || !number.is_multiple_of(skipped));
        stream::iter(numbers).then(move |number| {
            let after = period * number;
            let (padding, connection) = (padding.clone(), connection.clone());
            let next = next.clone();
            async move {
                time::sleep_until((begun + after).into()).await;
                turn(connection.as_ref(), padding.len()).await;
                next.announce(padding.len()).await;
                Ok(Tick { number, padding })
            }
        })
    }
}

#[tonic::async_trait]
impl Echo for Services {
    type ChatStream = Pin<Box<dyn Stream<Item = Result<EchoResponse, Status>> + Send>>;
    type WatchStream = Pin<Box<dyn Stream<Item = Result<Tick, Status>> + Send>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Reply<Self::WatchStream> {
        let (_, extensions, request) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let length = request.bytes as usize;
        self.check_length("a message", length)?;
        count_message(connection, 0, length)?;
        let announcement = Announcement::of_each(&self.long_work);
        let ticks = self.ticks(&request, connection.cloned(), &announcement.next);
        Ok(announcing(Box::pin(ticks), announcement))
    }

    async fn echo(&self, request: Request<EchoRequest>) -> Reply<EchoResponse> {
        let (_, extensions, message) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let length = self.answer_length(&message)?;
        let came = message.input.len();
        let reserved = self.reserve(connection, came, length).await?;
        let answer = if length < LONG {
            answer(message, length)
        } else {
            let answer = move || answer(message, length);
            Box::pin(self.long_work.run(reserved.clone(), answer)).await?
        };
        Ok(self.holding(answer, reserved, length))
    }

    async fn chat(&self, request: Request<Streaming<EchoRequest>>) -> Reply<Self::ChatStream> {
        let announcement = Announcement::of_each(&self.long_work);
        let conversation = Conversation {
            services: self.clone(),
            connection: self.connection(request.extensions()).cloned(),
            messages: request.into_inner(),
            longest: 0,
            next: announcement.next.clone(),
        };
        let answers = stream::try_unfold(conversation, |mut conversation| async move {
            let answer = conversation.next().await?;
            Ok(answer.map(|answer| (answer, conversation)))
        });
        Ok(announcing(Box::pin(answers), announcement))
    }
}

#[tonic::async_trait]
impl Hello for Services {
    async fn say(&self, request: Request<BenchmarkMessage>) -> Reply<BenchmarkMessage> {
        let (_, extensions, message) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let message = message::say(message);
        let length = message.encoded_len();
        let reserved = self.reserve(connection, length, length).await?;
        Ok(self.holding(message, reserved, length))
    }
}

#[tonic::async_trait]
impl DataService for Services {
    type GiveMeDataStream = Pin<Box<dyn Stream<Item = Result<DataResponse, Status>> + Send>>;

    async fn give_me_data(&self, request: Request<DataRequest>) -> Reply<Self::GiveMeDataStream> {
        let (_, extensions, request) = request.into_parts();
        let connection = self.begin(&extensions).await;
        let mut left = match request.total_bytes {
            0 => self.args.bulk_total,
            total => total,
        };
        let chunk = match request.chunk_bytes {
            0 => self.args.bulk_chunk,
            chunk => chunk,
        } as usize;
        self.check_length("a chunk", chunk)?;
        // A short stream needs no more than its length.
        let longest = left.min(chunk as u64) as usize;
        let most = 2 * longest.max(TOGETHER) + QUEUED;
        let most = left.min(most as u64) as usize;
        let reserved = self.reserve(connection, 0, most).await?;
        let pattern = self.pattern.of(longest);
        let part = if left < LONG_STREAM { PART } else { BULK_PART };
        let messages = std::iter::from_fn(move || {
            let length = left.min(chunk as u64);
            left -= length;
            let data = pattern.slice(..length as usize);
            (length > 0).then_some(Ok(DataResponse { data }))
        });
        let messages: Self::GiveMeDataStream = Box::pin(tokio_stream::iter(messages));
        let next = self.long_work.next_of(longest);
        let announcement = Announcement {
            reserved,
            part,
            next,
        };
        Ok(announcing(messages, announcement))
    }

    async fn take_my_data(&self, request: Request<Streaming<DataResponse>>) -> Reply<DataReceived> {
        self.begin(request.extensions()).await;
        let mut messages = request.into_inner();
        let mut received = DataReceived::default();
        let named = |status| self.name_limit(status);
        while let Some(message) = messages.message().await.map_err(named)? {
            received.total_bytes += message.data.len() as u64;
            received.chunks += 1;
        }
        Ok(Response::new(received))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{pin::pin, sync::mpsc, task::Waker};

    use clap::{Args, Command, FromArgMatches};
    use http_body_util::Full;
    use netping_serving::{
        Profile,
        testing::{accepted, accepted_with},
    };
    use tokio::{runtime, task::spawn_blocking};
    use tonic::codec::Codec;
    use tonic_prost::ProstCodec;

    use super::*;

    /// Returns the flags of a server whose messages may have 100 bytes.
    pub(crate) fn args() -> GrpcArgs {
        let flags = ["test", "--max-message", "100"];
        let flags = GrpcArgs::augment_args(Command::new("test")).get_matches_from(flags);
        GrpcArgs::from_arg_matches(&flags).unwrap()
    }

    /// Returns its services.
    pub(crate) fn services(chassis: &Arc<Chassis>) -> Services {
        Services::new(chassis, &args())
    }

    /// Returns a request of one message.
    pub(crate) fn request<T>(message: &T) -> Request<Streaming<T>>
    where
        T: Message + Default + 'static,
    {
        let message = message.encode_to_vec();
        let length = (message.len() as u32).to_be_bytes();
        let body = Full::<Bytes>::from([&[0], &length[..], &message].concat());
        let decoder = ProstCodec::<T, T>::default().decoder();
        Request::new(Streaming::new_request(decoder, body, None, None))
    }

    /// Returns true if the first message of a reply is to be made elsewhere.
    pub(crate) fn begins_elsewhere<S: Stream + Unpin>(mut reply: Response<S>) -> bool {
        let next = reply.extensions().get::<Announcement>();
        let next = next.expect("an announcement").next.clone();
        // It may be announced only now.
        next.is_long() || reply.get_mut().next().now_or_never().is_none() && next.is_long()
    }

    #[tokio::test]
    async fn a_conversation_announces_its_long_messages() {
        let (_, chassis, _) = accepted();
        let mut services = services(&chassis);
        Arc::make_mut(&mut services.args).max_message = LONG;
        for length in [LONG - 1, LONG] {
            let message = EchoRequest {
                input: "x".to_owned(),
                response_bytes: length as u32,
            };
            let reply = services.chat(request(&message)).await.unwrap();
            assert_eq!(begins_elsewhere(reply), length == LONG);
        }
    }

    #[tokio::test]
    async fn long_replies_of_a_connection_take_turns() {
        let (accepted, chassis, _) = accepted();
        let connection = accepted.connection();
        let services = services(&chassis);
        let long = 80 << 10;
        let single = || services.reserve(Some(connection), 0, long);
        let message = || turn(Some(connection), long);
        let request = WatchRequest {
            period_us: 0,
            count: 1,
            bytes: 80 << 10,
            skipped: 0,
        };
        let mut ticks =
            pin!(services.ticks(&request, Some(connection.clone()), &NextMessage::Short));
        assert!(ticks.next().await.is_some());
        // It has taken a part of this turn.
        assert!(single().now_or_never().is_none() && message().now_or_never().is_none());
        assert!(single().await.is_ok());
        message().await;
    }

    #[tokio::test]
    async fn a_ticker_announces_its_long_messages() {
        let (_, chassis, _) = accepted();
        let services = services(&chassis);
        let next = services.long_work.next_announced();
        let request = WatchRequest {
            period_us: 0,
            count: 1,
            bytes: LONG as u32,
            skipped: 0,
        };
        let mut ticks = pin!(services.ticks(&request, None, &next));
        while !next.is_long() {
            assert!(ticks.next().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert!(ticks.next().await.is_some());
    }

    #[tokio::test]
    async fn a_message_of_a_conversation_counts_before_it_is_made() {
        let (accepted, chassis, _) = accepted_with(Profile {
            most_held: 3 * LONG as u64,
            ..Profile::ECHO
        });
        let mut services = services(&chassis);
        Arc::make_mut(&mut services.args).max_message = LONG;
        let services = services.of(accepted.connection());
        let message = EchoRequest {
            input: "x".to_owned(),
            response_bytes: LONG as u32,
        };
        let conversation = async || services.chat(request(&message)).await.unwrap().into_inner();
        let mut first = conversation().await;
        assert!(first.next().now_or_never().is_none());
        let refused = conversation().await.next().now_or_never().flatten();
        assert!(refused.is_some_and(|message| message.is_err()));
        drop(first);
        assert!(conversation().await.next().now_or_never().is_none());
    }

    #[test]
    fn an_answer_repeats_its_message() {
        for input in ["", "abc", &"0123456789".repeat(1000)] {
            let length = 2 * BULK_PART + 1;
            let message = EchoRequest {
                input: input.to_owned(),
                response_bytes: length as u32,
            };
            let mut expected = Vec::new();
            payload::repeat_into(input.as_bytes(), length, &mut expected);
            if input.is_empty() {
                expected = vec![b'x'; length];
            }
            assert!(answer(message, length).output.as_bytes() == expected);
        }
    }

    #[tokio::test]
    async fn a_long_answer_is_made_and_encoded_elsewhere() {
        let (_, chassis, _) = accepted();
        let mut services = services(&chassis);
        Arc::make_mut(&mut services.args).max_message = LONG;
        let echo = |length: usize| {
            services.echo(Request::new(EchoRequest {
                input: "x".to_owned(),
                response_bytes: length as u32,
            }))
        };
        // All threads for it are busy.
        let ends: Vec<_> = (0..services.args.runtime.worker_count())
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                let work = services.long_work.clone();
                tokio::spawn(async move { work.run(None, move || ended.recv()).await });
                end
            })
            .collect();
        tokio::task::yield_now().await;
        let short = echo(LONG - 1).now_or_never().unwrap().unwrap();
        assert!(short.extensions().get::<Announcement>().is_none());
        let mut long = pin!(echo(LONG));
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(long.as_mut().poll(&mut cx).is_pending());
        drop(ends);
        let long = long.await.unwrap();
        let announced = long.extensions().get::<Announcement>();
        assert!(announced.is_some_and(|own| own.next.is_long()));
        assert_eq!(long.get_ref().output.len(), LONG);
    }

    #[test]
    fn a_long_answer_that_nobody_wants_is_counted_until_it_is_made() {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build();
        runtime.unwrap().block_on(async {
            let (accepted, chassis, _) = accepted();
            let connection = accepted.connection();
            let mut services = services(&chassis);
            Arc::make_mut(&mut services.args).max_message = LONG;
            let (end, ended) = mpsc::channel::<()>();
            let busy = spawn_blocking(move || ended.recv());
            let mut request = Request::new(EchoRequest {
                input: String::new(),
                response_bytes: LONG as u32,
            });
            request.extensions_mut().insert(connection.clone());
            let mut call = services.echo(request);
            // First it waits for its turn.
            for _ in 0..2 {
                assert!(call.as_mut().now_or_never().is_none());
            }
            drop(call);
            let all = || connection.reserve(64 << 20);
            assert!(all().now_or_never().is_none());
            drop(end);
            assert!(busy.await.unwrap().is_err());
            // The only thread makes the answer first.
            spawn_blocking(|| ()).await.unwrap();
            assert!(all().now_or_never().is_some_and(|all| all.is_ok()));
        });
    }

    #[tokio::test]
    async fn a_request_whose_reply_waits_for_room_is_held() {
        const ROOM: u64 = 64 << 20;
        let (accepted, chassis, _) = accepted_with(Profile {
            most_held: ROOM + 100,
            ..Profile::ECHO
        });
        let connection = accepted.connection();
        let services = services(&chassis);
        let reserve = |request, bytes| services.reserve(Some(connection), request, bytes);
        let all = reserve(101, ROOM as usize).await.unwrap();
        let refused = reserve(101, 5000).await.map_err(|status| status.code());
        assert_eq!(refused.err(), Some(Code::ResourceExhausted));
        let mut waiting = pin!(reserve(100, 5000));
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        assert_eq!(connection.held(), ROOM + 100);
        // What is left is refused before it is made, and counts no further.
        let kept = |longest, length| count_message(Some(connection), longest, length);
        assert!(kept(0, SMALL).is_ok() && kept(SMALL, 2 * SMALL).is_ok());
        assert!(kept(0, SMALL + 1).is_err());
        assert_eq!(connection.held(), ROOM + 100);
        drop(all);
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(connection.held(), 0);
    }
}
