//! The phases' times: with the requests of an open loop, the only state that workers share while
//! requests run.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use netping_measure::window::Window;

/// Start and end of the phases, in nanoseconds on the run's clock.
#[derive(Debug)]
#[repr(align(128))]
pub struct Timeline {
    begin: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    drain_until: AtomicU64,
    /// Time after the window in which replies are awaited.
    drain: AtomicU64,
    /// Requests of the window left to issue, where they are counted.
    left: AtomicI64,
}

impl Timeline {
    /// Returns a timeline whose window is not known yet: no request counts. Where requests are
    /// counted, it ends after so many.
    pub fn new(requests: Option<u64>) -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        Self {
            begin: unknown(),
            start: unknown(),
            end: unknown(),
            drain_until: unknown(),
            drain: unknown(),
            left: AtomicI64::new(
                requests.map_or(i64::MAX, |requests| requests.min(1 << 62).cast_signed()),
            ),
        }
    }

    /// Sets the time when requests begin, the window, and the time after it in which replies are
    /// awaited.
    pub fn set(&self, begin: u64, window: Window, drain: u64) {
        self.begin.store(begin, Ordering::Relaxed);
        self.start.store(window.start, Ordering::Relaxed);
        self.end.store(window.end, Ordering::Relaxed);
        self.drain.store(drain, Ordering::Relaxed);
        self.drain_until
            .store(window.end.saturating_add(drain), Ordering::Relaxed);
    }

    /// Takes one of the requests that are counted; returns false if none is left. The window ends
    /// just after the last of them.
    pub fn issue(&self, now: impl Fn() -> u64) -> bool {
        // Every earlier request has read its start from the clock before it came here.
        match self.left.fetch_sub(1, Ordering::AcqRel) {
            ..=0 => false,
            1 => {
                self.cut(now() + 1, self.drain.load(Ordering::Relaxed));
                true
            }
            _ => true,
        }
    }

    /// Ends the window at `now`, if it has not ended yet.
    pub fn cut(&self, now: u64, drain: u64) {
        self.end.fetch_min(now, Ordering::Relaxed);
        self.start.fetch_min(now, Ordering::Relaxed);
        self.drain_until
            .fetch_min(now.saturating_add(drain), Ordering::Relaxed);
    }

    /// Returns the start of the first requests, warm-up included.
    pub fn begin(&self) -> u64 {
        self.begin.load(Ordering::Relaxed)
    }

    /// Returns the window, in which requests count.
    pub fn window(&self) -> Window {
        Window {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
        }
    }

    /// Returns the time when requests without a reply are given up.
    pub fn drain_until(&self) -> u64 {
        self.drain_until.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_cut_before_it_begins_is_empty() {
        let timeline = Timeline::new(None);
        let (start, end) = (100, 200);
        timeline.set(0, Window { start, end }, 50);
        timeline.cut(150, 10);
        let window = timeline.window();
        assert_eq!((window.start, window.end), (100, 150));
        assert_eq!(timeline.drain_until(), 160);
        timeline.cut(70, 10);
        let window = timeline.window();
        assert_eq!((window.start, window.end), (70, 70));
    }
}
