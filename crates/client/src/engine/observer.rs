//! The view of a running step: its phases, its rate, its intervals.

use std::time::Duration;

use netping_measure::recorder::Interval;

/// Watches a step while it runs.
pub trait Observer {
    /// Called when `phase` begins; `planned` is its length, if known.
    fn phase(&self, phase: Phase, planned: Option<Duration>);
    /// Called about ten times a second, with the time since the phase began and the current rate
    /// in replies per second.
    fn tick(&self, elapsed: Duration, rate: f64);
    /// Called for every interval that a worker has finished.
    fn interval(&self, _interval: &Interval) {}
    /// Returns true once the user wants the window to end, and what it has to be kept.
    fn ends_step(&self) -> bool {
        false
    }
}

/// Shows nothing.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {
    fn phase(&self, _: Phase, _: Option<Duration>) {}
    fn tick(&self, _: Duration, _: f64) {}
}

/// The phases of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    Connect,
    /// Requests run but do not count.
    Warmup,
    /// Requests count.
    Measure,
    /// The last replies are awaited.
    Drain,
}
