//! A request that waits for its reply, and why it may fail.

use std::{
    cell::RefCell,
    fmt, io, mem,
    rc::Rc,
    task::{Context, Waker},
};

use netping_http2::{client::Event, fields::Fields};
use netping_measure::error_kind::ErrorKind;

use super::Reader;
use crate::transport::{Failure, Result, connect};

/// Part of a reply for which its caller is woken before the end, in bytes.
const LARGE: usize = 64 << 10;

/// A request that waits for its reply.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they do not depend on each other"
)]
pub(super) struct Call {
    pub(super) is_open: bool,
    pub(super) streams: bool,
    pub(super) head: Option<Rc<Fields>>,
    /// The reader has had the head.
    pub(super) is_begun: bool,
    /// The part of the body that has come and is not read.
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<Rc<Fields>>,
    pub(super) outcome: Option<Result<()>>,
    is_waiting: bool,
    /// That of the last caller that waited.
    waker: Option<Waker>,
    /// A stream's reader, which has each part of the reply at once.
    pub(super) reader: Option<Rc<RefCell<dyn Reader>>>,
    /// The sender of a stream, which waits until the last piece is sent.
    pub(super) sender: Option<Waker>,
}

impl Call {
    /// Has the caller woken when there is something to read. Its waker is kept for its next call, which has the
    /// same slot as a rule: to clone one takes as long as to wake it.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.is_waiting = true;
        let is_known = self
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if !is_known {
            self.waker = Some(cx.waker().clone());
        }
    }

    /// Forgets that the caller waits.
    pub(super) fn look(&mut self) {
        self.is_waiting = false;
    }

    /// Wakes those who wait for the reply, or to send; returns true if there is somebody.
    pub(super) fn wake(&mut self) -> bool {
        let is_waiting = mem::take(&mut self.is_waiting);
        if is_waiting && let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
        let sender = self.sender.take();
        let sends = sender.is_some();
        if let Some(sender) = sender {
            sender.wake();
        }
        is_waiting || sends
    }

    /// Makes room for the next call. A body's buffer is kept for it, unless it is longer than `longest`.
    pub(super) fn clear(&mut self, longest: usize) {
        let mut body = mem::take(&mut self.body);
        if body.capacity() > longest {
            body = Vec::new();
        }
        body.clear();
        *self = Self {
            body,
            waker: self.waker.take(),
            ..Self::default()
        };
    }

    /// Takes what became of the request; returns true if the caller has to know.
    pub(super) fn take(&mut self, event: &Event<'_>) -> bool {
        if self.reader.is_some()
            && let Some(is_wanted) = self.read(event)
        {
            return is_wanted;
        }
        match event {
            Event::Head(fields) => {
                self.head = Some(Rc::clone(fields));
                return self.streams || fields.status() != Some(200);
            }
            Event::Data(data) => {
                self.body.extend_from_slice(data);
                return self.streams || self.body.len() >= LARGE;
            }
            Event::Trailers(fields) => {
                self.trailers = Some(Rc::clone(fields));
                return false;
            }
            Event::End => self.outcome = Some(Ok(())),
            Event::Reset(reason) => {
                let detail = format!("the server reset the request: {reason}");
                self.outcome = Some(Err(Failure::request(ErrorKind::Reset, detail)));
            }
            Event::Malformed(detail) => {
                let detail = format!("the reply is malformed: {detail}");
                self.outcome = Some(Err(Failure::request(ErrorKind::Protocol, detail)));
            }
            Event::Left(goaway) => self.outcome = Some(Err(left(goaway))),
            Event::Refused => {
                let detail = "the server refused the request's stream";
                let failure = Failure::request(ErrorKind::Reset, detail);
                self.outcome = Some(Err(failure.unprocessed()));
            }
        }
        true
    }

    /// Gives the reader the end of the reply; returns the result if it has come.
    pub(super) fn end(&mut self, reader: &mut (impl Reader + ?Sized)) -> Option<Result<()>> {
        // It stays, for a sender that asks later.
        let outcome = self.outcome.clone()?;
        let last = self.trailers.as_ref().or(self.head.as_ref());
        Some(outcome.and_then(|()| last.map_or(Ok(()), |last| reader.end(last))))
    }

    /// Gives a stream's reader its part of the reply; returns true if the caller has to know.
    fn read(&mut self, event: &Event<'_>) -> Option<bool> {
        if self.outcome.is_some() {
            // The reader does not want the rest.
            return Some(false);
        }
        let mut reader = self.reader.as_ref()?.borrow_mut();
        let read = match event {
            Event::Head(fields) => {
                self.head = Some(Rc::clone(fields));
                reader.head(fields)
            }
            Event::Data(data) => reader.data(data),
            _ => return None,
        };
        self.outcome = read.err().map(Err);
        Some(self.outcome.is_some())
    }
}

/// Returns the failure of a request whose connection the server has closed.
pub(crate) fn closed() -> Failure {
    let detail = "the server closed the connection before the reply was whole";
    Failure::lost(ErrorKind::Eof, detail)
}

/// Returns the failure of a request that the server has not processed: it sent GOAWAY.
pub(super) fn left(reason: impl fmt::Display) -> Failure {
    let detail = format!("the server takes no more requests on the connection: {reason}");
    Failure::lost(ErrorKind::Goaway, detail).unprocessed()
}

/// Classifies an I/O error. A pipe that is broken had been closed by the server before.
pub(super) fn io_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => closed(),
        _ => connect::io_failure(error),
    }
}
