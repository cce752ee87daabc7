//! A call until it is answered, or until its connection is gone. A connection can leave thousands at once: they are
//! dropped a few at a time, so that other connections have their turn between.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use netping_serving::Connection;
use tokio::{runtime::Handle, task::yield_now};

type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call that is not answered.
pub(crate) struct Call<T: 'static> {
    answer: Option<Answer<T>>,
    connection: Option<Arc<Connection>>,
    left: &'static Left,
}

impl<T: 'static> Call<T> {
    /// Begins a call on a connection, if that is known.
    pub(crate) fn new(
        answer: Answer<T>,
        connection: Option<Arc<Connection>>,
        left: &'static Left,
    ) -> Self {
        Self {
            answer: Some(answer),
            connection,
            left,
        }
    }

    fn is_left(&self) -> bool {
        self.connection.as_ref().is_some_and(|own| own.is_gone())
    }
}

impl<T: 'static> Future for Call<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.is_left() {
            // hyper then asks the stream, which has ended, and drops the call.
            return Poll::Pending;
        }
        match &mut self.answer {
            Some(answer) => answer.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<T: 'static> Drop for Call<T> {
    fn drop(&mut self) {
        if self.is_left() {
            self.left.push(self.answer.take());
        }
    }
}

/// The most calls that are dropped in one turn.
const MOST_DROPPED: usize = 32;

/// Calls that their connections have left.
#[derive(Default)]
pub(crate) struct Left(Mutex<Vec<Box<dyn Send>>>);

/// Those of the process: with one reference for all, no call has to count its own.
pub(crate) static LEFT: Left = Left(Mutex::new(Vec::new()));

impl Left {
    fn push(&'static self, call: impl Send + 'static) {
        // Without a runtime nobody has to wait.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = calls.is_empty();
        calls.push(Box::new(call));
        if was_empty {
            runtime.spawn(self.drop_all());
        }
    }

    fn some(&self) -> Vec<Box<dyn Send>> {
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
            Call::new(Box::pin(answer), Some(Arc::clone(connection)), left)
        };
        let count = 10 * MOST_DROPPED;
        let mut calls: Vec<Call<()>> = (0..count).map(|_| call()).collect();
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
