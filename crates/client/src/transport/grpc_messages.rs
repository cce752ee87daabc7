//! Messages on open gRPC streams. A message is answered by the next one that comes and is not the answer to an earlier
//! one; or, where a field tells which reply belongs to which message, by the next that has its value.

#[cfg(test)]
pub(crate) mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    mem,
    num::{NonZeroU32, NonZeroU64},
    pin::pin,
    rc::Rc,
    sync::Arc,
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

use crate::{
    plan::StreamLimits,
    service::{Key, Matching},
};

use super::{
    Carried, Connection, Failure, Milestones, Result, ServerEndpoint, Transport, connect,
    grpc_reply::{PREFIX, ReplyMessages, check_end, check_head},
    http2::{self, Handle, Io, Reader, SHORT, Streaming},
    socket::Stream,
};

/// Time that a server has to end a stream after the answer to its last message.
const FAREWELL: Duration = Duration::from_secs(10);

/// Most messages without a reply on a stream where a field tells which reply is whose: those that were given up are
/// among them.
const MOST_AWAITED: usize = 1000;

/// The fault of a reply whose value is that of no message.
const OTHER_VALUE: &str = "has the --match value of no message that waits for one";

/// A conversation on a stream.
pub trait Conversation: Clone + 'static {
    /// Returns the head of the call that opens the stream.
    fn head(&self) -> &Head;

    /// Returns the fields by which replies belong to messages; `None` if they come in the messages' order.
    fn matching(&self) -> Option<Arc<Matching>> {
        None
    }

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
pub struct MessageHandle<C, S: Io = Stream> {
    /// `None` until it calls. Dropped before the connection, on which its stream is cancelled then.
    place: Option<Place<S>>,
    connection: Handle<S>,
    conversation: C,
    shared: Rc<Places<S>>,
    /// The current message, and its answer.
    message: Vec<u8>,
    answer: Rc<RefCell<Answer>>,
}

/// The place of one stream, which is opened by the first message and renewed when it is over.
type Place<S> = Rc<RefCell<Option<Rc<Line<S>>>>>;

/// The places of a connection's streams.
struct Places<S: Io> {
    limits: StreamLimits,
    matching: Option<Arc<Matching>>,
    /// Those that callers share by turns; empty if each has its own.
    list: Vec<Place<S>>,
    next: Cell<usize>,
}

impl<S: Io> Places<S> {
    fn new(limits: StreamLimits, matching: Option<Arc<Matching>>) -> Self {
        let count = limits.per_connection.map_or(0, NonZeroU32::get);
        Self {
            limits,
            matching,
            list: (0..count).map(|_| Place::default()).collect(),
            next: Cell::new(0),
        }
    }

    /// Returns the stream in a place, opening it if there is none that takes messages.
    fn line(
        &self,
        place: &Place<S>,
        connection: &mut Handle<S>,
        head: &Head,
    ) -> Result<Rc<Line<S>>> {
        let mut place = place.borrow_mut();
        if let Some(line) = place.take_if(|line| line.is_over()) {
            line.answers.borrow().check()?;
        }
        if let Some(line) = &*place {
            return Ok(Rc::clone(line));
        }
        let messages = self.limits.messages.map_or(u64::MAX, NonZeroU64::get);
        let answers = Answers {
            matching: self.matching.clone(),
            ..Answers::default()
        };
        let line = Rc::new(Line::open(connection, head, answers, messages)?);
        *place = Some(Rc::clone(&line));
        Ok(line)
    }

    /// Returns the place of a further caller.
    fn next(&self) -> Place<S> {
        let number = self.next.get();
        self.next.set(number + 1);
        match self.list.len() {
            0 => Place::default(),
            count => Rc::clone(&self.list[number % count]),
        }
    }
}

impl<C: Conversation, S: Io> MessageHandle<C, S> {
    pub(crate) fn new(connection: Handle<S>, conversation: C, limits: StreamLimits) -> Self {
        let shared = Rc::new(Places::new(limits, conversation.matching()));
        Self {
            place: None,
            connection,
            conversation,
            shared,
            message: Vec::new(),
            answer: Rc::default(),
        }
    }
}

impl<C: Conversation, S: Io> Connection for MessageHandle<C, S> {
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

    async fn call(&mut self, exchange: &Exchange, carried: &mut Carried<'_>) -> Result<()> {
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
            let stream = Rc::clone(&line.stream);
            let sending = line.send(body, &message[PREFIX..], &self.answer);
            let sending = carried.held_back(sending, || stream.is_held_back());
            // One that another caller has used up, or the server ended, does not take it.
            if let Some(waiting) = sending.await? {
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
struct Line<S: Io> {
    stream: Rc<Streaming<S>>,
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
/// on it may answer another one, unless a field tells.
struct Waiting<S: Io> {
    line: Rc<Line<S>>,
    is_answered: bool,
}

impl<S: Io> Drop for Waiting<S> {
    fn drop(&mut self) {
        if !self.is_answered && !self.line.answers.borrow().tells_late_ones() {
            self.line.left.set(0);
        }
    }
}

impl<S: Io> Line<S> {
    fn open(
        connection: &mut Handle<S>,
        head: &Head,
        answers: Answers,
        messages: u64,
    ) -> Result<Self> {
        let answers = Rc::new(RefCell::new(answers));
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

    /// Sends a message, without its prefix `message`, as far as the server's flow control lets it go, and returns the
    /// wait for its answer; `None` if the stream is over.
    async fn send(
        self: Rc<Self>,
        body: Body<'_>,
        message: &[u8],
        answer: &Rc<RefCell<Answer>>,
    ) -> Result<Option<Waiting<S>>> {
        let _turn = self.sending.lock().await;
        let key = self.answers.borrow().key(message);
        let is_given_up = |key| self.answers.borrow().is_given_up(key);
        if self.answers.borrow().check().is_err() || key.as_ref().is_some_and(is_given_up) {
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
        self.answers.borrow_mut().expect(key, answer);
        let waiting = Waiting {
            line: Rc::clone(&self),
            is_answered: false,
        };
        // A failure is that of all who wait.
        let _ = self.stream.sent().await;
        Ok(Some(waiting))
    }
}

impl<S: Io> Drop for Line<S> {
    fn drop(&mut self) {
        if self.is_closed.get() {
            self.is_left.notify_one();
        } else {
            self.watch.abort();
        }
    }
}

/// Waits for the end of a stream, and tells those who wait for answers; not for long once nobody does.
async fn watch<S: Io>(
    stream: Rc<Streaming<S>>,
    answers: Rc<RefCell<Answers>>,
    is_left: Rc<Notify>,
) {
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
    /// The outcome is known, or was.
    is_told: bool,
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
        self.is_told = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The answers that are awaited on a stream.
#[derive(Default)]
struct Answers {
    cut: ReplyMessages,
    /// The fields by which they are told apart; `None` if they come in the messages' order.
    matching: Option<Arc<Matching>>,
    /// In the order of their messages, each with the value in its message, if that tells.
    awaited: VecDeque<(Option<Key>, Rc<RefCell<Answer>>)>,
    /// One came that answers no message.
    is_surplus: bool,
    /// No more will come.
    has_ended: bool,
}

impl Answers {
    /// Returns the value in a message that tells its answer; `None` if the order does.
    fn key(&self, message: &[u8]) -> Option<Key> {
        let matching = self.matching.as_ref();
        matching.map(|own| own.of_message(message))
    }

    /// Returns true if a message with this value was given up: its answer may still come, or never.
    fn is_given_up(&self, key: &Key) -> bool {
        let mut awaited = self.awaited.iter();
        awaited.any(|(own, answer)| own.as_ref() == Some(key) && Rc::strong_count(answer) == 1)
    }

    /// Awaits an answer to a message that has been sent.
    fn expect(&mut self, key: Option<Key>, answer: &Rc<RefCell<Answer>>) {
        let mut own = answer.borrow_mut();
        (own.outcome, own.is_told) = (None, false);
        self.awaited.push_back((key, Rc::clone(answer)));
    }

    /// Returns true if an answer that comes late is not taken for that of another message.
    fn tells_late_ones(&self) -> bool {
        self.matching.is_some() && self.awaited.len() < MOST_AWAITED
    }

    /// Fails if one came that answers no message.
    fn check(&self) -> Result<()> {
        let detail = match &self.matching {
            _ if !self.is_surplus => return Ok(()),
            Some(_) => OTHER_VALUE,
            None => "came without a message",
        };
        Err(Failure::mismatch(detail))
    }

    fn end_with(&mut self, end: Result<()>) {
        self.has_ended = true;
        let missing = || Failure::request(ErrorKind::Eof, "the server ended the stream instead");
        let failure = end.err().unwrap_or_else(missing);
        for (_, answer) in self.awaited.drain(..) {
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
            matching,
            awaited,
            is_surplus,
            ..
        } = self;
        cut.feed(data, |message| {
            let key = matching.as_ref().map(|own| own.of_reply(message));
            let place = awaited.iter().position(|(own, _)| *own == key);
            if let Some((_, answer)) = place.and_then(|at| awaited.remove(at)) {
                let mut answer = answer.borrow_mut();
                if !answer.is_told {
                    answer.reply.clear();
                    answer.reply.extend_from_slice(message);
                    answer.tell(Ok(()));
                }
                return Ok(());
            }
            // With a value of no message, it is taken for that of the oldest. Should that one's come, it is late.
            let mut waiting = awaited.iter().map(|(_, answer)| answer);
            match waiting.find(|answer| Rc::strong_count(answer) > 1 && !answer.borrow().is_told) {
                Some(oldest) => oldest
                    .borrow_mut()
                    .tell(Err(Failure::mismatch(OTHER_VALUE))),
                None => *is_surplus = true,
            }
            Ok(())
        })
    }

    fn end(&mut self, last: &Fields) -> Result<()> {
        check_end(last)
    }
}
