//! A reply on its way to the connection, in parts: what it holds is counted until the socket has taken it.

use std::{
    future::poll_fn,
    mem,
    ops::Deref,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use atomic_waker::AtomicWaker;
use bytes::Bytes;
use netping_serving::{Active, Connection, Held, Reserved, Wait, reply_memory::SMALL};
use tokio::time::Sleep;
use tonic::{
    Status,
    body::Body,
    codegen::{Body as HttpBody, BoxFuture, http::HeaderMap},
};

use crate::{
    deadline,
    exhausted::exhausted,
    long_work::{LongWork, NextMessage},
};

type BodyFrame = http_body::Frame<Bytes>;

/// Parts of messages, in bytes: a frame's length, unless the peer allows longer ones.
pub(crate) const PART: usize = 16 << 10;

/// A service's word on its reply, in the response's extensions.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    /// The memory that is reserved for it.
    ///
    /// The connection takes the next part before the window has room for it, and keeps it until the socket has taken it. The
    /// last part to leave ends the reservation.
    pub reserved: Option<Reserved>,
    /// Length of the parts in which messages are handed over, in bytes.
    pub part: usize,
    pub next: NextMessage,
}

impl Announcement {
    /// Returns that of a reply of many messages, each of which is announced.
    pub(crate) fn of_each(work: &LongWork) -> Self {
        Self {
            reserved: None,
            part: PART,
            next: work.next_announced(),
        }
    }
}

/// The memory that a reply of many messages keeps to its end: tonic's buffer, which is as long as the most that came out
/// of it at once.
#[derive(Debug)]
struct Kept {
    held: Mutex<Held>,
    /// Parts that the connection has.
    parts: AtomicUsize,
    waker: AtomicWaker,
}

impl Kept {
    /// Waits until the connection has none of it. Without this, hyper would take 400 KiB of each reply.
    fn poll_left(&self, cx: &Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        if self.parts.load(Ordering::Acquire) == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A part that the connection has of a reply of many messages.
struct Taken(Arc<Kept>);

impl Taken {
    fn new(kept: &Arc<Kept>) -> Self {
        kept.parts.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(kept))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.0.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waker.wake();
        }
    }
}

/// The memory that a reply holds.
enum Memory {
    /// Nothing has been asked for.
    None,
    /// The only message, or the first of many, is short.
    Short,
    Reserved(Reserved),
    Kept(Arc<Kept>),
}

/// Messages of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    One,
    Many,
}

/// The way in which a part of a reply counts on its connection.
enum Counted {
    /// A stream, since it may be all that is left of one.
    Stream(Active<Arc<Connection>>),
    /// Its memory counts itself.
    Reply(Arc<Connection>),
}

impl Deref for Counted {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match self {
            Self::Stream(active) => active,
            Self::Reply(connection) => connection,
        }
    }
}

/// A part of a reply, and what is counted until it has left: memory, and the wait for the peer.
///
/// hyper asks a reply for its next part as soon as the last one is in its queue, and for none while it holds one for which
/// there is no window. So there is a part wherever a reply waits for the peer.
///
/// Each reply allocates one, so its size matters. mimalloc 3 takes several times as long for an allocation that exactly
/// fills a block, unless the block's length is a power of two: it asks for a larger one, and finds no page for the next.
struct Part {
    bytes: Bytes,
    _reserved: Option<Reserved>,
    _taken: Option<Taken>,
    _wait: Option<Wait<Counted>>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The messages of a reply as tonic encodes them.
enum Encoding {
    /// On the worker's thread.
    Here(Body),
    /// The next one on another thread.
    Elsewhere(BoxFuture<(Body, Polled), Status>),
}

/// The answer of a body that was asked for its next frame.
type Polled = Poll<Option<Result<BodyFrame, Status>>>;

/// Asks a body for its next frame on a thread for long work.
async fn elsewhere(
    mut body: Body,
    reserved: Option<Reserved>,
    work: LongWork,
) -> Result<(Body, Polled), Status> {
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let poll = move || {
        let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(&waker));
        (body, polled)
    };
    work.run(reserved, poll).await
}

/// A reply. It is dropped when its last part has left for the connection.
pub(crate) struct ReplyBody {
    body: Encoding,
    next: NextMessage,
    of: Of,
    /// Its stream, on a connection that counts them. The only part of a short reply takes it over.
    stream: Option<Active<Arc<Connection>>>,
    memory: Memory,
    /// Length of the parts of messages, in bytes.
    part: usize,
    /// The rest of a message that was longer than a part.
    rest: Bytes,
    /// The end of the call's time, if its caller has set one.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl ReplyBody {
    /// Returns the reply with this body.
    pub(crate) fn new(
        body: Body,
        of: Of,
        stream: Option<Active<Arc<Connection>>>,
        announcement: Option<Announcement>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Self {
        let (reserved, part, next) = match announcement {
            Some(own) => (own.reserved, own.part, own.next),
            None => (None, PART, NextMessage::Short),
        };
        Self {
            body: Encoding::Here(body),
            next,
            of,
            stream,
            memory: reserved.map_or(Memory::None, Memory::Reserved),
            part,
            rest: Bytes::new(),
            deadline,
        }
    }

    /// Counts what came out of tonic's buffer at once.
    fn count(&mut self, length: usize) -> Result<(), Status> {
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        match &self.memory {
            Memory::None if length <= SMALL => self.memory = Memory::Short,
            Memory::None | Memory::Short => {
                self.memory = Memory::Kept(Arc::new(Kept {
                    held: Mutex::new(Held::nothing(stream)),
                    parts: AtomicUsize::new(0),
                    waker: AtomicWaker::new(),
                }));
            }
            Memory::Reserved(_) | Memory::Kept(_) => {}
        }
        let Memory::Kept(kept) = &self.memory else {
            return Ok(());
        };
        let mut held = kept.held.lock().unwrap_or_else(PoisonError::into_inner);
        // The buffer grows by doubling.
        let bytes = 2 * length as u64;
        if bytes <= held.bytes() {
            return Ok(());
        }
        held.set(bytes).map_err(exhausted)
    }

    /// Returns the next part of a message. The rest waits for the peer.
    fn part(&mut self, mut bytes: Bytes) -> BodyFrame {
        let (reserved, taken) = match &self.memory {
            Memory::None | Memory::Short => (None, None),
            Memory::Reserved(reserved) => (Some(reserved.clone()), None),
            Memory::Kept(kept) => (None, Some(Taken::new(kept))),
        };
        let connection = || self.stream.as_ref().map(|own| Arc::clone(own.connection()));
        let counted = match (&self.memory, self.of) {
            (Memory::Short, Of::One) => self.stream.take().map(Counted::Stream),
            (Memory::Reserved(_) | Memory::Kept(_), _) => connection().map(Counted::Reply),
            _ => connection().map(|own| Counted::Stream(Active::begin(own))),
        };
        if bytes.len() > self.part {
            self.rest = bytes.split_off(self.part);
        }
        BodyFrame::data(Bytes::from_owner(Part {
            bytes,
            _reserved: reserved,
            _taken: taken,
            _wait: counted.map(Wait::begin),
        }))
    }

    /// Asks for the next frame, here or, if it has a long message, on another thread.
    fn poll_encoding(&mut self, cx: &mut Context<'_>) -> Polled {
        loop {
            match &mut self.body {
                Encoding::Here(body) => {
                    let Some(work) = self.next.long() else {
                        let polled = Pin::new(body).poll_frame(cx);
                        // The service may have announced a long message.
                        if polled.is_ready() || !self.next.is_long() {
                            return polled;
                        }
                        continue;
                    };
                    let body = mem::replace(body, Body::empty());
                    let reserved = match &self.memory {
                        Memory::Reserved(reserved) => Some(reserved.clone()),
                        _ => None,
                    };
                    let polling = elsewhere(body, reserved, work.clone());
                    self.body = Encoding::Elsewhere(Box::pin(polling));
                }
                Encoding::Elsewhere(polling) => {
                    let polled = ready!(polling.as_mut().poll(cx));
                    let (body, polled) = match polled {
                        Ok(own) => own,
                        Err(status) => (Body::empty(), Poll::Ready(Some(Err(status)))),
                    };
                    self.body = Encoding::Here(body);
                    if polled.is_ready() {
                        self.next.end();
                    } else {
                        // It may have been woken while the other thread had it.
                        cx.waker().wake_by_ref();
                    }
                    return polled;
                }
            }
        }
    }

    /// Ends the reply with this status.
    fn end(&mut self, status: &Status) -> Result<BodyFrame, Status> {
        self.deadline = None;
        self.body = Encoding::Here(Body::empty());
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers)?;
        Ok(BodyFrame::trailers(trailers))
    }
}

impl HttpBody for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame, Status>>> {
        if !self.rest.is_empty() {
            let rest = mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.part(rest))));
        }
        let deadline = self.deadline.as_mut();
        if deadline.is_some_and(|own| own.as_mut().poll(cx).is_ready()) {
            let missed = Status::deadline_exceeded(deadline::MISSED);
            return Poll::Ready(Some(self.end(&missed)));
        }
        if let Memory::Kept(kept) = &self.memory {
            ready!(kept.poll_left(cx));
        }
        let frame = ready!(self.poll_encoding(cx));
        Poll::Ready(frame.map(|frame| match frame?.into_data() {
            Ok(data) => match self.count(data.len()) {
                Ok(()) => Ok(self.part(data)),
                Err(status) => self.end(&status),
            },
            Err(trailers) => Ok(trailers),
        }))
    }

    fn is_end_stream(&self) -> bool {
        let Encoding::Here(body) = &self.body else {
            return false;
        };
        self.rest.is_empty() && body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::mpsc, thread, time::Duration};

    use futures_util::FutureExt;
    use netping_serving::{
        Accepted, Profile,
        testing::{accepted, accepted_with},
    };
    use tokio::time::timeout;

    use super::*;
    use crate::long_work::LONG;

    /// A body whose messages a closure gives.
    struct Messages<F>(F);

    impl<F: FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Unpin> HttpBody for Messages<F> {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
            let message = ready!((self.0)(cx));
            Poll::Ready(message.map(|message| Ok(BodyFrame::data(message))))
        }
    }

    const MESSAGE: Poll<Option<Bytes>> = Poll::Ready(Some(Bytes::from_static(b"m")));

    #[tokio::test]
    async fn a_long_message_is_made_on_another_thread() {
        // One for each of the two long replies: the first may not be done when the second begins.
        let work = LongWork::new(2);
        for next in [
            NextMessage::Short,
            work.next_of(LONG),
            work.next_announced(),
        ] {
            let (accepted, ..) = accepted();
            let announcement = Announcement {
                reserved: accepted.connection().reserve(LONG).await.unwrap(),
                part: PART,
                next: next.clone(),
            };
            let reserved = announcement.reserved.clone().unwrap();
            let (made_on, thread) = mpsc::channel();
            let (end, ended) = mpsc::channel();
            let is_short = matches!(next, NextMessage::Short);
            let mut announces = Some(next).filter(|next| matches!(next, NextMessage::Announced(_)));
            let body = Body::new(Messages(move |cx: &mut Context<'_>| {
                if let Some(next) = announces.take() {
                    let mut announcing = Box::pin(async move { next.announce(LONG).await });
                    return announcing.as_mut().poll(cx).map(|()| None);
                }
                made_on.send(thread::current().id()).unwrap();
                ended.recv().unwrap();
                MESSAGE
            }));
            let mut reply = ReplyBody::new(body, Of::One, None, Some(announcement), None);
            if is_short {
                end.send(()).unwrap();
            }
            assert_eq!(poll(&mut reply).is_pending(), !is_short);
            assert_eq!(thread.recv().unwrap() == thread::current().id(), is_short);
            drop(reply);
            // What is made of a reply that nobody wants any more is counted until it is made.
            assert_eq!(Arc::strong_count(&reserved), if is_short { 1 } else { 2 });
            let _ = end.send(());
        }
    }

    #[tokio::test]
    async fn a_message_that_came_while_the_other_thread_asked_is_not_missed() {
        let work = LongWork::new(1);
        let next = work.next_announced();
        assert!(pin!(next.announce(LONG)).now_or_never().is_none());
        let announcement = Announcement {
            next: next.clone(),
            ..Announcement::of_each(&work)
        };
        // At the second time of asking there is one, of which nobody is told.
        let mut asked = false;
        let body = Body::new(Messages(move |_: &mut Context<'_>| {
            if mem::replace(&mut asked, true) {
                MESSAGE
            } else {
                Poll::Pending
            }
        }));
        let mut reply = ReplyBody::new(body, Of::One, None, Some(announcement), None);
        let frame = poll_fn(|cx| Pin::new(&mut reply).poll_frame(cx));
        let frame = timeout(Duration::from_mins(1), frame).await.unwrap();
        assert!(frame.is_some_and(|frame| frame.is_ok()));
        // The next one is made here, unless it is announced.
        assert!(!next.is_long());
    }

    /// Returns a reply with messages of these lengths, whose connection may hold so much.
    fn reply<const N: usize>(lengths: [usize; N], most_held: u64) -> (ReplyBody, Accepted) {
        let (accepted, ..) = accepted_with(Profile {
            most_held,
            ..Profile::ECHO
        });
        let of = if N == 1 { Of::One } else { Of::Many };
        let mut lengths = lengths.into_iter();
        let body = Body::new(Messages(move |_: &mut Context<'_>| {
            Poll::Ready(lengths.next().map(|length| Bytes::from(vec![7; length])))
        }));
        let stream = Active::begin(Arc::clone(accepted.connection()));
        let reply = ReplyBody::new(body, of, Some(stream), None, None);
        (reply, accepted)
    }

    /// Returns what calls of the connection hold.
    fn held(accepted: &Accepted) -> u64 {
        accepted.connection().held()
    }

    fn poll(reply: &mut ReplyBody) -> Poll<Option<BodyFrame>> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        Pin::new(reply)
            .poll_frame(&mut cx)
            .map(|frame| frame.map(Result::unwrap))
    }

    fn next(reply: &mut ReplyBody) -> BodyFrame {
        match poll(reply) {
            Poll::Ready(Some(frame)) => frame,
            _ => panic!("no frame is ready"),
        }
    }

    #[test]
    fn a_part_does_not_fill_a_block_of_the_allocator() {
        // `Bytes` counts its references beside it. Blocks of this length have a multiple of 16 bytes.
        let allocated = size_of::<(AtomicUsize, Part)>();
        assert!((65..128).contains(&allocated) && !allocated.is_multiple_of(16));
    }

    #[tokio::test]
    async fn one_short_message_is_not_counted() {
        let (mut reply, accepted) = reply([SMALL], 1 << 20);
        let message = next(&mut reply);
        assert_eq!(message.data_ref().map(Bytes::len), Some(SMALL));
        assert_eq!(held(&accepted), 0);
        assert!(matches!(poll(&mut reply), Poll::Ready(None)));
    }

    #[tokio::test]
    async fn a_stream_counts_until_its_last_part_has_left() {
        // The connection may have one stream: it counts as 10 KiB.
        let (mut reply, accepted) = reply([SMALL], 15 << 10);
        let connection = accepted.connection();
        let part = next(&mut reply);
        drop(reply);
        drop(part);
        let second = Active::begin(Arc::clone(connection));
        assert_eq!(connection.closed(), None);
        drop(second);
        let (mut reply, accepted) = self::reply([SMALL], 15 << 10);
        let connection = accepted.connection();
        let _part = next(&mut reply);
        drop(reply);
        let _second = Active::begin(Arc::clone(connection));
        assert_eq!(connection.closed(), Some("max_held"));
    }

    #[tokio::test]
    async fn a_message_follows_when_the_one_before_has_left() {
        let (mut reply, accepted) = reply([100, 100, 20_000, 30], 1 << 20);
        let first = next(&mut reply);
        let second = next(&mut reply);
        assert!(poll(&mut reply).is_pending());
        drop(first);
        assert!(poll(&mut reply).is_pending());
        drop(second);
        // The parts of one message do not wait.
        let parts = [next(&mut reply), next(&mut reply)];
        let lengths = parts.each_ref().map(|part| part.data_ref().map(Bytes::len));
        assert_eq!(lengths, [Some(PART), Some(20_000 - PART)]);
        assert!(poll(&mut reply).is_pending());
        let [one, other] = parts;
        drop(other);
        assert!(poll(&mut reply).is_pending());
        drop(one);
        let last = next(&mut reply);
        // That of the longest stays until all has left.
        assert_eq!(held(&accepted), 40_000);
        drop(reply);
        assert_eq!(held(&accepted), 40_000);
        drop(last);
        assert_eq!(held(&accepted), 0);
    }

    #[tokio::test]
    async fn a_reply_ends_where_its_connection_would_hold_too_much() {
        let (mut reply, accepted) = reply([SMALL + 1, 20_000, 30], 40_000);
        drop(next(&mut reply));
        assert_eq!(held(&accepted), 2 * (SMALL as u64 + 1));
        let end = next(&mut reply).into_trailers().ok();
        let status = end.and_then(|trailers| Status::from_header_map(&trailers));
        let code = status.map(|status| status.code());
        assert_eq!(code, Some(tonic::Code::ResourceExhausted));
        assert!(matches!(poll(&mut reply), Poll::Ready(None)));
    }
}
