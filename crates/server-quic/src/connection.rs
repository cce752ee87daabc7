//! A connection and its streams.

use std::{
    future::ready,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use netping_protocol::codec::{Codec, Limits};
use netping_serving::{Chassis, Connection, Guard, Wait, echo::echo};
use quinn::{RecvStream, SendStream, VarInt};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Application error code of a connection that ends in order.
const GOODBYE: VarInt = VarInt::from_u32(0);

/// Application error code of a connection that the server closes for a reason.
const CLOSED: VarInt = VarInt::from_u32(1);

/// Serves a connection whose handshake is done until it closes, the server closes it for a reason, or drains.
pub(crate) async fn serve(
    connection: quinn::Connection,
    guard: Guard,
    limits: Limits,
    chassis: Arc<Chassis>,
) {
    let draining = CancellationToken::new();
    let mut streams = JoinSet::new();
    let begin = |streams: &mut JoinSet<()>, (send, recv)| {
        let requests = Requests {
            recv,
            connection: Arc::clone(guard.connection()),
            draining: Box::pin(draining.clone().cancelled_owned()),
        };
        streams.spawn(serve_stream(send, requests, limits, Arc::clone(&chassis)));
    };
    loop {
        tokio::select! {
            stream = connection.accept_bi() => match stream {
                Ok(stream) => begin(&mut streams, stream),
                Err(error) => {
                    tracing::debug!("connection: {error}");
                    break;
                }
            },
            Some(_) = streams.join_next() => {}
            () = guard.draining() => break,
        }
    }
    // Streams that have come are served, too.
    loop {
        tokio::select! {
            biased;
            Ok(stream) = connection.accept_bi() => begin(&mut streams, stream),
            () = ready(()) => break,
        }
    }
    // Received requests are answered, and the answers arrive.
    draining.cancel();
    let answered = async { while streams.join_next().await.is_some() {} };
    tokio::select! {
        // First, since a connection without streams has nothing to answer either.
        biased;
        () = guard.closed() => {
            let reason = guard.connection().closed().unwrap_or("the server is stopping");
            connection.close(CLOSED, reason.as_bytes());
        }
        () = answered => connection.close(GOODBYE, b"the server is stopping"),
    }
}

async fn serve_stream(send: SendStream, requests: Requests, limits: Limits, chassis: Arc<Chassis>) {
    let connection = Arc::clone(&requests.connection);
    let wait = Wait::new(Arc::clone(&connection));
    let mut stream = tokio::io::join(requests, Replies { send, wait });
    let codec = Codec::frames(limits);
    echo(&mut stream, codec, &connection, &chassis).await;
    let Replies { send, wait } = stream.writer_mut();
    // It fails only if the client is gone.
    let _ = send.finish();
    // For the client to acknowledge the last reply: quinn has taken it whole.
    wait.set(true);
    let _ = send.stopped().await;
}

/// The sending side of a stream, whose writes may wait for the client.
struct Replies {
    send: SendStream,
    wait: Wait<Arc<Connection>>,
}

impl Replies {
    /// Makes a call that writes.
    fn poll<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        call: impl FnOnce(Pin<&mut SendStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        let result = call(Pin::new(&mut this.send), cx);
        this.wait.set(result.is_pending());
        result
    }
}

impl AsyncWrite for Replies {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |send, cx| AsyncWrite::poll_write(send, cx, data))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, AsyncWrite::poll_shutdown)
    }
}

/// The receiving side of a stream. It counts the bytes it reads, and reads as closed once the
/// server drains.
struct Requests {
    recv: RecvStream,
    connection: Arc<Connection>,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl AsyncRead for Requests {
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
