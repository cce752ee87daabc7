//! The rate of a running step, for observers and for the automatic warm-up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use netping_measure::statistics::warm_up::mser5;

use crate::engine::observer::Observer;

/// Time between two looks at the rate, in nanoseconds: 100 ms.
const LOOK: u64 = 100_000_000;

/// Longest automatic warm-up, in nanoseconds: 30 s. After it, the step is measured all the same,
/// with a warning.
const LONGEST_WARMUP: u64 = 30_000_000_000;

/// A worker's count of replies, warm-up included. Only the worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ReplyCounter(AtomicU64);

impl ReplyCounter {
    /// Counts a reply.
    pub fn increment(&self) {
        self.0.store(self.count() + 1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Replies per second between looks.
#[derive(Debug)]
struct Looks {
    last: u64,
    replies: u64,
}

impl Looks {
    /// Returns the time since the last look, in seconds, and the rate over it; `None` if it is too
    /// early to look again.
    fn rate(&mut self, now: u64, counters: &[Arc<ReplyCounter>]) -> Option<(f64, f64)> {
        if now - self.last < LOOK {
            return None;
        }
        let elapsed = (now - self.last) as f64 / 1e9;
        let replies = counters.iter().map(|counter| counter.count()).sum();
        let rate = (replies - self.replies) as f64 / elapsed;
        (self.last, self.replies) = (now, replies);
        Some((elapsed, rate))
    }
}

/// Looks for the end of the transient at a run's beginning.
#[derive(Debug)]
pub struct AutoWarmup {
    begun: u64,
    looks: Looks,
    rates: Vec<f64>,
}

impl AutoWarmup {
    /// Begins at `begun` on the run's clock.
    pub fn new(begun: u64) -> Self {
        Self {
            begun,
            looks: Looks {
                last: begun,
                replies: 0,
            },
            rates: Vec::new(),
        }
    }

    /// Returns `Some(true)` once the rate is steady, and `Some(false)` if that takes too long.
    pub fn ended(&mut self, now: u64, counters: &[Arc<ReplyCounter>]) -> Option<bool> {
        let (_, rate) = self.looks.rate(now, counters)?;
        self.rates.push(rate);
        let steady = mser5(&self.rates).is_some();
        (steady || now - self.begun >= LONGEST_WARMUP).then_some(steady)
    }
}

/// The current rate, smoothed over about a second.
#[derive(Debug)]
pub struct RateMeter {
    phase_start: u64,
    looks: Looks,
    rate: f64,
}

impl RateMeter {
    /// Begins at `now` on the run's clock.
    pub fn new(now: u64) -> Self {
        Self {
            phase_start: now,
            looks: Looks {
                last: now,
                replies: 0,
            },
            rate: 0.0,
        }
    }

    /// Notes that a phase begins.
    pub fn begin_phase(&mut self, now: u64) {
        self.phase_start = now;
    }

    /// Tells `observer`, at most ten times a second.
    pub fn tick(&mut self, now: u64, counters: &[Arc<ReplyCounter>], observer: &dyn Observer) {
        let Some((elapsed, rate)) = self.looks.rate(now, counters) else {
            return;
        };
        self.rate = if self.rate == 0.0 {
            rate
        } else {
            self.rate + (rate - self.rate) * elapsed.min(1.0)
        };
        observer.tick(Duration::from_nanos(now - self.phase_start), self.rate);
    }
}
