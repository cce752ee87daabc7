//! Accepted connections in the form that tonic serves.

use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use netping_http2::Reason;
use netping_protocol::{codec::LINGER, tls};
use netping_serving::{
    Accepted, Chassis, Connection, IDLE_TIMEOUT, MAX_CONNECTIONS, echo::goodbye,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::coop,
};
use tonic::transport::server::Connected;

use crate::{
    received_frames::ReceivedFrames,
    sent_frames::{SentFrames, goaway},
};

/// A stream whose requests carry its [`Connection`], which counts them.
pub(crate) struct ConnectedStream {
    /// `None` once it is shut down, or has taken leave.
    stream: Option<Accepted>,
    connection: Arc<Connection>,
    received: ReceivedFrames,
    sent: SentFrames,
    chassis: Arc<Chassis>,
    /// True until the first bytes have come, to count a client that speaks TLS to a clear-text
    /// port.
    is_fresh: bool,
    /// The last bytes were those of many requests.
    is_dense: bool,
    /// Where the next ones go first, once they were.
    part: Option<Box<[u8; PART]>>,
    /// Requests that have come in this turn of its task.
    in_turn: u64,
}

impl ConnectedStream {
    pub(crate) fn new(stream: Accepted, chassis: Arc<Chassis>) -> Self {
        Self {
            connection: Arc::clone(stream.connection()),
            stream: Some(stream.uncounted()),
            received: ReceivedFrames::default(),
            sent: SentFrames::default(),
            chassis,
            is_fresh: true,
            is_dense: false,
            part: None,
            in_turn: 0,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Accepted>> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Pin::new(stream))
    }

    /// Reads what has come, or a part of it.
    fn poll_stream(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if !self.is_dense {
            return Pin::new(stream).poll_read(cx, buf);
        }
        let part = self.part.get_or_insert_with(|| Box::new([0; PART]));
        let most = buf.remaining().min(PART);
        let mut part = ReadBuf::new(&mut part[..most]);
        let read = ready!(Pin::new(stream).poll_read(cx, &mut part));
        buf.put_slice(part.filled());
        Poll::Ready(read)
    }

    /// Tells the peer why the server closes the connection, if it does.
    fn leave(&mut self) {
        let Some(kind) = self.connection.closed() else {
            return;
        };
        let Some(stream) = self.stream.take() else {
            return;
        };
        let (mut stream, guard) = stream.into_parts();
        let last = self.sent.may_leave().then(|| goaway(reason(kind), kind));
        tokio::spawn(async move {
            let _place = guard;
            goodbye(&mut stream, &last.unwrap_or_default(), linger(kind)).await;
        });
    }
}

/// Returns the error code with which the peer is told that its connection is closed, by the name under which that is
/// counted: NO_ERROR if it was only unused.
pub(crate) fn reason(kind: &str) -> Reason {
    if [IDLE_TIMEOUT, MAX_CONNECTIONS].contains(&kind) {
        Reason::NO_ERROR
    } else {
        Reason::ENHANCE_YOUR_CALM
    }
}

/// Returns the time in which a peer that is still sending may read why its connection is closed. One that was only unused
/// leaves its place at once.
pub(crate) fn linger(kind: &str) -> Duration {
    if reason(kind) == Reason::NO_ERROR {
        Duration::ZERO
    } else {
        LINGER
    }
}

/// Requests after which other tasks have their turn. h2 takes in one turn all that can be read.
const MOST_IN_TURN: u64 = 16;

/// More units than a task's budget has, which tokio gives it for each turn.
const BUDGET: usize = 256;

/// Spends what is left of the task's budget: a single wait would not do, since h2 asks again for each request that it has
/// taken.
fn end_turn(cx: &mut Context<'_>) -> Poll<()> {
    for _ in 0..BUDGET {
        ready!(coop::poll_proceed(cx)).made_progress();
    }
    Poll::Ready(())
}

/// Length of a request, in bytes, below which no more than a [`PART`] is read next.
const DENSE: u64 = 512;

/// Bytes in which the requests of a turn are few, however short they are.
const PART: usize = 1024;

impl Drop for ConnectedStream {
    fn drop(&mut self) {
        self.connection.set_gone();
    }
}

impl Connected for ConnectedStream {
    type ConnectInfo = Arc<Connection>;

    fn connect_info(&self) -> Arc<Connection> {
        Arc::clone(&self.connection)
    }
}

impl AsyncRead for ConnectedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.in_turn > MOST_IN_TURN {
            self.in_turn = 0;
            ready!(end_turn(cx));
        }
        let before = buf.filled().len();
        let Poll::Ready(read) = self.poll_stream(cx, buf) else {
            self.in_turn = 0;
            return Poll::Pending;
        };
        if let Err(error) = read {
            self.leave();
            return Poll::Ready(Err(error));
        }
        let bytes = &buf.filled()[before..];
        if mem::take(&mut self.is_fresh) && bytes.first() == Some(&tls::HANDSHAKE) {
            self.chassis.shared().count("tls");
            let error = io::Error::new(io::ErrorKind::InvalidData, "the peer speaks TLS");
            return Poll::Ready(Err(error));
        }
        let this = &mut *self;
        let (received, connection) = (&mut this.received, &this.connection);
        connection.count_bytes(received.take(bytes, connection.is_active()));
        let requests = received.take_requests();
        this.is_dense = requests > 1 && requests * DENSE > bytes.len() as u64;
        this.in_turn += requests;
        connection.count_control(received.take_control());
        // The reaper limits the time in which the rest of a frame comes.
        connection.set_partial(received.partial());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = self.stream()?.poll_write_vectored(cx, data) else {
            // Nothing may be read meanwhile.
            self.connection.set_partial(0);
            return Poll::Pending;
        };
        let written = written?;
        let this = &mut *self;
        for kind in this.sent.read(data, written) {
            this.chassis.shared().count(&kind);
        }
        this.received.has_sent_data(this.sent.take_data());
        // The rest of a frame is awaited again.
        this.connection.set_partial(this.received.partial());
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    /// Leaves the rest to a task, which waits until the peer closes its side. A socket that is closed
    /// with unread bytes answers with a reset, at which the peer loses the end of what was sent: after
    /// a drain, the last messages of its stream.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(mut stream) = self.stream.take() {
            tokio::spawn(async move { goodbye(&mut stream, &[], LINGER).await });
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{
        Weak,
        atomic::{AtomicUsize, Ordering},
    };

    use netping_serving::testing::accepted;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixStream,
        task::yield_now,
        time,
    };

    use super::*;

    /// Turns of a task without budget between two turns of one that yields.
    const TURNS: usize = 2;

    /// Returns so many requests, none of which is whole.
    pub(crate) fn heads(count: u32) -> Vec<u8> {
        let head = |number: u32| {
            let stream = (2 * number + 1).to_be_bytes();
            [&[0, 0, 1, 1, 4][..], &stream, &[0x82]].concat()
        };
        (0..count).map(head).collect::<Vec<_>>().concat()
    }

    /// Returns bytes in place of a preface, and so many requests.
    fn requests(count: u32) -> Vec<u8> {
        [vec![7; crate::PREFACE as usize], heads(count)].concat()
    }

    /// Returns a connection on which these bytes have come, and its peer.
    async fn connected(bytes: &[u8]) -> (ConnectedStream, UnixStream) {
        let (accepted, chassis, mut peer) = accepted();
        peer.write_all(bytes).await.unwrap();
        (ConnectedStream::new(accepted, chassis), peer)
    }

    /// Reads all, and returns with it the bytes that came between any two turns of another task.
    async fn read_in_turns(mut stream: ConnectedStream) -> (Vec<u8>, Vec<usize>) {
        let length = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&length);
        let other = tokio::spawn(async move {
            let (mut before, mut turns) = (0, Vec::new());
            loop {
                let now = seen.load(Ordering::Relaxed);
                if now == usize::MAX {
                    return turns;
                }
                if now > before {
                    turns.push(now - before);
                }
                before = now;
                yield_now().await;
            }
        });
        let reading = tokio::spawn(async move {
            let (mut all, mut buffer) = (Vec::new(), [0; 8 << 10]);
            loop {
                let count = stream.read(&mut buffer).await.unwrap();
                if count == 0 {
                    length.store(usize::MAX, Ordering::Relaxed);
                    return all;
                }
                all.extend(&buffer[..count]);
                length.store(all.len(), Ordering::Relaxed);
            }
        });
        (reading.await.unwrap(), other.await.unwrap())
    }

    #[tokio::test]
    async fn a_connection_that_is_dropped_is_gone() {
        let (stream, _peer) = connected(b"").await;
        let connection = Arc::clone(&stream.connection);
        drop(stream);
        assert!(connection.is_gone());
    }

    /// Checks that a connection which is closed for this reason, and now done, keeps its place for a while only if it
    /// may still be sending.
    pub(crate) async fn assert_place(kind: &str, connection: Weak<Connection>) {
        let other_turns = async || {
            for _ in 0..100 {
                yield_now().await;
            }
        };
        other_turns().await;
        let is_unused = [IDLE_TIMEOUT, MAX_CONNECTIONS].contains(&kind);
        assert_eq!(connection.strong_count() == 0, is_unused, "{kind}");
        time::advance(LINGER).await;
        other_turns().await;
        assert_eq!(connection.strong_count(), 0, "{kind}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_unused_connection_leaves_its_place_at_once() {
        for kind in [IDLE_TIMEOUT, MAX_CONNECTIONS, "max_held"] {
            let (mut stream, mut peer) = connected(&requests(9)).await;
            let connection = Arc::downgrade(&stream.connection);
            stream.connection.close(kind);
            assert!(stream.read(&mut [0; 99]).await.is_err());
            drop(stream);
            assert_place(kind, connection).await;
            // It has been told why.
            let mut told = Vec::new();
            let _ = peer.read_to_end(&mut told).await;
            assert!(told.ends_with(kind.as_bytes()), "{kind}");
        }
    }

    #[tokio::test]
    async fn short_requests_are_read_in_parts() {
        let sent = requests(4000);
        let (stream, mut peer) = connected(&sent).await;
        peer.shutdown().await.unwrap();
        let (read, turns) = read_in_turns(stream).await;
        assert_eq!(read, sent);
        // The first is as long as the buffer.
        assert!(
            turns[1..].iter().all(|length| *length <= TURNS * PART),
            "{turns:?}"
        );
    }
}
