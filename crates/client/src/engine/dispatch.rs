//! Hands the requests of an open loop to callers as they become due.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::future;
use netping_measure::{counts::Counts, sample::Sample, window::Window};
use tokio::{sync::Notify, time};

use crate::{
    clock::Clock,
    engine::{
        backlog::Backlog, dropped::Dropped, pacer::Pacer, schedule::Schedule, timeline::Timeline,
    },
};

/// Time between looks at the clock while all callers of a worker are busy, in nanoseconds.
pub(super) const LOOK: u64 = 100_000;

/// Time between looks at the window's end while a worker has no more requests of its own.
const LONG_LOOK: Duration = Duration::from_millis(20);

/// One worker's requests: each is due at a time of its schedule, and goes to an idle caller of this
/// worker, or else to the [`Backlog`] of all workers.
#[derive(Debug)]
pub struct Dispatch {
    schedule: RefCell<Schedule>,
    timeline: Arc<Timeline>,
    /// Requests for which a caller of this worker has been woken.
    ready: RefCell<VecDeque<u64>>,
    backlog: Arc<Backlog>,
    worker: usize,
    /// Those that found the backlog full.
    dropped: RefCell<Dropped>,
    /// Wakes the pacer when a caller becomes idle.
    idle: Notify,
    ended: Cell<bool>,
}

impl Dispatch {
    /// Returns the dispatch of a worker, whose schedule begins with the requests of `timeline`.
    pub fn new(
        schedule: Schedule,
        timeline: Arc<Timeline>,
        backlog: Arc<Backlog>,
        worker: usize,
    ) -> Self {
        Self {
            schedule: RefCell::new(schedule),
            timeline,
            ready: RefCell::default(),
            backlog,
            worker,
            dropped: RefCell::default(),
            idle: Notify::new(),
            ended: Cell::new(false),
        }
    }

    /// Waits for a request and starts the oldest, for a caller that has been free since
    /// `free_since`; `None` when there will be no more.
    pub async fn take(&self, free_since: u64, clock: &impl Clock) -> Option<Sample> {
        let mut was_woken = false;
        loop {
            // A caller that becomes free may be earlier than the pacer if the runtime is busy.
            if let Some(intended) = self.oldest(clock.now(), self.timeline.window()) {
                if was_woken {
                    self.pass_on();
                }
                return Some(self.started(intended, free_since, clock.now()));
            }
            if self.ended.get() {
                return None;
            }
            self.wait(free_since).await;
            was_woken = true;
        }
    }

    /// Wakes a caller for a request that is left: two workers may have woken the one that has just
    /// taken one. Without another idle caller here, this worker's requests are for all workers.
    fn pass_on(&self) {
        if self.backlog.idle(self.worker) == 0 {
            let mut ready = self.ready.borrow_mut();
            while ready.front().is_some_and(|&due| self.backlog.add(due)) {
                ready.pop_front();
            }
        }
        self.backlog.wake_next(self.worker);
    }

    /// Returns a request that a caller starts which has been free since `free_since`.
    fn started(&self, intended: u64, free_since: u64, start: u64) -> Sample {
        started(intended, free_since, || self.backlog.idle_since(), start)
    }

    /// Waits until there may be a request for a caller that has been free since `free_since`.
    async fn wait(&self, free_since: u64) {
        let woken = self.backlog.wake(self.worker).notified();
        self.backlog.add_idle(self.worker, free_since);
        self.idle.notify_one();
        // Another worker that has added a request before it saw this caller idle wakes nobody.
        if self.backlog.oldest() == u64::MAX {
            woken.await;
        }
        self.backlog.remove_idle(self.worker);
    }

    /// Wakes callers as requests become due, until the window ends.
    pub async fn pace<C: Clock>(&self, pacer: &mut Pacer<C>, clock: &C) {
        let window = || self.timeline.window();
        while self.next() < window().end {
            if self.backlog.idle(self.worker) > 0 {
                pacer.wait_until(self.next()).await;
            } else {
                // Callers that become free take what is due themselves; this is for the idle ones
                // of other workers.
                let look = self.next().max(clock.now() + LOOK);
                let (look, idle) = (pin!(pacer.wait_until(look)), pin!(self.idle.notified()));
                future::select(look, idle).await;
            }
            self.hand_out(clock.now(), window());
            // Callers get their turn before the next look at the clock, even if much is due at
            // once.
            tokio::task::yield_now().await;
        }
        // Other workers may still need this one's callers.
        wait_for_end(&self.timeline, clock).await;
        self.ended.set(true);
        self.backlog.wake(self.worker).notify_waiters();
    }

    /// Hands the requests due by `now` to idle callers, and the others to the backlog.
    fn hand_out(&self, now: u64, window: Window) {
        let mut ready = self.ready.borrow_mut();
        let mut shared = 0;
        while let Some(intended) = self.due(now, window) {
            if ready.len() < self.backlog.idle(self.worker) {
                ready.push_back(intended);
                self.backlog.wake(self.worker).notify_one();
            } else if self.backlog.add(intended) {
                shared += 1;
            } else if window.contains(intended) {
                self.dropped.borrow_mut().add(intended);
            }
        }
        if shared > 0 {
            self.backlog.wake_others(self.worker, shared);
        }
    }

    /// Takes the oldest request that is due by `now`.
    fn oldest(&self, now: u64, window: Window) -> Option<u64> {
        let mut ready = self.ready.borrow_mut();
        let own = ready.front().copied().unwrap_or_else(|| self.next());
        if let Some(older) = self.backlog.take(own) {
            return Some(older);
        }
        ready.pop_front().or_else(|| self.due(now, window))
    }

    /// Takes the next request of the schedule if it is due by `now`.
    fn due(&self, now: u64, window: Window) -> Option<u64> {
        let next = self.next();
        let is_due = next <= now && next < window.end;
        is_due.then(|| {
            self.schedule.borrow_mut().advance();
            next
        })
    }

    /// Returns the ages at the end of `window`, which is over, of this worker's requests that were
    /// due in it but not taken; those in the backlog are not among them.
    pub fn not_sent(&self, window: Window) -> Counts {
        let mut ready = self.ready.borrow_mut();
        if window.end < u64::MAX {
            while let Some(intended) = self.due(window.end, window) {
                ready.push_back(intended);
            }
        }
        self.dropped.borrow().ages(window, ready.drain(..))
    }

    fn next(&self) -> u64 {
        self.timeline.begin() + self.schedule.borrow().peek()
    }
}

/// Waits until the window is over. Nothing is due meanwhile, so that a look may be late.
pub(super) async fn wait_for_end(timeline: &Timeline, clock: &impl Clock) {
    loop {
        let (now, end) = (clock.now(), timeline.window().end);
        if now >= end || end == u64::MAX {
            return;
        }
        time::sleep(Duration::from_nanos(end - now).min(LONG_LOOK)).await;
    }
}

/// Returns a request that a caller starts which has been free since `free_since`. If another caller that
/// could have taken it was free earlier, since `others_since`, the request did not wait for want of
/// callers.
pub(super) fn started(
    intended: u64,
    free_since: u64,
    others_since: impl FnOnce() -> u64,
    start: u64,
) -> Sample {
    let free = if intended >= free_since {
        intended
    } else {
        free_since.min(others_since()).max(intended)
    };
    Sample {
        intended,
        free,
        start,
        end: start,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;
    use crate::plan::{Arrival, PartNumber};

    #[test]
    fn a_request_whose_caller_was_taken_goes_to_another_worker() {
        let backlog = Arc::new(Backlog::new(2, 10));
        let schedule =
            Schedule::new(Arrival::Constant(1.0), [0, 2], PartNumber::default(), None).unwrap();
        let dispatch = Dispatch::new(
            schedule,
            Arc::new(Timeline::new(None)),
            Arc::clone(&backlog),
            0,
        );
        let mut other = pin!(backlog.wake(1).notified());
        backlog.add_idle(1, 0);
        dispatch.ready.borrow_mut().push_back(5);
        // While a caller of its own is idle, it stays.
        backlog.add_idle(0, 0);
        dispatch.pass_on();
        assert!(other.as_mut().now_or_never().is_none());
        backlog.remove_idle(0);
        dispatch.pass_on();
        assert!(other.now_or_never().is_some());
        assert_eq!(backlog.take(u64::MAX), Some(5));
    }

    #[test]
    fn a_request_waits_for_want_of_callers_only_until_one_of_any_worker_is_free() {
        let backlog = Arc::new(Backlog::new(2, 10));
        let schedule =
            Schedule::new(Arrival::Constant(1.0), [0, 2], PartNumber::default(), None).unwrap();
        let timeline = Arc::new(Timeline::new(None));
        let dispatch = Dispatch::new(schedule, timeline, Arc::clone(&backlog), 0);
        let free = |intended| dispatch.started(intended, 90, 100).free;
        assert_eq!([free(10), free(95)], [90, 95]);
        backlog.add_idle(1, 40);
        assert_eq!([free(10), free(50)], [40, 50]);
    }
}
