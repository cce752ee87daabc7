//! Work that takes milliseconds, on threads of its own: other requests of the worker do not wait for it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use netping_serving::Reserved;
use tokio::{
    sync::Semaphore,
    task::{spawn_blocking, yield_now},
};
use tonic::Status;

/// Length from which on a message is long, in bytes. To make and encode one takes longer than to hand it to another thread.
pub(crate) const LONG: usize = 512 << 10;

/// Where long work is done.
#[derive(Debug, Clone)]
pub(crate) struct LongWork(Arc<Semaphore>);

impl LongWork {
    /// As much is done at the same time as there are workers: what it needs beyond its result, nobody counts.
    pub(crate) fn new(workers: usize) -> Self {
        Self(Arc::new(Semaphore::new(workers)))
    }

    /// Does this on another thread. What is reserved for it stays so until it is done, even if nobody waits for it any more.
    ///
    /// # Errors
    /// INTERNAL if it panics, or the server has ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        reserved: Option<Reserved>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        // It is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        let done = spawn_blocking(move || {
            let _until_done = (permit, reserved);
            work()
        });
        let done = done.await;
        done.map_err(|error| Status::internal(format!("a long reply was not made: {error}")))
    }
}

/// The length of a reply's next message: a long one is made and encoded on another thread.
#[derive(Debug, Clone)]
pub(crate) enum NextMessage {
    /// All have one length.
    Short,
    Long(LongWork),
    /// The service announces each.
    Announced(Arc<Announced>),
}

/// The announcement of a reply's next message.
#[derive(Debug)]
pub(crate) struct Announced {
    is_long: AtomicBool,
    work: LongWork,
}

impl LongWork {
    /// Returns this for a reply whose messages all have this length.
    pub(crate) fn next_of(&self, length: usize) -> NextMessage {
        if length < LONG {
            NextMessage::Short
        } else {
            NextMessage::Long(self.clone())
        }
    }

    /// Returns this for a reply each of whose messages is announced.
    pub(crate) fn next_announced(&self) -> NextMessage {
        NextMessage::Announced(Arc::new(Announced {
            is_long: AtomicBool::new(false),
            work: self.clone(),
        }))
    }
}

impl NextMessage {
    /// Announces that the next message has this length, before it is made. If it is long, another thread goes on from here.
    pub(crate) async fn announce(&self, length: usize) {
        if let Self::Announced(next) = self
            && length >= LONG
        {
            next.is_long.store(true, Ordering::Relaxed);
            yield_now().await;
        }
    }

    /// Ends an announcement: the message is made.
    pub(crate) fn end(&self) {
        if let Self::Announced(next) = self {
            next.is_long.store(false, Ordering::Relaxed);
        }
    }

    /// Returns where a long one is made.
    pub(crate) fn long(&self) -> Option<&LongWork> {
        match self {
            Self::Short => None,
            Self::Long(work) => Some(work),
            Self::Announced(next) => next.is_long.load(Ordering::Relaxed).then_some(&next.work),
        }
    }

    /// Returns true for a long one.
    pub(crate) fn is_long(&self) -> bool {
        self.long().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::mpsc,
        task::{Context, Waker},
    };

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn as_much_is_done_at_once_as_there_are_workers() {
        let work = LongWork::new(1);
        let (running, runs) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let mut first = pin!(work.run(None, move || running.send(()).and(Ok(ended.recv()))));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        runs.recv().unwrap();
        assert_eq!(work.0.available_permits(), 0);
        let mut second = pin!(work.run(None, || 2));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        end.send(1).unwrap();
        assert_eq!(first.await.unwrap(), Ok(Ok(1)));
        assert_eq!(second.await.unwrap(), 2);
        assert_eq!(work.0.available_permits(), 1);
    }

    #[tokio::test]
    async fn work_that_panics_ends_its_call_alone() {
        let work = LongWork::new(1);
        let failed: Result<(), Status> = work.run(None, || panic!("a test")).await;
        assert_eq!(failed.unwrap_err().code(), tonic::Code::Internal);
        assert_eq!(work.run(None, || 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_long_message_is_announced_until_it_is_made() {
        let work = LongWork::new(1);
        let next = work.next_announced();
        assert!(next.announce(LONG - 1).now_or_never().is_some() && !next.is_long());
        assert!(next.announce(LONG).now_or_never().is_none() && next.is_long());
        next.end();
        assert!(!next.is_long());
        assert!(work.next_of(LONG).is_long() && !work.next_of(LONG - 1).is_long());
    }
}
