//! Hands the requests of an open loop, each of which belongs to a connection beforehand, to the callers
//! of that connection.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    pin::pin,
    sync::Arc,
};

use futures_util::future;
use netping_measure::{counts::Counts, sample::Sample, window::Window};
use tokio::sync::Notify;

use crate::{
    clock::Clock,
    engine::{
        backlog::Backlog,
        dispatch::{LOOK, started, wait_for_end},
        dropped::Dropped,
        pacer::Pacer,
        schedule::FixedSchedule,
        timeline::Timeline,
    },
};

/// The requests of one worker's connections. Each waits for a caller of its own connection, the oldest
/// first; workers share only the limit on those that wait.
#[derive(Debug)]
pub struct FixedDispatch {
    schedule: RefCell<FixedSchedule>,
    timeline: Arc<Timeline>,
    /// One of each connection.
    queues: Box<[Queue]>,
    backlog: Arc<Backlog>,
    /// Idle callers of all these connections.
    idle: Cell<usize>,
    /// Wakes the pacer when a caller becomes idle.
    becomes_idle: Notify,
    /// Those that were too many to wait.
    dropped: RefCell<Dropped>,
    ended: Cell<bool>,
}

/// The requests of one connection that are due, oldest first, and its idle callers.
#[derive(Debug, Default)]
struct Queue {
    due: RefCell<VecDeque<Due>>,
    idle: Cell<usize>,
    /// The time since which there has been an idle one.
    idle_since: Cell<u64>,
    wake: Notify,
}

/// A request that is due.
#[derive(Debug)]
struct Due {
    intended: u64,
    /// It counts for the limit, because no caller of its connection was idle.
    waits: bool,
}

impl FixedDispatch {
    /// Returns the dispatch of a worker with so many connections, whose schedule begins with the requests of
    /// `timeline`. The limit is that of the backlog.
    pub fn new(
        schedule: FixedSchedule,
        connections: usize,
        timeline: Arc<Timeline>,
        backlog: Arc<Backlog>,
    ) -> Self {
        Self {
            schedule: RefCell::new(schedule),
            timeline,
            queues: (0..connections).map(|_| Queue::default()).collect(),
            backlog,
            idle: Cell::new(0),
            becomes_idle: Notify::new(),
            dropped: RefCell::default(),
            ended: Cell::new(false),
        }
    }

    /// Waits for a request of a connection and starts it, for a caller of it that has been free since
    /// `free_since`; `None` when there will be no more.
    pub async fn take(
        &self,
        connection: usize,
        free_since: u64,
        clock: &impl Clock,
    ) -> Option<Sample> {
        let queue = &self.queues[connection];
        loop {
            self.become_idle(queue, free_since);
            // A caller that becomes free may be earlier than the pacer if the runtime is busy.
            self.hand_out(clock.now(), self.timeline.window());
            let is_over = self.ended.get();
            if queue.due.borrow().is_empty() && !is_over {
                self.becomes_idle.notify_one();
                queue.wake.notified().await;
            }
            self.become_busy(queue);
            let next = queue.due.borrow_mut().pop_front();
            if let Some(Due { intended, waits }) = next {
                if waits {
                    self.backlog.leave();
                }
                let others_since = || match queue.idle.get() {
                    0 => free_since,
                    _ => queue.idle_since.get(),
                };
                return Some(started(intended, free_since, others_since, clock.now()));
            }
            if is_over {
                return None;
            }
        }
    }

    fn become_idle(&self, queue: &Queue, free_since: u64) {
        if queue.idle.get() == 0 {
            queue.idle_since.set(free_since);
        }
        queue.idle.set(queue.idle.get() + 1);
        self.idle.set(self.idle.get() + 1);
    }

    fn become_busy(&self, queue: &Queue) {
        queue.idle.set(queue.idle.get() - 1);
        self.idle.set(self.idle.get() - 1);
    }

    /// Wakes callers as requests become due, until the window ends.
    pub async fn pace<C: Clock>(&self, pacer: &mut Pacer<C>, clock: &C) {
        let window = || self.timeline.window();
        while self.next().0 < window().end {
            if self.idle.get() > 0 {
                pacer.wait_until(self.next().0).await;
            } else {
                // Callers that become free look for themselves.
                let look = self.next().0.max(clock.now() + LOOK);
                let (look, idle) = (
                    pin!(pacer.wait_until(look)),
                    pin!(self.becomes_idle.notified()),
                );
                future::select(look, idle).await;
            }
            self.hand_out(clock.now(), window());
            // Callers get their turn before the next look at the clock, even if much is due at
            // once.
            tokio::task::yield_now().await;
        }
        // The worker's cost is that of the whole window.
        wait_for_end(&self.timeline, clock).await;
        self.ended.set(true);
        for queue in &self.queues {
            queue.wake.notify_waiters();
        }
    }

    /// Hands the requests due by `now` to their connections.
    fn hand_out(&self, now: u64, window: Window) {
        while let Some((intended, connection)) = self.due(now, window) {
            let queue = &self.queues[connection];
            let mut due = queue.due.borrow_mut();
            let waits = due.len() >= queue.idle.get();
            if !waits || self.backlog.enter() {
                due.push_back(Due { intended, waits });
                queue.wake.notify_one();
            } else if window.contains(intended) {
                self.dropped.borrow_mut().add(intended);
            }
        }
    }

    /// Takes the next request of the schedule if it is due by `now`.
    fn due(&self, now: u64, window: Window) -> Option<(u64, usize)> {
        let next = self.next();
        let is_due = next.0 <= now && next.0 < window.end;
        is_due.then(|| {
            self.schedule.borrow_mut().advance();
            next
        })
    }

    /// Returns the ages at the end of `window`, which is over, of the requests that were due in it but
    /// not taken.
    pub fn not_sent(&self, window: Window) -> Counts {
        let mut left = Vec::new();
        if window.end < u64::MAX {
            while let Some((intended, _)) = self.due(window.end, window) {
                left.push(intended);
            }
        }
        for queue in &self.queues {
            left.extend(queue.due.take().into_iter().map(|due| due.intended));
        }
        self.dropped.borrow().ages(window, left.into_iter())
    }

    /// Returns the time of the next request, and its connection.
    fn next(&self) -> (u64, usize) {
        let (time, connection) = self.schedule.borrow().peek();
        (self.timeline.begin() + time, connection)
    }
}
