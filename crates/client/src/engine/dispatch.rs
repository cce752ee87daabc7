//! Distributes the requests of an open loop: each has its due time, and a free caller takes the
//! oldest.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use netping_measure::window::Window;
use tokio::sync::Notify;

use crate::{
    clock::Clock,
    engine::{pacer::Pacer, schedule::Schedule},
};

/// The requests of one worker that are due and not taken yet.
#[derive(Debug)]
pub struct Dispatch {
    schedule: RefCell<Schedule>,
    /// Start of the schedule, on the run's clock.
    origin: u64,
    due: RefCell<VecDeque<u64>>,
    /// Limit on the requests that wait.
    limit: usize,
    /// Requests of the window over that limit.
    dropped: Cell<u64>,
    /// Callers that wait for a request.
    waiting: Cell<usize>,
    changed: Notify,
    /// Wakes the pacer when there is a caller to wake.
    wanted: Notify,
    ended: Cell<bool>,
}

impl Dispatch {
    /// Returns a dispatch in which nothing is due before `origin` and at most `limit` requests
    /// wait.
    pub fn new(schedule: Schedule, origin: u64, limit: usize) -> Self {
        Self {
            schedule: RefCell::new(schedule),
            origin,
            due: RefCell::default(),
            limit,
            dropped: Cell::new(0),
            waiting: Cell::new(0),
            changed: Notify::new(),
            wanted: Notify::new(),
            ended: Cell::new(false),
        }
    }

    /// Waits for a request and returns the due time of the oldest; `None` when there will be no
    /// more.
    pub async fn take<C: Clock>(&self, clock: &C, window: impl Fn() -> Window) -> Option<u64> {
        loop {
            // A caller that becomes free may be earlier than the pacer if the runtime is busy.
            self.collect(clock.now(), window());
            if let Some(intended) = self.due.borrow_mut().pop_front() {
                return Some(intended);
            }
            if self.ended.get() {
                return None;
            }
            self.waiting.set(self.waiting.get() + 1);
            self.wanted.notify_one();
            self.changed.notified().await;
            self.waiting.set(self.waiting.get() - 1);
        }
    }

    /// Wakes callers as requests become due, until the window ends.
    pub async fn pace<C: Clock>(
        &self,
        pacer: &mut Pacer<C>,
        clock: &C,
        window: impl Fn() -> Window,
    ) {
        loop {
            let next = self.next();
            if next >= window().end {
                break;
            }
            if self.waiting.get() == 0 {
                // Busy callers look for due requests themselves when they become free.
                self.wanted.notified().await;
                continue;
            }
            pacer.wait_until(next).await;
            let due = self.collect(clock.now(), window());
            // At most as many as wait: behind a server that is too slow, far more requests are due.
            for _ in 0..due.min(self.waiting.get()) {
                self.changed.notify_one();
            }
            // Callers get their turn before the next look at the clock, even if much is due at
            // once.
            tokio::task::yield_now().await;
        }
        self.ended.set(true);
        self.changed.notify_waiters();
    }

    /// Returns the number of requests of `window`, which is over, that were due but not taken.
    pub fn not_sent(&self, window: Window) -> u64 {
        if window.end < u64::MAX {
            self.collect(window.end, window);
        }
        let waiting = self
            .due
            .borrow()
            .iter()
            .filter(|&&intended| window.contains(intended))
            .count();
        self.dropped.get() + waiting as u64
    }

    /// Moves the requests due by `now` from the schedule to those that wait; returns how many wait.
    fn collect(&self, now: u64, window: Window) -> usize {
        let mut due = self.due.borrow_mut();
        let mut schedule = self.schedule.borrow_mut();
        loop {
            let intended = self.origin + schedule.peek();
            if intended > now || intended >= window.end {
                return due.len();
            }
            schedule.advance();
            if due.len() < self.limit {
                due.push_back(intended);
            } else if window.contains(intended) {
                self.dropped.set(self.dropped.get() + 1);
            }
        }
    }

    fn next(&self) -> u64 {
        self.origin + self.schedule.borrow().peek()
    }
}
