//! A connection on its socket, with its calls.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    mem,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use netping_http2::{
    Config, Reason,
    client::{Body, Client, Event, Slot},
    head::Head,
};
use netping_measure::error_kind::ErrorKind;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::AbortHandle,
};

use super::{
    Reader,
    call::{Call, closed, io_failure, left},
};
use crate::transport::{Failure, Result};

/// Longest buffer of a reply that is kept for the next one, in bytes.
const KEPT: usize = 1 << 20;

/// Room for what one read brings, in bytes.
const READ: usize = 256 << 10;

/// Most parts that one write takes: frames of the shortest limit as far as the output has room for them.
const PARTS: usize = 40;

thread_local! {
    /// The input of all connections of this thread: each has used it up before the next one reads.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// A byte stream.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Io for S {}

/// A connection and its calls.
pub(super) struct Shared<S: Io> {
    pub(super) client: Client,
    stream: S,
    /// The beginning of a frame that has not been read to its end.
    rest: Vec<u8>,
    /// The stream may hold back some of what it was given, as TLS does.
    is_unflushed: bool,
    /// The calls, by slot.
    pub(super) calls: Vec<Call>,
    /// The data that streams' readers have had of what was read last.
    streamed: Vec<(Slot, usize)>,
    /// Calls that are not at their end.
    open: usize,
    /// Bytes of replies that may be unread before all callers are woken.
    most_unread: usize,
    /// Handles that have called.
    pub(super) callers: usize,
    /// A task drives the connection.
    pub(super) is_driven: bool,
    driver: Option<Waker>,
    /// The task that looks after the connection while nobody calls.
    pub(super) watch: Option<AbortHandle>,
    /// Callers have been woken since the driver last looked.
    pub(super) has_woken: bool,
    /// A write has failed; what has come before is still read.
    broken: Option<io::Error>,
    /// The end of the connection.
    pub(super) ended: Option<Failure>,
}

impl<S: Io> Drop for Shared<S> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<S: Io> Shared<S> {
    pub(super) fn new(stream: S, config: Config) -> Self {
        Self {
            client: Client::new(config),
            stream,
            rest: Vec::new(),
            is_unflushed: false,
            calls: Vec::new(),
            streamed: Vec::new(),
            open: 0,
            most_unread: config.connection_window as usize / 4,
            callers: 0,
            is_driven: false,
            driver: None,
            watch: None,
            has_woken: false,
            broken: None,
            ended: None,
        }
    }

    pub(super) fn begin(&mut self, head: &Head, body: Body<'_>, streams: bool) -> Result<Slot> {
        let slot = self.admit(|client| client.request(head, body))?;
        self.calls[slot.index()].streams = streams;
        Ok(slot)
    }

    /// Begins a request in a slot of its own.
    pub(super) fn admit(
        &mut self,
        request: impl FnOnce(&mut Client) -> Option<Slot>,
    ) -> Result<Slot> {
        if let Some(failure) = &self.ended {
            let failure = failure.clone();
            // The server has none of this request.
            return Err(if self.is_spent() {
                failure.unprocessed()
            } else {
                failure
            });
        }
        let Some(slot) = request(&mut self.client) else {
            return Err(self.goodbye());
        };
        if self.calls.len() <= slot.index() {
            self.calls.resize_with(slot.index() + 1, Call::default);
        }
        let call = &mut self.calls[slot.index()];
        call.is_open = true;
        self.open += 1;
        self.wake_driver();
        Ok(slot)
    }

    /// Returns true if the server has sent GOAWAY or closed the connection, or no stream is left.
    pub(super) fn is_spent(&self) -> bool {
        match &self.ended {
            Some(failure) => matches!(failure.kind, ErrorKind::Eof | ErrorKind::Goaway),
            None => self.client.is_spent(),
        }
    }

    /// Returns the failure of a request that a connection does not take any more.
    fn goodbye(&self) -> Failure {
        let goaway = self.client.goaway();
        goaway.map_or_else(|| left(Reason::NO_ERROR), left)
    }

    pub(super) fn poll_call(
        &mut self,
        slot: Slot,
        reader: &mut impl Reader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        self.calls[slot.index()].look();
        loop {
            if let Some(result) = self.read_reply(slot, reader) {
                return Poll::Ready(result);
            }
            if self.is_driven || !self.turn(cx) {
                self.calls[slot.index()].wait(cx);
                return Poll::Pending;
            }
        }
    }

    /// Gives the reader what has come of the reply; returns the result at its end.
    fn read_reply(&mut self, slot: Slot, reader: &mut impl Reader) -> Option<Result<()>> {
        let call = &mut self.calls[slot.index()];
        if let Some(head) = &call.head
            && !mem::replace(&mut call.is_begun, true)
            && let Err(failure) = reader.head(head)
        {
            return Some(Err(failure));
        }
        if !call.body.is_empty() {
            let read = reader.data(&call.body);
            let length = call.body.len();
            call.body.clear();
            if let Err(failure) = read {
                return Some(Err(failure));
            }
            if call.outcome.is_none() {
                self.client.release(slot, length);
                self.wake_driver_to_write();
            }
        }
        self.calls[slot.index()].end(reader)
    }

    /// Ends a call, at its end or before.
    pub(super) fn leave(&mut self, slot: Slot) {
        self.calls[slot.index()].clear(KEPT);
        self.open -= 1;
        self.client.close(slot);
        if self.is_driven {
            self.wake_driver_to_write();
        } else if !self.client.output().is_empty() {
            // A request that is cancelled is told at once if possible, and otherwise with the next one.
            let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
        }
    }

    pub(super) fn wake_driver_to_write(&mut self) {
        if !self.client.output().is_empty() {
            self.wake_driver();
        }
    }

    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Drives the connection for its callers.
    pub(super) fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.driver = None;
        while self.turn(cx) {
            if mem::take(&mut self.has_woken) || !self.client.output().is_empty() {
                // The callers come first, and then this task again.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        if self.ended.is_some() {
            return Poll::Ready(());
        }
        self.driver = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Writes what there is, and reads once. Returns false if there is nothing to be read yet, or ever.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if let Poll::Ready(Err(error)) = self.poll_write(cx) {
            self.broken = Some(error);
        }
        self.poll_read(cx).is_ready()
    }

    /// Reads what has come, unless somebody does who waits for it.
    pub(super) fn look(&mut self) {
        if self.is_driven || self.open > 0 {
            return;
        }
        // No task has to be woken: the next request looks for itself.
        let cx = &mut Context::from_waker(Waker::noop());
        while self.ended.is_none() && self.poll_read(cx).is_ready() {}
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(()));
        }
        while !self.client.output().is_empty() {
            let stream = Pin::new(&mut self.stream);
            let written = if self.client.is_in_parts() {
                let mut slices = [IoSlice::new(&[]); PARTS];
                let count = self.client.parts(&mut slices);
                ready!(stream.poll_write_vectored(cx, &slices[..count]))?
            } else {
                ready!(stream.poll_write(cx, self.client.output()))?
            };
            self.client.written(written);
            self.is_unflushed = true;
            self.wake_senders();
        }
        if self.is_unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and tells the callers.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let result = BUFFER.with_borrow_mut(|buffer| self.poll_read_into(buffer, cx));
        let failure = match result {
            Poll::Ready(Ok(())) => return Poll::Ready(()),
            Poll::Ready(Err(failure)) => failure,
            Poll::Pending => match self.broken.take() {
                Some(error) => self.end_of_stream(io_failure(&error)),
                None => return Poll::Pending,
            },
        };
        self.fail(&failure);
        Poll::Ready(())
    }

    fn poll_read_into(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<Result<()>> {
        let (rest, room) = buffer.split_at_mut(self.rest.len());
        let mut read = ReadBuf::new(room);
        match Pin::new(&mut self.stream).poll_read(cx, &mut read) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => {
                return Poll::Ready(Err(self.end_of_stream(io_failure(&error))));
            }
            Poll::Ready(Ok(())) => {}
        }
        let read = read.filled().len();
        if read == 0 {
            return Poll::Ready(Err(self.end_of_stream(closed())));
        }
        rest.copy_from_slice(&self.rest);
        let length = rest.len() + read;
        Poll::Ready(self.receive(&buffer[..length]))
    }

    /// Takes what was read, and keeps the rest.
    fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        let (calls, has_woken) = (&mut self.calls, &mut self.has_woken);
        let streamed = &mut self.streamed;
        let taken = self.client.receive(bytes, |slot, event| {
            let call = &mut calls[slot.index()];
            if let Event::Data(data) = event
                && call.reader.is_some()
            {
                streamed.push((slot, data.len()));
            }
            if call.take(&event) {
                *has_woken |= call.wake();
            }
        });
        match taken {
            Ok(taken) => {
                self.rest.clear();
                self.rest.extend_from_slice(&bytes[taken..]);
                for (slot, length) in self.streamed.drain(..) {
                    self.client.release(slot, length);
                }
                self.wake_senders();
                if self.client.unreleased() > self.most_unread {
                    self.wake_readers();
                }
                Ok(())
            }
            Err(error) => {
                // The server is told why, if it reads.
                let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
                Err(Failure::lost(ErrorKind::Protocol, error))
            }
        }
    }

    /// Wakes the callers that have something to read. Many small parts of replies would fill the connection's
    /// window otherwise, and the rest of none could come.
    fn wake_readers(&mut self) {
        for call in &mut self.calls {
            if !call.body.is_empty() {
                self.has_woken |= call.wake();
            }
        }
    }

    /// Returns the failure of requests that the server has begun when the stream ends with this one: it says more if it
    /// has sent GOAWAY before.
    fn end_of_stream(&self, failure: Failure) -> Failure {
        if self.client.goaway().is_none() {
            return failure;
        }
        let mut goodbye = self.goodbye();
        goodbye.unprocessed = false;
        goodbye
    }

    /// Ends the connection, and with it every call.
    fn fail(&mut self, failure: &Failure) {
        self.ended = Some(failure.clone());
        if self.is_spent() {
            // The server has none of these requests.
            for slot in self.client.waiting() {
                let unprocessed = failure.clone().unprocessed();
                self.calls[slot.index()].outcome = Some(Err(unprocessed));
            }
        }
        for call in &mut self.calls {
            if call.is_open {
                call.outcome.get_or_insert_with(|| Err(failure.clone()));
                self.has_woken |= call.wake();
            }
        }
    }

    /// Takes leave of the server, as far as that is possible at once.
    fn close(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if self.ended.is_none() {
            self.client.say_goodbye();
            let _ = self.poll_write(&mut cx);
            let _ = Pin::new(&mut self.stream).poll_shutdown(&mut cx);
            self.ended = Some(closed());
        }
        self.wake_driver();
        self.end_watch();
    }

    pub(super) fn end_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
    }

    /// Drives the connection while nobody else does; ready when it is at its end or has a driver.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_driven {
            return Poll::Ready(());
        }
        if self.open == 0 {
            while self.turn(cx) {}
        }
        match self.ended {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }
}
