//! Messages on open gRPC streams. A message is answered by the next one that comes and is not the answer to an earlier
//! one.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    mem,
    num::{NonZeroU32, NonZeroU64},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use netping_http2::{client::Body, fields::Fields, head::Head};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::payload::Exchange;
use tokio::{
    sync::{Mutex, Notify},
    task::{self, AbortHandle},
    time,
};

use crate::plan::StreamLimits;

use super::{
    Carried, Connection, Failure, Milestones, Result, ServerEndpoint, Transport, connect,
    grpc_reply::{PREFIX, ReplyMessages, check_end, check_head},
    http2::{self, Handle, Reader, SHORT, Streaming},
};

/// Time that a server has to end a stream after the answer to its last message.
const FAREWELL: Duration = Duration::from_secs(10);

/// A conversation on a stream.
pub trait Conversation: Clone + 'static {
    /// Returns the head of the call that opens the stream.
    fn head(&self) -> &Head;

    /// Appends the exchange's current message, with its prefix.
    fn put(&self, exchange: &Exchange, message: &mut Vec<u8>);

    /// Examines the reply to a message, both without their prefixes.
    fn examine(&self, exchange: &Exchange, message: &[u8], reply: &[u8]) -> Result<()>;
}

/// Opens HTTP/2 connections, for conversations of one kind.
#[derive(Debug, Clone)]
pub struct Messages<C> {
    pub(super) endpoint: ServerEndpoint,
    pub(super) conversation: C,
}

impl<C: Conversation> Transport for Messages<C> {
    type Connection = MessageHandle<C>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<MessageHandle<C>> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let connection = http2::handshake(stream, milestones).await?;
        let limits = self.endpoint.destination.streams;
        Ok(MessageHandle::new(
            connection,
            self.conversation.clone(),
            limits,
        ))
    }
}

/// A caller's handle on a connection, and its place there.
pub struct MessageHandle<C> {
    /// `None` until it calls. Dropped before the connection, on which its stream is cancelled then.
    place: Option<Place>,
    connection: Handle,
    conversation: C,
    shared: Rc<Places>,
    /// The current message, and its answer.
    message: Vec<u8>,
    answer: Rc<RefCell<Answer>>,
}

/// The place of one stream, which is opened by the first message and renewed when it is over.
type Place = Rc<RefCell<Option<Rc<Line>>>>;

/// The places of a connection's streams.
struct Places {
    limits: StreamLimits,
    /// Those that callers share by turns; empty if each has its own.
    list: Vec<Place>,
    next: Cell<usize>,
}

impl Places {
    fn new(limits: StreamLimits) -> Self {
        let count = limits.per_connection.map_or(0, NonZeroU32::get);
        Self {
            limits,
            list: (0..count).map(|_| Place::default()).collect(),
            next: Cell::new(0),
        }
    }

    /// Returns the stream in a place, opening it if there is none that takes messages.
    fn line(&self, place: &Place, connection: &mut Handle, head: &Head) -> Result<Rc<Line>> {
        let mut place = place.borrow_mut();
        if let Some(line) = place.take_if(|line| line.is_over()) {
            line.answers.borrow().check()?;
        }
        if let Some(line) = &*place {
            return Ok(Rc::clone(line));
        }
        let messages = self.limits.messages.map_or(u64::MAX, NonZeroU64::get);
        let line = Rc::new(Line::open(connection, head, messages)?);
        *place = Some(Rc::clone(&line));
        Ok(line)
    }

    /// Returns the place of a further caller.
    fn next(&self) -> Place {
        let number = self.next.get();
        self.next.set(number + 1);
        match self.list.len() {
            0 => Place::default(),
            count => Rc::clone(&self.list[number % count]),
        }
    }
}

impl<C> MessageHandle<C> {
    fn new(connection: Handle, conversation: C, limits: StreamLimits) -> Self {
        Self {
            place: None,
            connection,
            conversation,
            shared: Rc::new(Places::new(limits)),
            message: Vec::new(),
            answer: Rc::default(),
        }
    }
}

impl<C: Conversation> Connection for MessageHandle<C> {
    fn share(&self) -> Option<Self> {
        Some(Self {
            place: None,
            connection: self.connection.share(),
            conversation: self.conversation.clone(),
            shared: Rc::clone(&self.shared),
            message: Vec::new(),
            answer: Rc::default(),
        })
    }

    fn is_spent(&mut self) -> bool {
        self.connection.is_spent()
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<()> {
        self.message.clear();
        self.conversation.put(exchange, &mut self.message);
        let long;
        let (message, body) = if self.message.len() > SHORT {
            long = Bytes::from(mem::take(&mut self.message));
            (&long[..], Body::Shared(&long))
        } else {
            (&self.message[..], Body::Short(&self.message))
        };
        if Rc::strong_count(&self.answer) > 1 {
            // The last message was given up, and its reply may still come.
            self.answer = Rc::default();
        }
        let head = self.conversation.head();
        let place = self.place.get_or_insert_with(|| self.shared.next());
        let mut waiting = loop {
            let line = self.shared.line(place, &mut self.connection, head)?;
            // One that another caller has used up, or the server ended, does not take it.
            if let Some(waiting) = line.send(body, &self.answer).await? {
                break waiting;
            }
        };
        poll_fn(|cx| self.answer.borrow_mut().poll(cx)).await?;
        let answer = self.answer.borrow();
        self.conversation
            .examine(exchange, &message[PREFIX..], &answer.reply)?;
        waiting.is_answered = true;
        Ok(())
    }
}

/// An open stream.
struct Line {
    stream: Rc<Streaming>,
    answers: Rc<RefCell<Answers>>,
    /// Held by the caller that sends.
    sending: Mutex<()>,
    /// Messages that are still to be sent on it.
    left: Cell<u64>,
    /// Its last message has been sent as such: the server ends it.
    is_closed: Cell<bool>,
    /// Told when nobody sends or waits any more.
    is_left: Rc<Notify>,
    /// Tells those who wait how the stream ended.
    watch: AbortHandle,
}

/// The wait for an answer. Where it is given up, or the answer is wrong, the stream takes no more messages: what comes
/// on it may answer another one.
struct Waiting {
    line: Rc<Line>,
    is_answered: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_answered {
            self.line.left.set(0);
        }
    }
}

impl Line {
    fn open(connection: &mut Handle, head: &Head, messages: u64) -> Result<Self> {
        let answers = Rc::<RefCell<Answers>>::default();
        let stream = connection.stream(head, Rc::clone(&answers) as Rc<RefCell<dyn Reader>>)?;
        let stream = Rc::new(stream);
        let is_left = Rc::<Notify>::default();
        let watch = watch(Rc::clone(&stream), Rc::clone(&answers), Rc::clone(&is_left));
        Ok(Self {
            stream,
            answers,
            sending: Mutex::new(()),
            left: Cell::new(messages),
            is_closed: Cell::new(false),
            is_left,
            watch: task::spawn_local(watch).abort_handle(),
        })
    }

    /// Returns true if no more messages can be sent on it.
    fn is_over(&self) -> bool {
        self.left.get() == 0 || self.stream.is_over() || self.answers.borrow().has_ended
    }

    /// Sends a message, and returns the wait for its answer; `None` if it is over.
    async fn send(
        self: Rc<Self>,
        body: Body<'_>,
        answer: &Rc<RefCell<Answer>>,
    ) -> Result<Option<Waiting>> {
        let _turn = self.sending.lock().await;
        if self.answers.borrow().check().is_err() {
            self.left.set(0);
        }
        if self.is_over() {
            return Ok(None);
        }
        let is_last = self.left.get() == 1;
        match self.stream.send(body, is_last).await {
            Err(failure) if failure.lost => return Err(failure),
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
        self.left.set(self.left.get() - 1);
        self.is_closed.set(is_last);
        self.answers.borrow_mut().expect(answer);
        Ok(Some(Waiting {
            line: Rc::clone(&self),
            is_answered: false,
        }))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_closed.get() {
            self.is_left.notify_one();
        } else {
            self.watch.abort();
        }
    }
}

/// Waits for the end of a stream, and tells those who wait for answers; not for long once nobody does.
async fn watch(stream: Rc<Streaming>, answers: Rc<RefCell<Answers>>, is_left: Rc<Notify>) {
    let mut end = pin!(stream.end());
    let end = tokio::select! {
        end = &mut end => end,
        () = is_left.notified() => {
            let _ = time::timeout(FAREWELL, end).await;
            return;
        }
    };
    answers.borrow_mut().end_with(end);
}

/// The answer to a message.
#[derive(Default)]
struct Answer {
    reply: Vec<u8>,
    outcome: Option<Result<()>>,
    waker: Option<Waker>,
}

impl Answer {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<()>> {
        let Some(outcome) = self.outcome.take() else {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(outcome)
    }

    fn tell(&mut self, outcome: Result<()>) {
        self.outcome = Some(outcome);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The answers that are awaited on a stream, in the order of their messages.
#[derive(Default)]
struct Answers {
    cut: ReplyMessages,
    awaited: VecDeque<Rc<RefCell<Answer>>>,
    /// One came that answers no message.
    is_surplus: bool,
    /// No more will come.
    has_ended: bool,
}

impl Answers {
    /// Awaits an answer to a message that has been sent.
    fn expect(&mut self, answer: &Rc<RefCell<Answer>>) {
        answer.borrow_mut().outcome = None;
        self.awaited.push_back(Rc::clone(answer));
    }

    /// Fails if one came that answers no message.
    fn check(&self) -> Result<()> {
        if self.is_surplus {
            return Err(Failure::mismatch("came without a message"));
        }
        Ok(())
    }

    fn end_with(&mut self, end: Result<()>) {
        self.has_ended = true;
        let missing = || Failure::request(ErrorKind::Eof, "the server ended the stream instead");
        let failure = end.err().unwrap_or_else(missing);
        for answer in self.awaited.drain(..) {
            answer.borrow_mut().tell(Err(failure.clone()));
        }
    }
}

impl Reader for Answers {
    fn head(&mut self, head: &Fields) -> Result<()> {
        check_head(head)
    }

    fn data(&mut self, data: &[u8]) -> Result<()> {
        let Self {
            cut,
            awaited,
            is_surplus,
            ..
        } = self;
        cut.feed(data, |message| {
            if let Some(answer) = awaited.pop_front() {
                let mut answer = answer.borrow_mut();
                answer.reply.clear();
                answer.reply.extend_from_slice(message);
                answer.tell(Ok(()));
            } else {
                *is_surplus = true;
            }
            Ok(())
        })
    }

    fn end(&mut self, last: &Fields) -> Result<()> {
        check_end(last)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use bytes::BytesMut;
    use h2::{RecvStream, SendStream, server};
    use http::{HeaderMap, Request, Response};
    use netping_http2::Config;
    use netping_protocol::frame::Reply;
    use tokio::{net::UnixStream, sync::mpsc, task::LocalSet, time::timeout};

    use super::*;
    use crate::transport::{http2::prepare, socket::Stream};

    /// Sends the number of the caller's request, and wants it back.
    #[derive(Debug, Clone)]
    struct Numbers(Head);

    impl Conversation for Numbers {
        fn head(&self) -> &Head {
            &self.0
        }

        fn put(&self, exchange: &Exchange, message: &mut Vec<u8>) {
            message.extend_from_slice(&number(exchange.caller() * 1000 + exchange.sequence()));
        }

        fn examine(&self, _: &Exchange, message: &[u8], reply: &[u8]) -> Result<()> {
            let wrong = || Failure::mismatch("is another number");
            (message == reply).then_some(()).ok_or_else(wrong)
        }
    }

    /// Returns a message with a number.
    fn number(number: u32) -> Vec<u8> {
        [&[0, 0, 0, 0, 4], &number.to_be_bytes()[..]].concat()
    }

    /// A stream at the server.
    struct Served {
        request: RecvStream,
        reply: SendStream<Bytes>,
    }

    impl Served {
        /// Returns the next message; `None` at the stream's end.
        async fn message(&mut self) -> Option<Bytes> {
            let mut message = BytesMut::new();
            while message.len() < 9 {
                let part = self.request.data().await?.ok()?;
                message.extend_from_slice(&part);
            }
            Some(message.freeze())
        }

        fn send(&mut self, bytes: impl Into<Bytes>) {
            self.reply.send_data(bytes.into(), false).unwrap();
        }

        fn end(&mut self, status: &str) {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status.parse().unwrap());
            self.reply.send_trailers(trailers).unwrap();
        }
    }

    /// Lets a client use a connection whose streams are served by `serve`; returns the client's result, and the number of
    /// streams.
    async fn connected<F: Future<Output = ()> + 'static, O>(
        limits: StreamLimits,
        serve: fn(Served) -> F,
        client: impl AsyncFnOnce(MessageHandle<Numbers>) -> O,
    ) -> (O, usize) {
        let run = async {
            let (near, far) = UnixStream::pair().unwrap();
            let (told, mut streams) = mpsc::unbounded_channel();
            task::spawn_local(async move {
                let mut connection = server::handshake(far).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let head = Response::builder().header("content-type", "application/grpc");
                    let head = head.body(()).unwrap();
                    let reply = respond.send_response(head, false).unwrap();
                    let request = request.into_body();
                    let _ = told.send(());
                    task::spawn_local(serve(Served { request, reply }));
                }
            });
            let connection = Handle::open(Stream::Unix(near), Config::default()).await;
            let request = Request::post("http://localhost/").body(()).unwrap();
            let conversation = Numbers(prepare(&request));
            let handle = MessageHandle::new(connection.unwrap(), conversation, limits);
            let result = client(handle).await;
            let mut opened = 0;
            while streams.recv().await.is_some() {
                opened += 1;
            }
            (result, opened)
        };
        let run = timeout(Duration::from_mins(1), run);
        LocalSet::new().run_until(run).await.unwrap()
    }

    async fn call(handle: &mut MessageHandle<Numbers>, exchange: &Exchange) -> Option<ErrorKind> {
        let now = || 0;
        let called = handle.call(exchange, &mut Carried::start(&now)).await;
        called.err().map(|failure| failure.kind)
    }

    /// Makes so many calls of one caller, one after the other; returns their failures' kinds, and the number of streams.
    async fn calls<F: Future<Output = ()> + 'static>(
        count: u32,
        per_stream: u64,
        serve: fn(Served) -> F,
    ) -> (Vec<Option<ErrorKind>>, usize) {
        let limits = StreamLimits {
            messages: NonZeroU64::new(per_stream),
            ..StreamLimits::default()
        };
        connected(limits, serve, async |mut handle| {
            let mut exchange = Exchange::new(0, 0, Reply::Echo);
            let mut kinds = Vec::new();
            for _ in 0..count {
                kinds.push(call(&mut handle, &exchange).await);
                exchange.advance();
                // What comes after a reply is there before the next message.
                time::sleep(Duration::from_millis(1)).await;
            }
            kinds
        })
        .await
    }

    const ONE: StreamLimits = StreamLimits {
        per_connection: NonZeroU32::new(1),
        messages: None,
    };

    #[tokio::test(flavor = "current_thread")]
    async fn callers_that_share_a_stream_have_their_own_answers() {
        let three_at_a_time = |mut stream: Served| async move {
            let mut messages = Vec::new();
            while let Some(message) = stream.message().await {
                messages.push(message);
                if messages.len() == 3 {
                    let together = mem::take(&mut messages).concat();
                    stream.send(together);
                }
            }
            stream.end("0");
        };
        let client = async |first: MessageHandle<Numbers>| {
            let handles = [first.share().unwrap(), first.share().unwrap(), first];
            let callers = (1..).zip(handles).map(async |(caller, mut handle)| {
                let mut exchange = Exchange::new(caller, 0, Reply::Echo);
                for _ in 0..20 {
                    assert_eq!(call(&mut handle, &exchange).await, None);
                    exchange.advance();
                }
            });
            futures_util::future::join_all(callers).await;
        };
        let ((), streams) = connected(ONE, three_at_a_time, client).await;
        assert_eq!(streams, 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_answer_to_a_message_that_was_given_up_is_nobodys() {
        let late = |mut stream: Served| async move {
            while let Some(message) = stream.message().await {
                time::sleep(Duration::from_millis(20)).await;
                stream.send(message);
            }
        };
        let client = async |mut handle: MessageHandle<Numbers>| {
            let mut exchange = Exchange::new(0, 0, Reply::Echo);
            let given_up = timeout(Duration::from_millis(1), call(&mut handle, &exchange));
            assert!(given_up.await.is_err());
            exchange.advance();
            call(&mut handle, &exchange).await
        };
        assert_eq!(connected(ONE, late, client).await, (None, 2));
    }

    async fn echo(mut stream: Served) {
        while let Some(message) = stream.message().await {
            // In two parts, within the prefix.
            let (one, other) = message.split_at(3);
            stream.send(one.to_vec());
            stream.send(other.to_vec());
        }
        stream.end("0");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn messages_have_one_stream_or_as_many_as_were_asked_for() {
        assert_eq!(calls(7, 0, echo).await, (vec![None; 7], 1));
        assert_eq!(calls(7, 3, echo).await, (vec![None; 7], 3));
        assert_eq!(calls(3, 1, echo).await, (vec![None; 3], 3));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_stream_that_ends_between_messages_costs_none() {
        let once = |mut stream: Served| async move {
            let message = stream.message().await.unwrap();
            stream.send(message);
            stream.end("0");
        };
        assert_eq!(calls(3, 0, once).await, (vec![None; 3], 3));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_stream_that_ends_instead_of_a_reply_fails_its_message() {
        let failed = |kind| (vec![Some(kind); 2], 2);
        let fine = |mut stream: Served| async move {
            stream.message().await;
            stream.end("0");
        };
        assert_eq!(calls(2, 0, fine).await, failed(ErrorKind::Eof));
        let busy = |mut stream: Served| async move {
            stream.message().await;
            stream.end("14");
        };
        assert_eq!(calls(2, 0, busy).await, failed(ErrorKind::Grpc(14)));
        let reset = |mut stream: Served| async move {
            stream.message().await;
            stream.reply.send_reset(h2::Reason::INTERNAL_ERROR);
        };
        assert_eq!(calls(2, 0, reset).await, failed(ErrorKind::Reset));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn each_message_has_one_reply_and_its_own() {
        let failed = |kinds: [Option<ErrorKind>; 3]| kinds.to_vec();
        let mismatch = Some(ErrorKind::Mismatch);
        let wrong = |mut stream: Served| async move {
            while stream.message().await.is_some() {
                stream.send(number(7));
            }
        };
        let (kinds, _) = calls(3, 0, wrong).await;
        assert_eq!(kinds, failed([mismatch; 3]));
        let twice = |mut stream: Served| async move {
            while let Some(message) = stream.message().await {
                stream.send([&message[..], &message].concat());
            }
        };
        let (kinds, streams) = calls(3, 0, twice).await;
        assert_eq!((kinds, streams), (failed([None, mismatch, None]), 2));
    }
}
