//! The rate of a running step, for observers and for the automatic warm-up.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use netping_measure::{sample::LoopKind, statistics::warm_up::WarmUpDetector};

use crate::engine::observer::Observer;

/// Time between two looks at the rate, in nanoseconds: 100 ms.
const LOOK: u64 = 100_000_000;

/// A worker's count of replies and the sum of their response times, warm-up included. Only the
/// worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ReplyCounter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl ReplyCounter {
    /// Counts a reply that took this long since it was due.
    pub fn add(&self, nanoseconds: u64) {
        let spent = self.nanoseconds.load(Ordering::Relaxed);
        let spent = spent.wrapping_add(nanoseconds);
        self.nanoseconds.store(spent, Ordering::Relaxed);
        self.count.store(self.count() + 1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn nanoseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed)
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

/// Looks for the end of the transient at a run's beginning: in a closed loop in the rate, and in an
/// open one, whose rate is given, in the mean response time.
#[derive(Debug)]
pub struct AutoWarmup {
    begun: u64,
    /// Longest warm-up, in nanoseconds.
    longest: u64,
    kind: LoopKind,
    looks: Looks,
    /// Sum of the response times at the last look.
    nanoseconds: u64,
    detector: WarmUpDetector,
}

impl AutoWarmup {
    /// Begins at `begun` on the run's clock.
    pub fn new(begun: u64, longest: Duration, kind: LoopKind) -> Self {
        Self {
            begun,
            longest: longest.as_nanos() as u64,
            kind,
            looks: Looks {
                last: begun,
                replies: 0,
            },
            nanoseconds: 0,
            detector: WarmUpDetector::default(),
        }
    }

    /// Returns `Some(true)` once the server is steady, and `Some(false)` if that takes too long.
    pub fn ended(&mut self, now: u64, counters: &[Arc<ReplyCounter>]) -> Option<bool> {
        let before = self.looks.replies;
        let (_, rate) = self.looks.rate(now, counters)?;
        let value = match self.kind {
            LoopKind::Closed => rate,
            LoopKind::Open => {
                let sums = counters.iter().map(|counter| counter.nanoseconds());
                let sum = sums.fold(0, u64::wrapping_add);
                let spent = sum.wrapping_sub(mem::replace(&mut self.nanoseconds, sum));
                spent as f64 / (self.looks.replies - before).max(1) as f64
            }
        };
        let steady = self.detector.add(value).is_some();
        (steady || now - self.begun >= self.longest).then_some(steady)
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
