//! Accepted connections in the form that tonic serves.

use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use netping_protocol::tls;
use netping_serving::{chassis::Chassis, connection::Connection, runtime::Accepted};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

use crate::sent_frames::SentFrames;

/// Longest wait for the peer to close its side of a connection that has been shut down.
const LINGER: Duration = Duration::from_secs(1);

/// A stream whose requests carry its [`Connection`], which counts them.
pub(crate) struct ConnectedStream {
    stream: Accepted,
    sent: SentFrames,
    chassis: Chassis,
    /// True until the first bytes have come, to count a client that speaks TLS to a clear-text
    /// port.
    is_fresh: bool,
    /// `Some` once the stream is shut down: the end of the wait for the peer.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl ConnectedStream {
    pub(crate) fn new(stream: Accepted, chassis: Chassis) -> Self {
        Self {
            stream,
            sent: SentFrames::default(),
            chassis,
            is_fresh: true,
            lingering: None,
        }
    }

    /// Counts what the server has told its peer of errors.
    fn count_sent(&mut self, data: &[IoSlice<'_>], written: usize) {
        for kind in self.sent.read(data, written) {
            self.chassis.count_error(&kind);
        }
    }

    /// Reads until the peer closes its side or the wait is over.
    ///
    /// A socket that is closed with unread bytes answers with a reset, at which the peer loses
    /// the end of what was sent: after a drain, the last messages of its stream.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingering = self
            .lingering
            .get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if lingering.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut unread = [0; 4096];
        loop {
            let mut buf = ReadBuf::new(&mut unread);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl Connected for ConnectedStream {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Arc<Connection> {
        Arc::clone(self.stream.connection())
    }
}

impl AsyncRead for ConnectedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if mem::take(&mut self.is_fresh) && buf.filled().get(before) == Some(&tls::HANDSHAKE) {
            self.chassis.count_error("tls");
            let error = io::Error::new(io::ErrorKind::InvalidData, "the peer speaks TLS");
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data))?;
        self.count_sent(&[IoSlice::new(data)], written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, data))?;
        self.count_sent(data, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        self.poll_linger(cx).map(Ok)
    }
}
