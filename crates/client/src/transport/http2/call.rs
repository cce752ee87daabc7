//! A request that waits for its reply, and why it may fail.

use std::{cell::RefCell, io, rc::Rc, task::Waker};

use netping_http2::{Reason, client::Event, fields::Fields};
use netping_measure::error_kind::ErrorKind;

use super::Reader;
use crate::transport::{Failure, Result, connect};

/// Part of a reply for which its caller is woken before the end, in bytes.
const LARGE: usize = 64 << 10;

/// A request that waits for its reply.
#[derive(Default)]
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
    pub(super) waker: Option<Waker>,
    /// A stream's reader, which has each part of the reply at once.
    pub(super) reader: Option<Rc<RefCell<dyn Reader>>>,
    /// The sender of a stream, which waits until the last piece is sent.
    pub(super) sender: Option<Waker>,
}

impl Call {
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
            Event::Left(reason) => self.outcome = Some(Err(left(*reason))),
            Event::Refused => {
                let detail = "the server refused the request's stream";
                let failure = Failure::request(ErrorKind::Reset, detail);
                self.outcome = Some(Err(failure.unprocessed()));
            }
        }
        true
    }
}

impl Call {
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

    /// Wakes those who wait for the reply, or to send; returns true if there is somebody.
    pub(super) fn wake(&mut self) -> bool {
        let mut woken = false;
        for waker in [self.waker.take(), self.sender.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
            woken = true;
        }
        woken
    }
}

/// Returns the failure of a request whose connection the server has closed.
pub(crate) fn closed() -> Failure {
    let detail = "the server closed the connection before the reply was whole";
    Failure::lost(ErrorKind::Eof, detail)
}

/// Returns the failure of a request that the server has not processed: it sent GOAWAY.
pub(super) fn left(reason: Reason) -> Failure {
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
