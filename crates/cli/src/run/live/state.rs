//! The state of the step that runs, for the view.

use std::{collections::BTreeMap, time::Duration};

use netping_measure::{counts::Counts, error_kind::ErrorKind, recorder::Interval};

/// Seconds whose times are kept: a worker hands a second on when its next one begins, or later
/// where it has no replies.
const OPEN: usize = 8;

/// The step that runs.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Its target and load.
    pub(super) what: String,
    pub(super) head: Head,
    /// Response times of all replies so far.
    pub(super) times: Counts,
    pub(super) errors: BTreeMap<ErrorKind, u64>,
    /// The seconds of the window, each with its number.
    pub(super) seconds: BTreeMap<u64, Second>,
    open: BTreeMap<u64, Counts>,
}

/// Where the step stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head {
    /// The phase, in words.
    pub phase: &'static str,
    /// True while requests count.
    pub measures: bool,
    /// Time since the phase began.
    pub elapsed: Duration,
    /// Length of the phase, if known.
    pub planned: Option<Duration>,
    /// Time left of the command, if known.
    pub left: Option<Duration>,
    /// Replies per second.
    pub rate: f64,
}

/// One second of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Second {
    pub(super) replies: u64,
    pub(super) p50: Option<u64>,
    pub(super) p99: Option<u64>,
}

impl State {
    pub(super) fn new(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a worker's interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        let times = interval.response_times();
        self.times.add_histogram(times);
        for (kind, count) in &interval.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        let open = self.open.entry(interval.index).or_default();
        open.add_histogram(times);
        let second = Second {
            replies: open.len(),
            p50: open.quantile(0.5),
            p99: open.quantile(0.99),
        };
        self.seconds.insert(interval.index, second);
        if self.open.len() > OPEN {
            self.open.pop_first();
        }
    }
}
