//! Hands out the requests of an open loop: each is due at a time of its own, and a caller that is free takes the oldest.

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
    /// When the schedule began.
    origin: u64,
    due: RefCell<VecDeque<u64>>,
    /// The most that may wait.
    limit: usize,
    /// Requests of the window that did not fit.
    dropped: Cell<u64>,
    /// Callers that wait for a request.
    waiting: Cell<usize>,
    changed: Notify,
    /// Wakes the pacer when there is a caller to wake.
    wanted: Notify,
    ended: Cell<bool>,
}

impl Dispatch {
    /// Nothing is due before `origin`. At most `limit` requests wait.
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

    /// The oldest request that is due, by its intended start; waits for one. `None` when there will be no more.
    pub async fn take<C: Clock>(&self, clock: &C, window: impl Fn() -> Window) -> Option<u64> {
        loop {
            // A caller that comes free may be earlier than the pacer: the runtime may be busy.
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
                // Callers that are busy look for themselves what is due when they come free.
                self.wanted.notified().await;
                continue;
            }
            pacer.wait_until(next).await;
            let due = self.collect(clock.now(), window());
            // No more than there are to wake: behind a server that is too slow, much more than that is due.
            for _ in 0..due.min(self.waiting.get()) {
                self.changed.notify_one();
            }
            // With much due at once, callers get their turn before the next look at the clock.
            tokio::task::yield_now().await;
        }
        self.ended.set(true);
        self.changed.notify_waiters();
    }

    /// Requests of `window`, which is over, that were due but not taken.
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

    /// Moves what is due by `now` from the schedule to those who wait; gives how many wait now.
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
