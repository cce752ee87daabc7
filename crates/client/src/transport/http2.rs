//! HTTP/2: what gRPC and a plain `GET` have in common, and the latter.

use std::{
    future::poll_fn,
    io,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use h2::{
    Reason,
    client::{Builder, SendRequest},
};
use http::{Request, StatusCode, Uri, Version};
use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{secure::Stream, target::Target};

use super::{Failure, Milestones, connect};

/// Flow-control windows, in bytes: large enough never to hold a reply back.
pub(crate) const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Speaks HTTP/2 on a stream; a task of its own keeps the connection going.
pub(super) async fn handshake(
    stream: Stream,
    milestones: &mut Milestones<'_>,
) -> Result<SendRequest<Bytes>, Failure> {
    let (send, connection) = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(stream)
        .await
        .map_err(failure)?;
    tokio::task::spawn_local(async move {
        // Every request on the connection learns of its end by itself.
        let _ = connection.await;
    });
    milestones.reached(ConnectPhase::Http2);
    Ok(send)
}

/// The failure that an HTTP/2 error means.
pub(crate) fn failure(error: h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    if is_goodbye(&error) {
        return Failure::lost(ErrorKind::Goaway, error);
    }
    if error.is_reset() && error.is_remote() {
        return Failure::request(ErrorKind::Reset, error);
    }
    Failure::lost(ErrorKind::Protocol, error)
}

/// The failure that an I/O error of the library means: it calls a connection that has ended a broken pipe. One that is
/// broken indeed had been closed by the server before.
pub(super) fn io_failure(error: &io::Error) -> Failure {
    if is_end(error) {
        return Failure::lost(
            ErrorKind::Eof,
            "the server closed the connection before the reply was whole",
        );
    }
    connect::io_failure(error)
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}

/// Whether the server has said goodbye, or closed the connection. Asked between requests.
pub(super) fn is_spent(send: &mut SendRequest<Bytes>) -> bool {
    // Nobody waits: the next request looks for itself.
    match send.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => is_goodbye(&error) || error.get_io().is_some_and(is_end),
        Poll::Ready(Ok(())) | Poll::Pending => false,
    }
}

/// Whether the server has said goodbye. The library says it too: in answer, when no stream is left; and with another
/// reason where what comes is no HTTP/2.
fn is_goodbye(error: &h2::Error) -> bool {
    error.is_go_away() && (error.is_remote() || error.reason() == Some(Reason::NO_ERROR))
}

/// A request without a body.
pub(super) type Get = Request<()>;

/// The request for what `target` names.
pub(super) fn get(target: &Target) -> Get {
    let uri = format!(
        "{}://{}{}",
        target.scheme.as_str(),
        target.authority(),
        target.path
    );
    let mut get = Request::new(());
    *get.version_mut() = Version::HTTP_2;
    // A target's parts are always valid ones of a URI.
    *get.uri_mut() = uri
        .parse()
        .unwrap_or_else(|_| Uri::from_static("http://localhost/"));
    get
}

/// One caller's handle on a connection.
#[derive(Debug, Clone)]
pub(super) struct Http2 {
    send: SendRequest<Bytes>,
    get: Rc<Get>,
}

impl Http2 {
    /// Speaks HTTP/2 on a stream, and will send `get`.
    pub(super) async fn new(
        stream: Stream,
        get: Get,
        milestones: &mut Milestones<'_>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            send: handshake(stream, milestones).await?,
            get: Rc::new(get),
        })
    }

    /// Whether the server has said goodbye, or closed the connection.
    pub(super) fn is_spent(&mut self) -> bool {
        is_spent(&mut self.send)
    }

    /// Sends the request and reads the whole reply: its status, and the length of its body in bytes.
    pub(super) async fn call(&mut self) -> Result<(StatusCode, u64), Failure> {
        poll_fn(|cx| self.send.poll_ready(cx))
            .await
            .map_err(failure)?;
        let (response, _) = self
            .send
            .send_request(Get::clone(&self.get), true)
            .map_err(failure)?;
        let response = response.await.map_err(failure)?;
        let status = response.status();
        let mut body = response.into_body();
        let mut length = 0;
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(failure)?;
            length += chunk.len() as u64;
            // It fails only on a stream that is closed, and then the next read tells.
            let _ = body.flow_control().release_capacity(chunk.len());
        }
        // The reply is whole once these have come, or will not.
        body.trailers().await.map_err(failure)?;
        Ok((status, length))
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
        // What it ended with is what the next request is told.
        let _ = connection.await;
        assert!(is_spent(&mut send));
        let error = poll_fn(|cx| send.poll_ready(cx)).await.unwrap_err();
        assert_eq!(failure(error).kind, ErrorKind::Eof);
    }

    #[test]
    fn a_connection_that_was_reset_is_not_at_its_end() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!is_end(&reset));
        assert_eq!(io_failure(&reset).kind, ErrorKind::Reset);
    }
}
