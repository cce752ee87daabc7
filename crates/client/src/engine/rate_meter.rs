//! The rate while a step runs: for the bar, and for the warm-up that ends by itself.

use std::{sync::Arc, time::Duration};

use netping_measure::statistics::warm_up::mser5;

use crate::engine::{observer::Observer, worker::Progress};

/// How often an automatic warm-up looks at the rate, in nanoseconds: 100 ms.
const WARMUP_LOOK: u64 = 100_000_000;

/// How long an automatic warm-up may take, in nanoseconds: 30 s; what is not steady then is measured all the same, and doubted.
const LONGEST_WARMUP: u64 = 30_000_000_000;

/// Looks for the end of the transient while a run warms up.
pub struct AutoWarmup {
    begun: u64,
    last: u64,
    replies: u64,
    /// The rate of each look, in replies per nanosecond.
    rates: Vec<f64>,
}

impl AutoWarmup {
    /// Nothing seen yet.
    pub fn new(begun: u64) -> Self {
        Self {
            begun,
            last: begun,
            replies: 0,
            rates: Vec::new(),
        }
    }

    /// Whether the rate is steady; or not, and the patience is over. All that was looked at is then warm-up. `None`: look
    /// again.
    pub fn ended(&mut self, now: u64, progress: &[Arc<Progress>]) -> Option<bool> {
        if now - self.last < WARMUP_LOOK {
            return None;
        }
        let replies = progress.iter().map(|counter| counter.replies()).sum();
        self.rates
            .push((replies - self.replies) as f64 / (now - self.last) as f64);
        (self.last, self.replies) = (now, replies);
        let steady = mser5(&self.rates).is_some();
        (steady || now - self.begun >= LONGEST_WARMUP).then_some(steady)
    }
}

/// The live rate: replies since the last look, smoothed over about a second.
pub struct Live {
    phase_start: u64,
    last: u64,
    replies: u64,
    rate: f64,
}

impl Live {
    /// Nothing seen yet.
    pub fn new(now: u64) -> Self {
        Self {
            phase_start: now,
            last: now,
            replies: 0,
            rate: 0.0,
        }
    }

    /// Notes that a phase begins.
    pub fn begin_phase(&mut self, now: u64) {
        self.phase_start = now;
    }

    /// Tells `observer`, at most ten times a second.
    pub fn tick(&mut self, now: u64, progress: &[Arc<Progress>], observer: &dyn Observer) {
        let elapsed = (now - self.last) as f64 / 1e9;
        if elapsed < 0.1 {
            return;
        }
        let replies = progress.iter().map(|counter| counter.replies()).sum();
        let rate = (replies - self.replies) as f64 / elapsed;
        self.rate = if self.rate == 0.0 {
            rate
        } else {
            self.rate + (rate - self.rate) * elapsed.min(1.0)
        };
        (self.last, self.replies) = (now, replies);
        observer.tick(Duration::from_nanos(now - self.phase_start), self.rate);
    }
}
