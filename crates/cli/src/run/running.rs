//! The step that runs, as progress shows it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use humantime::format_duration;
use netping_client::engine::Phase;
use netping_measure::{counts::Counts, error_kind::ErrorKind, recorder::Interval};

/// Seconds that are kept.
pub const KEPT: usize = 60;

/// The time after a second in which its last replies are counted.
const COUNTED_AFTER: Duration = Duration::from_millis(500);

/// The step that runs.
#[derive(Debug, Clone, Default)]
pub struct RunningStep {
    /// Its target and load.
    pub what: String,
    /// The phase, in words.
    pub phase: &'static str,
    /// True while requests count.
    pub measures: bool,
    /// Time since the phase began.
    pub elapsed: Duration,
    /// Length of the phase, if known.
    pub planned: Option<Duration>,
    /// Planned time of the phases that have not begun.
    pub ahead: Option<Duration>,
    /// Time left of the command, if known.
    pub left: Option<Duration>,
    /// Replies per second.
    pub rate: f64,
    /// Response times of all replies so far.
    pub times: Counts,
    /// Failures so far.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Planned length of the window, once it has begun, if known.
    pub window: Option<Duration>,
    /// Whole seconds of the window that are over, and whose replies are counted.
    pub over: u64,
    /// Response times of the last seconds of the window, each with its number.
    pub seconds: BTreeMap<u64, Arc<Counts>>,
}

impl RunningStep {
    /// Begins a phase, whose length is `planned` if it is known.
    pub fn begin_phase(&mut self, phase: Phase, planned: Option<Duration>) {
        self.planned = planned;
        self.ahead = match (self.ahead, planned) {
            (Some(ahead), Some(own)) => Some(ahead.saturating_sub(own)),
            (ahead, None) if matches!(phase, Phase::Connect | Phase::Drain) => ahead,
            _ => None,
        };
        self.measures = phase == Phase::Measure;
        if self.measures {
            self.window = planned;
        }
        self.phase = match phase {
            Phase::Connect => "connecting",
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Drain => "waiting for the last replies",
        };
    }

    /// Takes the time since the phase began, and the rate.
    pub fn tick(&mut self, elapsed: Duration, rate: f64) {
        (self.elapsed, self.rate) = (elapsed, rate);
        if self.measures {
            self.over = elapsed.saturating_sub(COUNTED_AFTER).as_secs();
        }
    }

    /// Adds a worker's interval.
    pub fn add(&mut self, interval: &Interval) {
        let times = interval.response_times();
        self.times.add_histogram(times);
        for (kind, count) in &interval.accounting.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        let second = self.seconds.entry(interval.index).or_default();
        Arc::make_mut(second).add_histogram(times);
        if self.seconds.len() > KEPT {
            self.seconds.pop_first();
        }
    }

    /// Returns the number of failures so far.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// Returns the time that is left, in words.
pub fn whole_seconds(left: Duration) -> String {
    let left = Duration::from_secs(left.as_secs());
    format!("{} left", format_duration(left))
}
