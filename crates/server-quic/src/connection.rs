//! A connection and its streams.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use netping_protocol::codec::{Codec, Limits};
use netping_serving::{
    chassis::Chassis,
    connection::{Connection, Guard},
    echo::echo,
};
use quinn::{RecvStream, SendStream, VarInt};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Application error code of a connection that ends in order.
const GOODBYE: VarInt = VarInt::from_u32(0);

/// Application error code of a connection that the reaper ends.
const OVERDUE: VarInt = VarInt::from_u32(1);

/// A connection whose handshake is done.
pub(crate) struct ServedConnection {
    pub connection: quinn::Connection,
    pub guard: Guard,
    pub limits: Limits,
    pub chassis: Chassis,
}

impl ServedConnection {
    /// Serves the connection until it closes, is overdue, or the server drains.
    pub async fn serve(self) {
        let draining = CancellationToken::new();
        let mut streams = JoinSet::new();
        let end = loop {
            tokio::select! {
                stream = self.connection.accept_bi() => match stream {
                    Ok((send, recv)) => {
                        let stream = Stream::new(send, recv, Arc::clone(self.guard.connection()), draining.clone());
                        streams.spawn(serve_stream(stream, self.limits, self.chassis.clone()));
                    }
                    Err(error) => break Some(error),
                },
                Some(_) = streams.join_next() => {}
                () = self.guard.draining() => break None,
            }
        };
        if let Some(error) = end {
            tracing::debug!("connection: {error}");
        }
        // Received requests are answered, and the answers arrive.
        draining.cancel();
        let answered = async { while streams.join_next().await.is_some() {} };
        tokio::select! {
            // First, since a connection without streams has nothing to answer either.
            biased;
            () = self.guard.closed() => self.connection.close(OVERDUE, b"the connection is overdue"),
            () = answered => self.connection.close(GOODBYE, b"the server is stopping"),
        }
    }
}

async fn serve_stream(mut stream: Stream, limits: Limits, chassis: Chassis) {
    let connection = Arc::clone(&stream.connection);
    echo(&mut stream, Codec::frames(limits), &connection, &chassis).await;
    // It fails only if the client is gone.
    let _ = stream.send.finish();
    let _ = stream.send.stopped().await;
}

/// Both directions of a stream. It counts the bytes it reads, and reads as closed once the server
/// drains.
struct Stream {
    send: SendStream,
    recv: RecvStream,
    connection: Arc<Connection>,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("id", &self.send.id())
            .finish_non_exhaustive()
    }
}

impl Stream {
    fn new(
        send: SendStream,
        recv: RecvStream,
        connection: Arc<Connection>,
        draining: CancellationToken,
    ) -> Self {
        Self {
            send,
            recv,
            connection,
            draining: Box::pin(draining.cancelled_owned()),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match AsyncRead::poll_read(Pin::new(&mut this.recv), cx, buf) {
            Poll::Pending => this.draining.as_mut().poll(cx).map(Ok),
            // The client has closed the connection, and with it every stream.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::NotConnected => {
                Poll::Ready(Ok(()))
            }
            Poll::Ready(result) => {
                this.connection.count_bytes(buf.filled().len() - before);
                Poll::Ready(result)
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.get_mut().send), cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.get_mut().send), cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.get_mut().send), cx)
    }
}
