//! A connection's stream, which counts received bytes and ends on request.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::JoinHandle,
    time::sleep,
};

use crate::connection::{Connection, Ending, Guard};

/// A stream that counts the bytes it reads and ends when its connection has to: during a drain
/// it reads as closed once the received bytes are read; after a close every read, and every wait, fails.
#[derive(Debug)]
pub struct Guarded<S> {
    stream: S,
    guard: Guard,
    /// Its owner counts what is read.
    is_uncounted: bool,
    last_look: LastLook,
}

/// The look for bytes that had come before a drain, but not to the runtime's knowledge: it learns of them when its I/O
/// driver has its turn, which comes before that of its timers.
#[derive(Debug)]
enum LastLook {
    None,
    /// A task that ends after that.
    Begun(JoinHandle<()>),
    Over,
}

impl LastLook {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::None = self {
            *self = Self::Begun(tokio::spawn(sleep(Duration::from_millis(1))));
        }
        if let Self::Begun(turn) = self {
            // It fails only as the runtime ends.
            let _ = ready!(Pin::new(turn).poll(cx));
            *self = Self::Over;
        }
        Poll::Ready(())
    }
}

impl<S> Guarded<S> {
    pub(crate) fn new(stream: S, guard: Guard) -> Self {
        Self {
            stream,
            guard,
            is_uncounted: false,
            last_look: LastLook::None,
        }
    }

    /// Leaves it to the owner to count the bytes that keep the connection alive.
    #[must_use]
    pub fn uncounted(mut self) -> Self {
        self.is_uncounted = true;
        self
    }

    /// Returns the connection, which all its tasks share.
    pub fn connection(&self) -> &Arc<Connection> {
        self.guard.connection()
    }

    /// Returns the bare stream, and the guard that its new owner must heed.
    pub fn into_parts(self) -> (S, Guard) {
        (self.stream, self.guard)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if read.is_pending() {
            return match this.guard.ending(cx) {
                Ending::None => Poll::Pending,
                Ending::Drain => this.last_look.poll(cx).map(Ok),
                Ending::Close => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            };
        }
        // Some protocols read in one turn all that comes.
        if this.guard.is_closing() {
            buf.set_filled(before);
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if !this.is_uncounted {
            let received = buf.filled().len() - before;
            this.guard.connection().count_bytes(received);
        }
        read
    }
}

impl<S: Unpin> Guarded<S> {
    /// Makes a call that writes. One that would wait fails if the connection is closed.
    fn poll_writing<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        call: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        let result = call(Pin::new(&mut this.stream), cx);
        this.guard.set_blocked(result.is_pending());
        if result.is_pending() && this.guard.ending(cx) == Ending::Close {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |stream, cx| stream.poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |stream, cx| stream.poll_write_vectored(cx, data))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(cx, S::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(cx, S::poll_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Waker};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::timeout,
    };

    use super::*;
    use crate::{connection::Connections, testing::PATIENCE};

    #[tokio::test]
    async fn a_drained_connection_reads_received_bytes_and_then_the_end() {
        let connections = Arc::new(Connections::default());
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = Guarded::new(ours, connections.admit_task(1).unwrap());
        theirs.write_all(b"last").await.unwrap();
        connections.end_all(Ending::Drain);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"last");
        drop(stream);
        connections.empty().await;
    }

    #[tokio::test]
    async fn a_drained_connection_reads_what_has_come_to_the_system() {
        let connections = Arc::new(Connections::default());
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        io::Write::write_all(&mut theirs, b"last").unwrap();
        ours.set_nonblocking(true).unwrap();
        // The runtime has heard nothing of it yet.
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        let mut stream = Guarded::new(ours, connections.admit_task(1).unwrap());
        connections.end_all(Ending::Drain);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, b"last");
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_closed_connection_reads_no_more() {
        let connections = Arc::new(Connections::default());
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut stream = Guarded::new(ours, connections.admit_task(1).unwrap());
        theirs.write_all(b"more").await.unwrap();
        connections.end_all(Ending::Close);
        let mut bytes = [0; 9];
        let mut buffer = ReadBuf::new(&mut bytes);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(read) = Pin::new(&mut stream).poll_read(&mut cx, &mut buffer) else {
            panic!("it waits");
        };
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert!(buffer.filled().is_empty());
    }

    /// Checks that a task fails, and soon, because its connection is closed.
    async fn assert_aborted<T: std::fmt::Debug>(task: JoinHandle<io::Result<T>>) {
        let done = timeout(PATIENCE, task).await.unwrap();
        let error = done.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_closed_connection_stops_waiting() {
        let connections = Arc::new(Connections::default());
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut stream = Guarded::new(ours, connections.admit_task(1).unwrap());
        // Another task has waited before.
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(stream.read_u8()).poll(&mut cx).is_pending());
        let reader = tokio::spawn(async move { stream.read_u8().await });
        tokio::task::yield_now().await;
        connections.end_all(Ending::Close);
        assert_aborted(reader).await;
    }

    #[tokio::test]
    async fn a_connection_that_drains_stops_waiting_when_it_is_closed() {
        let connections = Arc::new(Connections::default());
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut stream = Guarded::new(ours, connections.admit_task(1).unwrap());
        let writer = tokio::spawn(async move { stream.write_all(&[0; 1000]).await });
        for ending in [Ending::Drain, Ending::Close] {
            tokio::task::yield_now().await;
            connections.end_all(ending);
        }
        assert_aborted(writer).await;
    }

    /// TLS buffers a whole write and then waits in the flush: a peer that does not read must not
    /// stay open for ever.
    #[tokio::test]
    async fn a_closed_connection_stops_waiting_to_be_flushed() {
        let connections = Arc::new(Connections::default());
        let (ours, _theirs) = tokio::io::duplex(64);
        let guard = connections.admit_task(1).unwrap();
        let mut stream = Guarded::new(tokio::io::BufWriter::new(ours), guard);
        stream.write_all(&[0; 1000]).await.unwrap();
        let writer = tokio::spawn(async move { stream.flush().await });
        tokio::task::yield_now().await;
        connections.end_all(Ending::Close);
        assert_aborted(writer).await;
    }
}
