//! Calls by the `h2` crate, which the bulk transfers still use: their requests are streams too.

use std::{
    cell::Cell,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::{
    RecvStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::{
    Failure, Result,
    grpc_reply::{ReplyMessages, check_status},
    http_reply::status_failure,
    socket::Stream,
};

/// Sends requests on a connection.
pub(super) type Sender = SendRequest<Bytes>;

/// The headers of a reply, and its body to be read.
pub(super) type Answer = (HeaderMap, RecvStream);

/// Opens HTTP/2 on a stream; a task of its own drives the connection.
pub(super) async fn open(builder: &Builder, stream: Stream) -> Result<Sender> {
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

/// Returns the next part of a reply's body, whose bytes it gives back to the flow control.
pub(super) async fn next_chunk(body: &mut RecvStream) -> Result<Option<Bytes>> {
    let chunk = body.data().await.transpose()?;
    if let Some(chunk) = &chunk {
        // It fails only on a closed stream, which the next read reports.
        let _ = body.flow_control().release_capacity(chunk.len());
    }
    Ok(chunk)
}

/// Sends a request whose body is known; returns the reply's headers, and its body to be read.
pub(super) async fn ask(send: &mut Sender, head: &Request<()>, body: Bytes) -> Result<Answer> {
    poll_fn(|cx| send.poll_ready(cx)).await?;
    let (response, mut stream) = send.send_request(head.clone(), false)?;
    stream.send_data(body, true)?;
    answer(response).await
}

/// Waits for the headers of a reply.
pub(super) async fn answer(response: ResponseFuture) -> Result<Answer> {
    let (head, body) = response.await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(status_failure(head.status));
    }
    Ok((head.headers, body))
}

/// Gives each message of a reply to `examine`.
///
/// # Errors
/// Any [`Failure`], with a status other than OK among them.
pub(super) async fn examine_all(
    (headers, mut body): Answer,
    mut examine: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut reply = ReplyMessages::default();
    let mut examined = Ok(());
    while let Some(chunk) = next_chunk(&mut body).await? {
        if examined.is_ok() {
            examined = reply.feed(&chunk, &mut examine);
        }
    }
    check_end(&headers, &mut body).await?;
    examined?;
    if !reply.is_at_end() {
        return Err(Failure::mismatch("ends within a message"));
    }
    Ok(())
}

/// Checks the status at a reply's end. An error without a message has it in the headers.
pub(super) async fn check_end(headers: &HeaderMap, body: &mut RecvStream) -> Result<()> {
    match body.trailers().await? {
        Some(trailers) => check_headers(&trailers),
        None => check_headers(headers),
    }
}

/// Checks the status in headers or trailers.
pub(super) fn check_headers(headers: &HeaderMap) -> Result<()> {
    let value = |name| headers.get(name).map(HeaderValue::as_bytes);
    check_status(value("grpc-status"), value("grpc-message"))
}
