//! Requests that send and receive messages one by one.

use std::{
    cell::RefCell,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
};

use netping_http2::{
    client::{Body, Slot},
    head::Head,
};
use netping_measure::error_kind::ErrorKind;

use super::{
    Reader,
    connection::{Io, Shared},
};
use crate::transport::{Failure, Result, socket::Stream};

/// A request that sends pieces while its reply comes. It is cancelled when it is dropped before its end.
///
/// Each part of the reply goes to the reader where it lies in the connection's input, and makes room for the next one.
pub(crate) struct Streaming<S: Io = Stream> {
    shared: Rc<RefCell<Shared<S>>>,
    reader: Rc<RefCell<dyn Reader>>,
    slot: Slot,
}

impl<S: Io> Streaming<S> {
    pub(super) fn begin(
        shared: Rc<RefCell<Shared<S>>>,
        head: &Head,
        reader: Rc<RefCell<dyn Reader>>,
    ) -> Result<Self> {
        let slot = shared.borrow_mut().begin_stream(head, Rc::clone(&reader))?;
        Ok(Self {
            shared,
            reader,
            slot,
        })
    }

    /// Sends a piece of the request's body as soon as the piece before it is sent as far as the server's flow control
    /// is concerned; with `is_last`, the body ends with it.
    ///
    /// # Errors
    /// Any failure that ends the request, and [`ErrorKind::Reset`] if the server has ended it.
    pub(crate) async fn send(&self, piece: Body<'_>, is_last: bool) -> Result<()> {
        self.sent().await?;
        self.shared.borrow_mut().send(self.slot, piece, is_last)
    }

    /// Waits until the last piece is sent as far as the server's flow control is concerned.
    ///
    /// # Errors
    /// Any failure that ends the request.
    pub(crate) async fn sent(&self) -> Result<()> {
        poll_fn(|cx| self.shared.borrow_mut().poll_sent(self.slot, cx)).await
    }

    /// Returns true if the server's flow control, or its limit of streams, keeps a piece from being sent as a whole.
    pub(crate) fn is_held_back(&self) -> bool {
        self.shared.borrow_mut().client.is_held_back(self.slot)
    }

    /// Returns true if the request is at its end.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.borrow().calls[self.slot.index()]
            .outcome
            .is_some()
    }

    /// Waits for the end of the reply, and gives it to the reader.
    ///
    /// # Errors
    /// Any failure, those of the reader among them.
    pub(crate) async fn end(&self) -> Result<()> {
        let end = |cx: &mut Context<'_>| {
            let reader = &mut *self.reader.borrow_mut();
            self.shared.borrow_mut().poll_end(self.slot, reader, cx)
        };
        poll_fn(end).await
    }
}

impl<S: Io> Drop for Streaming<S> {
    fn drop(&mut self) {
        self.shared.borrow_mut().leave(self.slot);
    }
}

impl<S: Io> Shared<S> {
    fn begin_stream(&mut self, head: &Head, reader: Rc<RefCell<dyn Reader>>) -> Result<Slot> {
        let slot = self.admit(|client| client.stream(head))?;
        self.calls[slot.index()].reader = Some(reader);
        Ok(slot)
    }

    /// Waits until the last piece of a stream is sent.
    fn poll_sent(&mut self, slot: Slot, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let call = &mut self.calls[slot.index()];
        if let Some(outcome) = &call.outcome {
            return Poll::Ready(outcome.clone());
        }
        if self.client.unsent(slot) == 0 {
            return Poll::Ready(Ok(()));
        }
        call.sender = Some(cx.waker().clone());
        Poll::Pending
    }

    fn send(&mut self, slot: Slot, piece: Body<'_>, is_last: bool) -> Result<()> {
        if !self.client.send(slot, piece, is_last) {
            let detail = "the server ended the call in mid-run";
            return Err(Failure::request(ErrorKind::Reset, detail));
        }
        self.wake_driver_to_write();
        Ok(())
    }

    fn poll_end(
        &mut self,
        slot: Slot,
        reader: &mut dyn Reader,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let call = &mut self.calls[slot.index()];
        let Some(result) = call.end(reader) else {
            call.wait(cx);
            return Poll::Pending;
        };
        Poll::Ready(result)
    }

    /// Wakes the senders of streams whose last piece is sent.
    pub(super) fn wake_senders(&mut self) {
        while let Some(slot) = self.client.next_sent() {
            if let Some(sender) = self.calls[slot.index()].sender.take() {
                self.has_woken = true;
                sender.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use h2::{RecvStream, SendStream, server};
    use netping_http2::{Config, fields::Fields};
    use tokio::{
        io::{DuplexStream, duplex},
        sync::{Notify, mpsc},
        task::LocalSet,
    };

    use super::{super::prepare, *};
    use crate::transport::http2::Handle;

    /// Tells each part of the reply; refuses `no`.
    struct Told(mpsc::UnboundedSender<Bytes>);

    impl Reader for Told {
        fn head(&mut self, _: &Fields) -> Result<()> {
            Ok(())
        }

        fn data(&mut self, data: &[u8]) -> Result<()> {
            let _ = self.0.send(Bytes::copy_from_slice(data));
            let refused = Failure::request(ErrorKind::Mismatch, "refused");
            if data == b"no" { Err(refused) } else { Ok(()) }
        }

        fn end(&mut self, last: &Fields) -> Result<()> {
            let _ = self
                .0
                .send(Bytes::copy_from_slice(last.get("last").unwrap_or_default()));
            Ok(())
        }
    }

    type Parts = mpsc::UnboundedReceiver<Bytes>;

    /// Opens a stream to a server whose streams have room for ten bytes; `client` has it and what comes, `serve` the
    /// server's end of the stream.
    async fn with_stream(
        client: impl AsyncFnOnce(Streaming<DuplexStream>, Parts),
        serve: impl AsyncFnOnce(RecvStream, SendStream<Bytes>) + 'static,
    ) {
        let run = async {
            let (near, far) = duplex(1 << 20);
            tokio::task::spawn_local(async {
                let mut builder = server::Builder::new();
                let builder = builder.initial_window_size(10);
                let mut connection = builder.handshake::<_, Bytes>(far).await.unwrap();
                let (request, mut respond) = connection.accept().await.unwrap().unwrap();
                let reply = respond.send_response(http::Response::new(()), false);
                let serving = serve(request.into_body(), reply.unwrap());
                // It drives the connection.
                tokio::join!(serving, async {
                    let _ = connection.accept().await;
                });
            });
            let mut handle = Handle::open(near, Config::default()).await.unwrap();
            let request = http::Request::get("http://localhost/").body(()).unwrap();
            let (told, parts) = mpsc::unbounded_channel();
            let reader = Rc::new(RefCell::new(Told(told)));
            let stream = handle.stream(&prepare(&request), reader).unwrap();
            client(stream, parts).await;
        };
        let run = tokio::time::timeout(std::time::Duration::from_mins(1), run);
        LocalSet::new().run_until(run).await.unwrap();
    }

    async fn send(stream: &Streaming<DuplexStream>, piece: &[u8]) -> Result<()> {
        stream.send(Body::Short(piece), false).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn messages_go_both_ways_one_after_the_other() {
        let client = async |stream: Streaming<_>, mut parts: Parts| {
            for message in [&b"one"[..], b"two", b"three"] {
                send(&stream, message).await.unwrap();
                // Each is answered before the next one goes.
                assert_eq!(parts.recv().await.unwrap(), message);
            }
            stream.send(Body::Short(&[]), true).await.unwrap();
            stream.end().await.unwrap();
            assert_eq!(parts.recv().await.unwrap(), "trailer");
        };
        with_stream(client, async |mut body, mut reply| {
            while let Some(part) = body.data().await {
                let part = part.unwrap();
                let _ = body.flow_control().release_capacity(part.len());
                reply.send_data(part, false).unwrap();
            }
            let mut trailers = http::HeaderMap::new();
            trailers.insert("last", "trailer".parse().unwrap());
            reply.send_trailers(trailers).unwrap();
        })
        .await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_sender_waits_until_the_server_has_room() {
        let read_on = Rc::new(Notify::new());
        let told = Rc::clone(&read_on);
        let client = async |stream: Streaming<_>, mut parts: Parts| {
            // The window is larger until the server's settings have come.
            parts.recv().await.unwrap();
            send(&stream, b"0123456789ab").await.unwrap();
            let next = send(&stream, b"cd");
            tokio::pin!(next);
            assert!(futures_util::poll!(&mut next).is_pending());
            assert_eq!(stream.shared.borrow_mut().client.unsent(stream.slot), 2);
            assert!(stream.is_held_back());
            told.notify_one();
            next.await.unwrap();
            stream.send(Body::Short(&[]), true).await.unwrap();
            stream.end().await.unwrap();
        };
        with_stream(client, async move |mut body, mut reply| {
            reply.send_data("begin".into(), false).unwrap();
            read_on.notified().await;
            let mut received = Vec::new();
            while let Some(part) = body.data().await {
                let part = part.unwrap();
                let _ = body.flow_control().release_capacity(part.len());
                received.extend_from_slice(&part);
            }
            assert_eq!(received, b"0123456789abcd");
            reply.send_data(Bytes::new(), true).unwrap();
        })
        .await;
    }

    /// Returns the failures of a stream's sender, which waits for room, and of its end, when the server does this
    /// after its reply has begun.
    async fn failed(serve: fn(RecvStream, SendStream<Bytes>)) -> [ErrorKind; 2] {
        let (kinds, mut seen) = mpsc::unbounded_channel();
        let go_on = Rc::new(Notify::new());
        let told = Rc::clone(&go_on);
        let client = async |stream: Streaming<_>, mut parts: Parts| {
            parts.recv().await.unwrap();
            send(&stream, b"0123456789ab").await.unwrap();
            told.notify_one();
            let sent = send(&stream, b"cd").await.unwrap_err();
            let end = stream.end().await.err();
            let end = end.map_or(ErrorKind::Other, |failure| failure.kind);
            kinds.send([sent.kind, end]).unwrap();
        };
        with_stream(client, async move |body, mut reply| {
            reply.send_data("begin".into(), false).unwrap();
            go_on.notified().await;
            serve(body, reply);
        })
        .await;
        seen.recv().await.unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_waits_to_send_learns_of_the_streams_end() {
        let reset = failed(|_, mut reply| reply.send_reset(h2::Reason::INTERNAL_ERROR)).await;
        assert_eq!(reset, [ErrorKind::Reset, ErrorKind::Reset]);
        // The reply is whole.
        let ended = failed(|body, mut reply| {
            reply.send_data(Bytes::new(), true).unwrap();
            drop(body);
        });
        assert_eq!(ended.await, [ErrorKind::Reset, ErrorKind::Other]);
        let refused = failed(|_, mut reply| reply.send_data("no".into(), false).unwrap());
        assert_eq!(refused.await, [ErrorKind::Mismatch, ErrorKind::Mismatch]);
        let broken = failed(|_, _| panic!("the task ends, and the connection with it"));
        assert_eq!(broken.await, [ErrorKind::Eof, ErrorKind::Eof]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_reply_of_any_length_fits_through_the_windows() {
        const LENGTH: usize = 1_000_000;
        let client = async |stream: Streaming<_>, mut parts: Parts| {
            stream.send(Body::Short(&[]), true).await.unwrap();
            stream.end().await.unwrap();
            drop(stream);
            let mut length = 0;
            while let Some(part) = parts.recv().await {
                length += part.len();
            }
            assert_eq!(length, LENGTH);
        };
        with_stream(client, async |_, mut reply| {
            reply.send_data(vec![b'x'; LENGTH].into(), true).unwrap();
        })
        .await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_stream_that_is_dropped_is_cancelled() {
        let (told, mut seen) = mpsc::unbounded_channel();
        let client = async |stream: Streaming<_>, mut parts: Parts| {
            parts.recv().await.unwrap();
            drop(stream);
            let reason: h2::Reason = seen.recv().await.unwrap();
            assert_eq!(reason, h2::Reason::CANCEL);
        };
        with_stream(client, async move |mut body, mut reply| {
            reply.send_data("begin".into(), false).unwrap();
            let error = body.data().await.unwrap().unwrap_err();
            told.send(error.reason().unwrap()).unwrap();
        })
        .await;
    }
}
