//! The phases of a run, as every worker sees them: the one thing that workers share while requests run.

use std::sync::atomic::{AtomicU64, Ordering};

use netping_measure::window::Window;

/// When requests count, and when workers give up waiting. Times are on the run's clock, in nanoseconds.
#[derive(Debug)]
#[repr(align(128))]
pub struct Timeline {
    begin: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    drain_until: AtomicU64,
}

impl Timeline {
    /// A run whose window is not known yet: nothing counts.
    pub fn new() -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        Self {
            begin: unknown(),
            start: unknown(),
            end: unknown(),
            drain_until: unknown(),
        }
    }

    /// Sets when requests begin, the window, and how long after it replies are waited for.
    pub fn set(&self, begin: u64, window: Window, drain: u64) {
        self.begin.store(begin, Ordering::Relaxed);
        self.start.store(window.start, Ordering::Relaxed);
        self.end.store(window.end, Ordering::Relaxed);
        self.drain_until
            .store(window.end.saturating_add(drain), Ordering::Relaxed);
    }

    /// Ends the window at `now`, if it has not ended yet.
    pub fn cut(&self, now: u64, drain: u64) {
        self.end.fetch_min(now, Ordering::Relaxed);
        self.start.fetch_min(now, Ordering::Relaxed);
        self.drain_until
            .fetch_min(now.saturating_add(drain), Ordering::Relaxed);
    }

    /// When requests begin, warm-up and all.
    pub fn begin(&self) -> u64 {
        self.begin.load(Ordering::Relaxed)
    }

    /// When requests count.
    pub fn window(&self) -> Window {
        Window {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
        }
    }

    /// When what has no reply yet is given up.
    pub fn drain_until(&self) -> u64 {
        self.drain_until.load(Ordering::Relaxed)
    }
}
