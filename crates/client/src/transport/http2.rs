//! HTTP/2 connections, for gRPC and for plain requests; and the latter.

use std::{
    cell::Cell,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    client::{Builder, SendRequest},
};
use http::{Request, Version};
use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::secure::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Failure, Milestones, Result, connect, http_reply::HttpReply};
use crate::plan::Destination;

/// Flow-control windows, in bytes: large enough never to hold a reply back.
pub(crate) const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Sends requests on a connection.
pub(crate) type Sender = SendRequest<Bytes>;

/// Opens HTTP/2 on a stream, and notes the time.
pub(crate) async fn handshake(stream: Stream, milestones: &mut Milestones<'_>) -> Result<Sender> {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let send = open(&builder, stream).await?;
    milestones.reached(ConnectPhase::Http2);
    Ok(send)
}

/// Opens HTTP/2 on a stream; a task of its own drives the connection.
pub(crate) async fn open(builder: &Builder, stream: Stream) -> Result<Sender> {
    let has_read = Rc::default();
    let stream = Gathered {
        stream,
        has_read: Rc::clone(&has_read),
    };
    let (send, mut connection) = builder.handshake(stream).await?;
    tokio::task::spawn_local(async move {
        // Every request on the connection learns of its end by itself.
        let _ = poll_fn(|cx| {
            has_read.set(false);
            Pin::new(&mut connection).poll(cx)
        })
        .await;
    });
    Ok(send)
}

/// A stream that gathers what the connection has to say with the next requests of its callers.
///
/// Some servers send a PING with every batch of replies (gRPC in Go does). Its acknowledgement would
/// be written at once, and the requests that the replies bring about just after it: two system calls
/// on either side, where one does.
struct Gathered {
    stream: Stream,
    /// True if bytes have been read since the connection's task was last polled.
    has_read: Rc<Cell<bool>>,
}

impl Gathered {
    /// Puts a write off until the callers whose replies have just been read have had their turn.
    fn poll_turn(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.has_read.take() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for Gathered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.has_read.set(true);
        }
        read
    }
}

impl AsyncWrite for Gathered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        failure(&error)
    }
}

/// Classifies an error of the library, which ends connections with GOAWAY too on which the peer breaks
/// the protocol.
pub(super) fn failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    if is_goodbye(error) {
        return Failure::lost(ErrorKind::Goaway, error);
    }
    if error.is_reset() && error.is_remote() {
        return Failure::request(ErrorKind::Reset, error);
    }
    Failure::lost(ErrorKind::Protocol, error)
}

/// Classifies an I/O error of the library, which calls a connection that has ended a broken pipe.
/// One that is really broken had been closed by the server before.
fn io_failure(error: &io::Error) -> Failure {
    if is_end(error) {
        return closed();
    }
    connect::io_failure(error)
}

/// Returns the failure of a request whose connection the server has closed.
pub(super) fn closed() -> Failure {
    let detail = "the server closed the connection before the reply was whole";
    Failure::lost(ErrorKind::Eof, detail)
}

fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, UnexpectedEof};
    // The codec's words for an end within a frame, which has no kind.
    let is_cut = || error.to_string() == "bytes remaining on stream";
    matches!(error.kind(), BrokenPipe | UnexpectedEof) || is_cut()
}

/// Returns true if the server has sent GOAWAY or closed the connection. Asked between requests.
pub(super) fn is_spent(send: &mut Sender) -> bool {
    // No task has to be woken: the next request looks for itself.
    match send.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => is_goodbye(&error) || error.get_io().is_some_and(is_end),
        Poll::Ready(Ok(())) | Poll::Pending => false,
    }
}

/// Returns true for the server's GOAWAY. The library reports one too when no stream is left, and
/// with another reason if the peer does not speak HTTP/2.
fn is_goodbye(error: &h2::Error) -> bool {
    error.is_go_away() && (error.is_remote() || error.reason() == Some(Reason::NO_ERROR))
}

/// Returns the head of the requests to the resource that the destination names.
pub(super) fn head(destination: &Destination) -> Request<()> {
    let (target, prepared) = (&destination.url, &destination.prepared);
    let (authority, headers) = prepared.for_http2(target);
    let (scheme, path) = (target.scheme.as_str(), &target.path);
    let head = Request::builder()
        .method(prepared.method.clone())
        .version(Version::HTTP_2)
        .uri(format!("{scheme}://{authority}{path}"));
    // A target's parts are always valid in a URI.
    let mut head = head.body(()).unwrap_or_default();
    *head.headers_mut() = headers;
    head
}

/// Returns the next part of a reply's body, whose bytes it gives back to the flow control.
pub(crate) async fn next_chunk(body: &mut RecvStream) -> Result<Option<Bytes>> {
    let chunk = body.data().await.transpose()?;
    if let Some(chunk) = &chunk {
        // It fails only on a closed stream, which the next read reports.
        let _ = body.flow_control().release_capacity(chunk.len());
    }
    Ok(chunk)
}

/// A caller's handle on a connection.
#[derive(Debug, Clone)]
pub(super) struct Http2 {
    pub(super) send: Sender,
    /// The head of all requests.
    pub(super) head: Rc<Request<()>>,
}

impl Http2 {
    /// Sends a request with this body, and reads the whole reply.
    pub(super) async fn call(&mut self, body: &Bytes, reply: &mut HttpReply) -> Result<()> {
        poll_fn(|cx| self.send.poll_ready(cx)).await?;
        let head = Request::clone(&self.head);
        let (response, mut stream) = self.send.send_request(head, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(body.clone(), true)?;
        }
        let response = response.await?;
        reply.status = response.status();
        let mut body = response.into_body();
        while let Some(chunk) = next_chunk(&mut body).await? {
            reply.add(&chunk);
        }
        // The reply is whole once these have come, or are known to be absent.
        body.trailers().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_that_the_server_closed_is_spent_and_at_its_end() {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let (mut send, connection) = h2::client::handshake(near).await.unwrap();
        assert!(!is_spent(&mut send));
        far.shutdown().await.unwrap();
        // The next request learns how it ended.
        let _ = connection.await;
        assert!(is_spent(&mut send));
        let error = poll_fn(|cx| send.poll_ready(cx)).await.unwrap_err();
        assert_eq!(Failure::from(error).kind, ErrorKind::Eof);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_server_that_says_goodbye_is_left_whatever_its_reason() {
        for reason in [0, 11] {
            let (near, mut far) = tokio::io::duplex(1 << 16);
            let (mut send, connection) = h2::client::handshake(near).await.unwrap();
            // Its settings, and GOAWAY.
            far.write_all(b"\0\0\0\x04\0\0\0\0\0").await.unwrap();
            far.write_all(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0")
                .await
                .unwrap();
            far.write_all(&[reason]).await.unwrap();
            far.shutdown().await.unwrap();
            let _ = connection.await;
            assert!(is_spent(&mut send), "{reason}");
            let error = poll_fn(|cx| send.poll_ready(cx)).await.unwrap_err();
            assert_eq!(Failure::from(error).kind, ErrorKind::Goaway, "{reason}");
        }
    }

    #[tokio::test]
    async fn an_end_within_a_frame_is_an_end() {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let (mut send, connection) = h2::client::handshake(near).await.unwrap();
        // Nine bytes are promised, and three come.
        far.write_all(&[0, 0, 9, 0, 0, 0, 0, 0, 1, b'a', b'b', b'c'])
            .await
            .unwrap();
        far.shutdown().await.unwrap();
        let _ = connection.await;
        let error = poll_fn(|cx| send.poll_ready(cx)).await.unwrap_err();
        assert_eq!(Failure::from(error).kind, ErrorKind::Eof);
    }

    #[test]
    fn a_connection_that_was_reset_is_not_at_its_end() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!is_end(&reset));
        assert_eq!(io_failure(&reset).kind, ErrorKind::Reset);
    }
}
