//! Callers' handles on a connection, and who drives it.
//!
//! A caller that has the connection to itself drives it: it writes its request, and reads until the reply is there.
//! As soon as a second one calls, a task drives it for all of them. It reads, wakes the callers whose replies
//! have come, and writes what these send next at once, after they have all had their turn. Some servers send a
//! PING with every batch of replies (gRPC in Go does): its answer goes with the next requests too.

use std::{
    cell::RefCell,
    future::{poll_fn, ready},
    mem,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::Either;
use netping_http2::{
    Config,
    client::{Body, Slot},
    head::Head,
};
use tokio::{task, time};

use super::{
    Reader,
    call::io_failure,
    connection::{Io, Shared},
    stream::Streaming,
};
use crate::transport::{Result, socket::Stream};

/// Time after which an idle connection is looked after: servers send PING to see who is still there.
const IDLE: Duration = Duration::from_secs(2);

/// A caller's handle on a connection.
pub(crate) struct Handle<S: Io = Stream> {
    shared: Rc<RefCell<Shared<S>>>,
    /// A request has been sent with it.
    has_called: bool,
}

impl<S: Io> Handle<S> {
    /// Opens HTTP/2 on a stream.
    pub(crate) async fn open(stream: S, config: Config) -> Result<Self> {
        let mut shared = Shared::new(stream, config);
        let introduced = poll_fn(|cx| shared.poll_write(cx)).await;
        introduced.map_err(|error| io_failure(&error))?;
        let shared = Rc::new(RefCell::new(shared));
        let watch = task::spawn_local(look_after(Rc::downgrade(&shared)));
        shared.borrow_mut().watch = Some(watch.abort_handle());
        Ok(Self {
            shared,
            has_called: false,
        })
    }

    /// Returns another handle on the same connection.
    pub(crate) fn share(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            has_called: false,
        }
    }

    /// Returns true if the server has sent GOAWAY or closed the connection, or no stream is left.
    pub(crate) fn is_spent(&mut self) -> bool {
        let mut shared = self.shared.borrow_mut();
        shared.look();
        shared.is_spent()
    }

    /// Sends a request at once, and returns the wait for its reply, which goes to `reader`. A request that is
    /// dropped is cancelled.
    ///
    /// # Errors
    /// Any failure, those of `reader` among them.
    pub(crate) fn call<'a, R: Reader>(
        &'a mut self,
        head: &Head,
        body: Body<'_>,
        reader: &'a mut R,
    ) -> impl Future<Output = Result<()>> {
        self.enter();
        let begun = self.shared.borrow_mut().begin(head, body, reader.streams());
        match begun {
            Ok(slot) => Either::Left(Calling {
                shared: &self.shared,
                slot,
                reader,
            }),
            Err(failure) => Either::Right(ready(Err(failure))),
        }
    }

    /// Begins a stream: its messages are sent one by one, and `reader` has each part of the reply as soon as it is
    /// read.
    ///
    /// # Errors
    /// Any failure of the connection.
    pub(crate) fn stream(
        &mut self,
        head: &Head,
        reader: Rc<RefCell<dyn Reader>>,
    ) -> Result<Streaming<S>> {
        self.enter();
        // Who sends does not wait for the reply, and the other way round.
        self.drive();
        Streaming::begin(Rc::clone(&self.shared), head, reader)
    }

    /// Counts this handle among the callers, and starts the driver when there are several.
    fn enter(&mut self) {
        if mem::replace(&mut self.has_called, true) {
            return;
        }
        let mut shared = self.shared.borrow_mut();
        shared.callers += 1;
        if shared.callers == 2 {
            drop(shared);
            self.drive();
        }
    }

    /// Starts the driver, unless there is one.
    fn drive(&self) {
        let mut shared = self.shared.borrow_mut();
        if mem::replace(&mut shared.is_driven, true) {
            return;
        }
        shared.end_watch();
        let shared = Rc::downgrade(&self.shared);
        task::spawn_local(poll_fn(move |cx| match shared.upgrade() {
            Some(shared) => shared.borrow_mut().poll_drive(cx),
            None => Poll::Ready(()),
        }));
    }
}

impl<S: Io> Drop for Handle<S> {
    fn drop(&mut self) {
        self.shared.borrow_mut().callers -= usize::from(self.has_called);
    }
}

/// A call, which is cancelled when it is dropped before its end.
struct Calling<'a, S: Io, R> {
    shared: &'a RefCell<Shared<S>>,
    slot: Slot,
    reader: &'a mut R,
}

impl<S: Io, R: Reader> Future for Calling<'_, S, R> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let Self {
            shared,
            slot,
            reader,
        } = &mut *self;
        shared.borrow_mut().poll_call(*slot, *reader, cx)
    }
}

impl<S: Io, R> Drop for Calling<'_, S, R> {
    fn drop(&mut self) {
        self.shared.borrow_mut().leave(self.slot);
    }
}

/// Answers the server on a connection whose only caller does not call.
async fn look_after<S: Io>(shared: Weak<RefCell<Shared<S>>>) {
    let poll = |cx: &mut Context<'_>| match shared.upgrade() {
        Some(shared) => shared.borrow_mut().poll_idle(cx),
        None => Poll::Ready(()),
    };
    loop {
        time::sleep(IDLE).await;
        if time::timeout(IDLE, poll_fn(poll)).await.is_ok() {
            return;
        }
    }
}
