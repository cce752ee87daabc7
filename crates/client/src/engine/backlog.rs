//! The requests of an open loop that are due and found no caller, shared by all workers.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use netping_measure::{counts::Counts, window::Window};
use tokio::sync::Notify;

/// The time of the oldest request in an empty backlog.
const NONE: u64 = u64::MAX;

/// Requests that are due and have no caller yet, oldest first. A worker puts those here for which
/// none of its own callers is idle, and whichever caller becomes free takes the oldest: requests
/// are served in the order in which they were due, by any worker. While callers are idle, no
/// request comes here, and its lock is not taken.
#[derive(Debug)]
pub struct Backlog {
    due: Mutex<BinaryHeap<Reverse<u64>>>,
    /// The oldest of them, or [`NONE`].
    oldest: AtomicU64,
    /// The most that wait.
    limit: usize,
    /// Requests that wait for a connection of their own, and are not among these.
    elsewhere: AtomicUsize,
    workers: Box<[IdleCallers]>,
}

/// The idle callers of one worker.
#[derive(Debug)]
#[repr(align(128))]
struct IdleCallers {
    count: AtomicUsize,
    /// The time since which there has been one, or [`NONE`].
    since: AtomicU64,
    wake: Notify,
}

impl Backlog {
    /// Returns an empty backlog of so many workers, in which at most `limit` requests wait.
    pub fn new(workers: usize, limit: usize) -> Self {
        let none = |_| IdleCallers {
            count: AtomicUsize::new(0),
            since: AtomicU64::new(NONE),
            wake: Notify::new(),
        };
        Self {
            due: Mutex::default(),
            oldest: AtomicU64::new(NONE),
            limit,
            elsewhere: AtomicUsize::new(0),
            workers: (0..workers).map(none).collect(),
        }
    }

    /// Returns the time at which the oldest request was due, or a time that never comes.
    pub fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::SeqCst)
    }

    /// Takes the oldest request if it was due before `before`.
    pub fn take(&self, before: u64) -> Option<u64> {
        if self.oldest() >= before {
            return None;
        }
        let mut due = self.lock();
        let is_older = due.peek().is_some_and(|Reverse(oldest)| *oldest < before);
        let Reverse(taken) = is_older.then(|| due.pop()).flatten()?;
        self.publish(&due);
        Some(taken)
    }

    /// Adds a request; returns false if too many wait already.
    pub fn add(&self, intended: u64) -> bool {
        let mut due = self.lock();
        let has_room = due.len() < self.limit;
        if has_room {
            due.push(Reverse(intended));
            self.publish(&due);
        }
        has_room
    }

    /// Counts a request that waits for a connection of its own; returns false if too many wait already.
    pub fn enter(&self) -> bool {
        let has_room = self.elsewhere.fetch_add(1, Ordering::Relaxed) < self.limit;
        if !has_room {
            self.leave();
        }
        has_room
    }

    /// Takes back what [`Backlog::enter`] has counted.
    pub fn leave(&self) {
        self.elsewhere.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the ages at the end of `window`, which is over, of the requests that were due in it,
    /// in nanoseconds.
    pub fn not_sent(&self, window: Window) -> Counts {
        let due = self.lock();
        let due = due.iter().map(|Reverse(intended)| *intended);
        due.filter(|intended| window.contains(*intended))
            .map(|intended| window.end - intended)
            .collect()
    }

    /// Adds an idle caller of a worker, which has been free since `since`. Only the worker itself
    /// adds and removes its callers.
    pub fn add_idle(&self, worker: usize, since: u64) {
        let count = self.idle(worker);
        let idle = &self.workers[worker];
        if count == 0 {
            idle.since.store(since, Ordering::Relaxed);
        }
        idle.count.store(count + 1, Ordering::SeqCst);
    }

    /// Removes an idle caller of a worker.
    pub fn remove_idle(&self, worker: usize) {
        let count = self.idle(worker) - 1;
        let idle = &self.workers[worker];
        if count == 0 {
            idle.since.store(NONE, Ordering::Relaxed);
        }
        idle.count.store(count, Ordering::SeqCst);
    }

    /// Returns the number of a worker's idle callers.
    pub fn idle(&self, worker: usize) -> usize {
        self.workers[worker].count.load(Ordering::Relaxed)
    }

    /// Returns the time since which a caller of any worker has been idle, or a time that never
    /// comes.
    pub fn idle_since(&self) -> u64 {
        let since = |idle: &IdleCallers| idle.since.load(Ordering::Relaxed);
        self.workers.iter().map(since).min().unwrap_or(NONE)
    }

    /// Returns the signal that wakes a worker's idle callers.
    pub fn wake(&self, worker: usize) -> &Notify {
        &self.workers[worker].wake
    }

    /// Wakes up to `count` idle callers of other workers than `own`.
    pub fn wake_others(&self, own: usize, mut count: usize) {
        let workers = self.workers.len();
        for worker in (1..workers).map(|step| &self.workers[(own + step) % workers]) {
            let woken = worker.count.load(Ordering::SeqCst).min(count);
            for _ in 0..woken {
                worker.wake.notify_one();
            }
            count -= woken;
            if count == 0 {
                return;
            }
        }
    }

    /// Wakes an idle caller, one of worker `own` first, if a request waits.
    pub fn wake_next(&self, own: usize) {
        if self.oldest() == NONE {
            return;
        }
        if self.idle(own) > 0 {
            self.wake(own).notify_one();
        } else {
            self.wake_others(own, 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<u64>>> {
        // No code that holds the lock can panic half-way through a change.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, due: &BinaryHeap<Reverse<u64>>) {
        let oldest = due.peek().map_or(NONE, |Reverse(oldest)| *oldest);
        self.oldest.store(oldest, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_is_taken_first_and_the_limit_is_kept() {
        let backlog = Backlog::new(2, 3);
        assert!(backlog.add(30) && backlog.add(10) && backlog.add(20));
        assert!(!backlog.add(40));
        assert_eq!(backlog.take(10), None);
        assert_eq!(backlog.take(NONE), Some(10));
        assert_eq!(backlog.oldest(), 20);
        // Of the two that are left, only one was due in the window.
        let window = Window { start: 21, end: 50 };
        assert_eq!(backlog.not_sent(window), Counts::from(vec![(20, 1)]));
        assert_eq!(
            (backlog.take(NONE), backlog.take(NONE)),
            (Some(20), Some(30))
        );
        assert_eq!((backlog.oldest(), backlog.take(NONE)), (NONE, None));
    }

    #[test]
    fn requests_that_wait_elsewhere_have_the_same_limit() {
        let backlog = Backlog::new(2, 2);
        assert_eq!([(); 3].map(|()| backlog.enter()), [true, true, false]);
        backlog.leave();
        assert_eq!([(); 2].map(|()| backlog.enter()), [true, false]);
    }

    #[test]
    fn a_request_that_is_left_wakes_another_caller() {
        let backlog = Backlog::new(2, 3);
        let mut woken = pin!(backlog.wake(1).notified());
        backlog.add_idle(1, 10);
        assert_eq!(backlog.idle_since(), 10);
        backlog.wake_next(0);
        assert!(woken.as_mut().now_or_never().is_none());
        assert!(backlog.add(20));
        backlog.wake_next(0);
        assert!(woken.now_or_never().is_some());
        backlog.remove_idle(1);
        assert_eq!((backlog.idle(1), backlog.idle_since()), (0, NONE));
    }
}
