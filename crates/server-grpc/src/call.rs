//! A call until it is answered, or until its connection is gone. A connection can leave thousands at once: they are
//! dropped a few at a time, so that other connections have their turn between.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Instant,
};

use netping_serving::{Active, Connection};
use tokio::{runtime::Handle, task::yield_now, time::sleep_until};
use tonic::{
    body::Body,
    codegen::{BoxFuture, http::Response},
};

use crate::reply_body::{Of, ReplyBody};

/// The future of a service's answer.
pub(crate) type Answer = BoxFuture<Response<Body>, Infallible>;

/// A call that is not answered.
pub(crate) struct Waiting {
    pub answer: Answer,
    /// Its stream, on a connection that counts them.
    pub stream: Option<Active<Arc<Connection>>>,
    pub of: Of,
    /// The end of its time, if its caller has set one.
    pub deadline: Option<Instant>,
}

impl Waiting {
    fn is_left(&self) -> bool {
        self.stream.as_ref().is_some_and(|own| own.is_gone())
    }

    /// Returns the reply with which it is answered.
    fn reply(self, mut response: Response<Body>) -> Response<ReplyBody> {
        let announcement = response.extensions_mut().remove();
        let end = self.deadline.map(|end| Box::pin(sleep_until(end.into())));
        response.map(|body| ReplyBody::new(body, self.of, self.stream, announcement, end))
    }
}

/// A call until its reply begins.
pub(crate) struct Call {
    /// `None` once it is answered.
    waiting: Option<Waiting>,
    left: &'static Left,
}

impl Call {
    /// Begins a call; `left` is where it goes if its connection is gone before it is answered.
    pub(crate) fn new(waiting: Waiting, left: &'static Left) -> Self {
        Self {
            waiting: Some(waiting),
            left,
        }
    }
}

impl Future for Call {
    type Output = Result<Response<ReplyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // If it is left, hyper then asks the stream, which has ended, and drops the call.
        let Some(waiting) = self.waiting.as_mut().filter(|own| !own.is_left()) else {
            return Poll::Pending;
        };
        let response = ready!(waiting.answer.as_mut().poll(cx))?;
        match self.waiting.take() {
            Some(waiting) => Poll::Ready(Ok(waiting.reply(response))),
            None => Poll::Pending,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take_if(|own| own.is_left()) {
            self.left.push(waiting.answer);
        }
    }
}

/// The most calls that are dropped in one turn.
const MOST_DROPPED: usize = 32;

/// Calls that their connections have left.
#[derive(Default)]
pub(crate) struct Left(Mutex<Vec<Answer>>);

/// Those of the process: with one reference for all, no call has to count its own.
pub(crate) static LEFT: Left = Left(Mutex::new(Vec::new()));

impl Left {
    fn push(&'static self, call: Answer) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.is_empty() {
            // Without a runtime nobody has to wait.
            let Ok(runtime) = Handle::try_current() else {
                return;
            };
            runtime.spawn(self.drop_all());
        }
        calls.push(call);
    }

    fn some(&self) -> Vec<Answer> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = calls.len().saturating_sub(MOST_DROPPED);
        calls.split_off(rest)
    }

    async fn drop_all(&'static self) {
        while !self.some().is_empty() {
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::FutureExt;
    use netping_serving::testing::accepted;

    use super::*;

    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn calls_of_a_connection_that_is_gone_are_dropped_a_few_at_a_time() {
        let (accepted, ..) = accepted();
        let connection = accepted.connection();
        let (polled, dropped) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let left: &_ = Box::leak(Box::default());
        let call = || {
            let (polled, counted) = (Arc::clone(&polled), Counted(Arc::clone(&dropped)));
            let answer = poll_fn(move |_| {
                let _ = &counted;
                polled.fetch_add(1, Ordering::Relaxed);
                Poll::Pending
            });
            let waiting = Waiting {
                answer: Box::pin(answer),
                stream: Some(Active::begin(Arc::clone(connection))),
                of: Of::Many,
                deadline: None,
            };
            Call::new(waiting, left)
        };
        let count = 10 * MOST_DROPPED;
        let mut calls: Vec<Call> = (0..count).map(|_| call()).collect();
        assert!((&mut calls[0]).now_or_never().is_none());
        // One that is cancelled while its connection goes on.
        drop(calls.pop());
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        connection.set_gone();
        assert!((&mut calls[0]).now_or_never().is_none());
        assert_eq!(polled.load(Ordering::Relaxed), 1);
        drop(calls);
        let mut before = dropped.load(Ordering::Relaxed);
        assert_eq!(before, 1);
        while before < count {
            yield_now().await;
            let now = dropped.load(Ordering::Relaxed);
            assert!(
                (1..=MOST_DROPPED).contains(&(now - before)),
                "{now} after {before}"
            );
            before = now;
        }
    }
}
