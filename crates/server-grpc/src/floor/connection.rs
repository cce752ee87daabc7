//! The I/O of a connection: what has come is answered in one turn, and the answers leave in one write.

use std::{
    cell::RefCell,
    future::poll_fn,
    io, mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use netping_http2::server::Server;
use netping_protocol::secure::Stream;
use netping_serving::{Active, Ending, Guard};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{End, Floor, calls::Calls, is_tls, routes::Called};
use crate::{connected::reason, received_frames::ReceivedFrames};

/// Length of the buffer into which the connections of a thread read, in bytes.
const READ: usize = 64 << 10;

/// Beginning of a frame, in bytes, from which on its rest is read behind it instead.
const LONG: usize = 16 << 10;

/// Interval at which incomplete requests, and replies that wait for the client, are looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time in which a client answers the announcement of a drain.
const FAREWELL: Duration = Duration::from_secs(1);

thread_local! {
    static INPUT: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// A connection.
pub(super) struct Connection {
    floor: Arc<Floor>,
    stream: Stream,
    guard: Guard,
    http2: Server<Called>,
    calls: Calls,
    /// The beginning of a frame that is not whole.
    input: BytesMut,
    is_fresh: bool,
    is_flushed: bool,
    received: ReceivedFrames,
    /// Wakes the connection to look at requests and replies that are not whole.
    check: Timer,
    /// Wakes the connection to take leave of a client that does not answer.
    farewell: Timer,
    /// No more requests are wanted.
    is_draining: bool,
    /// Requests are open.
    busy: Option<Active<Arc<netping_serving::Connection>>>,
}

impl Connection {
    pub(super) fn new(floor: Arc<Floor>, stream: Stream, guard: Guard) -> Self {
        let calls = Calls::new(Arc::clone(&floor), Arc::clone(guard.connection()));
        Self {
            http2: Server::new(floor.config),
            floor,
            stream,
            guard,
            calls,
            input: BytesMut::new(),
            is_fresh: true,
            is_flushed: true,
            received: ReceivedFrames::default(),
            check: Timer::default(),
            farewell: Timer::default(),
            is_draining: false,
            busy: None,
        }
    }

    /// Returns the stream, its guard, and what is still to be written.
    pub(super) fn into_parts(self) -> (Stream, Guard, Vec<u8>) {
        let last = self.http2.output().to_vec();
        (self.stream, self.guard, last)
    }

    /// Writes next why the server closes the connection; returns that, if it has a reason.
    pub(super) fn tell_why(&mut self) -> Option<&'static str> {
        let kind = self.guard.connection().closed()?;
        self.http2.close(reason(kind), kind);
        Some(kind)
    }

    /// Serves until the end.
    pub(super) async fn run(&mut self) -> End {
        match poll_fn(|cx| self.poll(cx)).await {
            Ok(()) => End::Done,
            Err(end) => end,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            self.calls.go_on(cx, &mut self.http2);
            self.look_at_timers(cx);
            self.count();
            // What has just been counted may be too much.
            if self.guard.is_closing() {
                return Poll::Ready(Err(End::Closed));
            }
            let writing = self.poll_write(cx).map_err(End::Failed)?;
            self.guard.set_blocked(writing.is_pending());
            if writing.is_ready() {
                if self.http2.has_left() && self.http2.open() == 0 {
                    return Poll::Ready(Ok(()));
                }
                // Where the client does not take what it asked for, it is asked for no more.
                if let Poll::Ready(read) = self.poll_read(cx) {
                    read?;
                    continue;
                }
            }
            self.note_partial(writing.is_ready());
            self.note_busy();
            match self.guard.ending(cx) {
                Ending::Close => return Poll::Ready(Err(End::Closed)),
                Ending::Drain if !mem::replace(&mut self.is_draining, true) => {
                    self.http2.drain();
                    self.farewell.set(FAREWELL);
                }
                _ => return Poll::Pending,
            }
        }
    }

    fn look_at_timers(&mut self, cx: &mut Context<'_>) {
        if self.calls.have_deadlines() && !self.check.is_set {
            self.check.set(INTERVAL);
        }
        while self.check.poll(cx).is_ready() {
            self.calls.end_overdue(&mut self.http2);
            if self.calls.have_deadlines() {
                self.check.set(INTERVAL);
            }
        }
        if self.farewell.poll(cx).is_ready() {
            self.http2.leave();
        }
    }

    /// Counts what the last turn has done.
    fn count(&mut self) {
        self.calls.count();
        for reason in self.http2.take_resets() {
            let name = reason.name().unwrap_or("unknown").to_lowercase();
            self.floor
                .chassis
                .shared()
                .count(&format!("http2_reset_{name}"));
        }
    }

    /// Tells the reaper, which limits the time, whether the rest of a frame or of a header block is awaited. The time in
    /// which nothing is read does not count.
    fn note_partial(&self, is_reading: bool) {
        let partial = is_reading.then(|| self.received.partial());
        self.guard.connection().set_partial(partial.unwrap_or(0));
    }

    /// Tells whether requests are open: a connection with such is not idle.
    fn note_busy(&mut self) {
        if self.http2.open() == 0 {
            self.busy = None;
        } else if self.busy.is_none() {
            self.busy = Some(Active::begin(Arc::clone(self.guard.connection())));
        }
    }

    /// Writes all of the output.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.http2.output().is_empty() {
            self.is_flushed = false;
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write(cx, self.http2.output()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.http2.written(written);
            self.guard.set_blocked(false);
        }
        if !self.is_flushed {
            // TLS may have buffered a part.
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and takes what has come.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let read = if self.input.len() <= LONG {
            INPUT.with_borrow_mut(|buffer| self.poll_read_shared(cx, buffer))
        } else {
            self.poll_read_long(cx)
        };
        match ready!(read) {
            // Also of a TLS peer that closed without saying so.
            Err(End::Failed(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Poll::Ready(Err(End::Done))
            }
            read => Poll::Ready(read),
        }
    }

    fn poll_read_shared(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<(), End>> {
        let before = self.input.len();
        buffer[..before].copy_from_slice(&self.input);
        let mut read = ReadBuf::new(buffer);
        read.set_filled(before);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)).map_err(End::Failed)?;
        self.input.clear();
        let bytes = read.filled();
        let left = self.take(bytes, bytes.len() - before)?;
        self.input.extend_from_slice(left);
        Poll::Ready(Ok(()))
    }

    fn poll_read_long(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        self.input.reserve(READ);
        let read = pin!(self.stream.read_buf(&mut self.input)).poll(cx);
        let read = ready!(read).map_err(End::Failed)?;
        let mut input = mem::take(&mut self.input);
        let left = self.take(&input, read)?.len();
        input.advance(input.len() - left);
        // Memory for long frames goes with them.
        self.input = if left > LONG {
            input
        } else {
            BytesMut::from(&input[..])
        };
        Poll::Ready(Ok(()))
    }

    /// Takes the whole frames of the input, of which the last `read` bytes are new; returns what is left.
    fn take<'a>(&mut self, mut bytes: &'a [u8], read: usize) -> Result<&'a [u8], End> {
        if read == 0 {
            return Err(End::Done);
        }
        let connection = self.guard.connection();
        let new = &bytes[bytes.len() - read..];
        self.received.has_sent_data(self.http2.take_data_frames());
        connection.count_bytes(self.received.take(new, self.http2.open() > 0));
        connection.count_control(self.received.take_control());
        if mem::take(&mut self.is_fresh) && is_tls(bytes) {
            return Err(End::Tls);
        }
        loop {
            match self.http2.next(&mut bytes) {
                Ok(Some(event)) => self.calls.take(event, &mut self.http2),
                Ok(None) => return Ok(bytes),
                Err(error) => {
                    self.count();
                    return Err(End::Violation(error));
                }
            }
        }
    }
}

/// A timer that is made when it is first set.
#[derive(Debug, Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Timer {
    fn set(&mut self, time: Duration) {
        self.sleep = Some(Box::pin(sleep(time)));
        self.is_set = true;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) if self.is_set => {
                ready!(sleep.as_mut().poll(cx));
                self.is_set = false;
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }
}
