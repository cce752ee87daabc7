//! HTTP/1.1: one request after the other, on a connection of the caller's own.

mod request;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    future::poll_fn,
    io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::StatusCode;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::http1::{MAX_HEAD, ReplyError, ReplyReader};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::request::Outgoing;
pub(super) use self::request::RequestHead;
use super::{Failure, Result, connect, http_reply::HttpReply, http2::closed, socket::Stream};

/// Room for what is read at once, in bytes.
const ROOM: usize = 64 << 10;

thread_local! {
    /// The input of all connections of a worker, one at a time: buffers of their own would not stay in the
    /// processor's caches. The longest head that is not whole yet stands before what is read.
    static INPUT: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_HEAD + ROOM].into());
}

/// A connection with its only caller.
#[derive(Debug)]
pub(super) struct Http1 {
    stream: Stream,
    head: Arc<RequestHead>,
    outgoing: Outgoing,
    /// Some of the request is left to be sent.
    is_sending: bool,
    reader: ReplyReader,
    /// Bytes that the reader could not use yet: the beginning of a head, or of a chunk's line.
    unread: Vec<u8>,
    standing: Standing,
}

/// The state of a connection between requests.
#[derive(Debug)]
enum Standing {
    /// It can have the next request.
    Ready,
    /// The server has closed it, or wants it closed; or a request was not completed.
    Spent,
    /// The next request on it fails.
    Broken(Failure),
}

impl Http1 {
    /// Returns a connection on a stream, for requests that all have this head.
    pub(super) fn new(stream: Stream, head: Arc<RequestHead>) -> Self {
        Self {
            stream,
            outgoing: Outgoing::new(&head),
            is_sending: false,
            reader: ReplyReader::new(head.method().as_str()),
            head,
            unread: Vec::new(),
            standing: Standing::Ready,
        }
    }

    /// Returns true if the server has closed the connection after a whole reply, or wants it
    /// closed.
    pub(super) fn is_spent(&mut self) -> bool {
        if matches!(self.standing, Standing::Ready) {
            self.standing = self.look();
        }
        matches!(self.standing, Standing::Spent)
    }

    /// Looks at what the server did after its last reply.
    fn look(&mut self) -> Standing {
        let mut bytes = [0; 64];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => Standing::Spent,
            // Over TLS, without saying so before.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Standing::Spent,
            Ok(read) => Standing::Broken(ReplyError::surplus(&bytes[..read]).into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Standing::Ready,
            Err(error) => Standing::Broken(connect::io_failure(&error)),
        }
    }

    /// Sends a request with this body, and reads the whole reply.
    pub(super) async fn call(&mut self, body: &[u8], reply: &mut HttpReply<'_>) -> Result<()> {
        // A call that is given up leaves the rest of a reply to come.
        match mem::replace(&mut self.standing, Standing::Spent) {
            Standing::Ready => {}
            Standing::Spent => return Err(closed()),
            Standing::Broken(failure) => return Err(failure),
        }
        self.outgoing.begin(&self.head, body);
        self.is_sending = true;
        let mut unsent = None;
        poll_fn(|cx| self.poll_exchange(cx, body, reply, &mut unsent)).await?;

        let status = StatusCode::from_u16(self.reader.status());
        reply.status = status.map_err(|error| Failure::lost(ErrorKind::Protocol, error))?;
        let is_last = self.reader.is_last() || self.head.is_last() || self.is_sending;
        if !is_last {
            self.standing = match &*self.unread {
                [] => Standing::Ready,
                surplus => Standing::Broken(ReplyError::surplus(surplus).into()),
            };
        }
        Ok(())
    }

    /// Writes what is left of the request, and reads what there is of the reply. A server may refuse a long
    /// request before it has all of it, and close the connection: its reply then says more than `unsent`, the
    /// error of writing.
    fn poll_exchange(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
        reply: &mut HttpReply<'_>,
        unsent: &mut Option<io::Error>,
    ) -> Poll<Result<()>> {
        if self.is_sending && unsent.is_none() {
            match self.poll_send(cx, body) {
                Poll::Ready(Ok(())) => self.is_sending = false,
                Poll::Ready(Err(error)) if is_end(&error) => *unsent = Some(error),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {}
            }
        }
        let received = INPUT.with_borrow_mut(|input| self.poll_receive(cx, input, reply));
        received.map_err(|failure| unsent.take().map_or(failure, Failure::from))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Poll<io::Result<()>> {
        let Self {
            stream, outgoing, ..
        } = self;
        while !outgoing.is_written() {
            let mut stream = Pin::new(&mut *stream);
            let written = match outgoing.in_one_place() {
                Some(bytes) => stream.as_mut().poll_write(cx, bytes),
                None => stream.poll_write_vectored(cx, &outgoing.places(body)),
            };
            let written = ready!(written)?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            outgoing.advance(written);
        }
        // TLS may have buffered some of it; nothing else does.
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut [u8],
        reply: &mut HttpReply<'_>,
    ) -> Poll<Result<()>> {
        loop {
            let before = self.unread.len();
            input[..before].copy_from_slice(&self.unread);
            let mut room = ReadBuf::new(&mut input[before..]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room))?;
            let read = room.filled().len();
            if read == 0 {
                let is_whole = self.reader.end();
                return Poll::Ready(if is_whole { Ok(()) } else { Err(closed()) });
            }
            let bytes = &input[..before + read];
            let progress = self.reader.read(bytes, |part| reply.add(part))?;
            self.unread.clear();
            self.unread.extend_from_slice(&bytes[progress.used..]);
            if progress.is_whole {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Returns true for the error of writing to a connection that the peer has ended. What it sent before can
/// still be read, and then the end.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

impl From<ReplyError> for Failure {
    fn from(error: ReplyError) -> Self {
        Self::lost(ErrorKind::Protocol, error)
    }
}
