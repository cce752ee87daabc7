//! Takes the samples of one worker. No lock, and no allocation for a sample.

use std::{collections::BTreeMap, mem};

use crate::{
    error_kind::ErrorKind,
    histogram::{Histogram, histogram, record},
    sample::{LoopKind, Sample},
    window::{INTERVAL, SLOT, Window},
};

/// The samples of one worker in one interval.
#[derive(Debug)]
pub struct Interval {
    /// Its number, counted from the window's start.
    pub index: u64,
    /// `end - start` of successes.
    pub service: Histogram,
    /// `end - intended` of successes; in a closed loop it is empty, being the same as `service`.
    pub response: Histogram,
    /// `start - intended` of successes; in a closed loop it is empty, being 0, like both its parts.
    pub lag: Histogram,
    /// The part of the lag in which no caller was free.
    pub no_caller: Histogram,
    /// The part of the lag in which a caller was free: the client was late.
    pub client_late: Histogram,
    /// `end - intended` of requests that timed out: their response times are at least that.
    pub censored: Histogram,
    /// `end - start` of failures.
    pub failed: Histogram,
    /// Failures by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Successes that came after the window's end, in the drain. They do not count for the rate.
    pub late: u64,
    /// Successes within the window that had been due before it, in the warm-up. They count for the
    /// rate alone.
    pub early: u64,
}

impl Interval {
    /// Returns an empty interval.
    pub fn new(index: u64) -> Self {
        Self {
            index,
            service: histogram(),
            response: histogram(),
            lag: histogram(),
            no_caller: histogram(),
            client_late: histogram(),
            censored: histogram(),
            failed: histogram(),
            errors: BTreeMap::new(),
            late: 0,
            early: 0,
        }
    }

    /// Returns `end - intended` of successes. In a closed loop it is the service time, and kept once.
    pub fn response_times(&self) -> &Histogram {
        if self.response.is_empty() {
            &self.service
        } else {
            &self.response
        }
    }

    /// Empties it for another use.
    pub fn clear(&mut self) {
        for histogram in [
            &mut self.service,
            &mut self.response,
            &mut self.lag,
            &mut self.no_caller,
            &mut self.client_late,
            &mut self.censored,
            &mut self.failed,
        ] {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
        self.errors.clear();
        self.late = 0;
        self.early = 0;
    }
}

/// Requests that were due outside the window. They enter no statistic of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outside {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub errors: u64,
}

/// Where a recorder's finished intervals go, and where it gets empty ones: nothing is allocated in
/// between.
pub trait Sink {
    /// Takes a finished interval.
    fn hand_on(&mut self, interval: Interval);
    /// Gives an empty interval, if one is at hand.
    fn spare(&mut self) -> Option<Interval>;
}

/// Records one worker's samples, and hands every finished interval on.
#[derive(Debug)]
pub struct Recorder<S> {
    kind: LoopKind,
    sink: S,
    current: Interval,
    outside: Outside,
    /// Successes in each 100 ms since the run's clock began, warm-up and all.
    slots: Vec<u32>,
}

impl<S: Sink> Recorder<S> {
    /// A recorder without samples. `expected` is the length of the run, in nanoseconds, if known.
    pub fn new(kind: LoopKind, expected: u64, sink: S) -> Self {
        let slots = Vec::with_capacity((expected / SLOT) as usize + 64);
        Self {
            kind,
            sink,
            current: Interval::new(0),
            outside: Outside::default(),
            slots,
        }
    }

    /// Records a request and its outcome; returns true if it counts, because it was due in the
    /// window.
    pub fn record(
        &mut self,
        window: Window,
        sample: Sample,
        outcome: Result<(), ErrorKind>,
    ) -> bool {
        if outcome.is_ok() {
            self.count_slot(sample.end);
        }
        if !window.contains(sample.intended) {
            self.record_outside(window, sample.end, outcome.is_ok());
            return false;
        }
        self.turn_to(window, sample.end);
        let service = sample.end - sample.start;
        let response = sample.end - sample.intended;
        if let Err(kind) = outcome {
            *self.current.errors.entry(kind).or_default() += 1;
            record(&mut self.current.failed, service);
            if kind.is_timeout() {
                record(&mut self.current.censored, response);
            }
            return true;
        }
        record(&mut self.current.service, service);
        self.current.late += u64::from(sample.end >= window.end);
        if self.kind == LoopKind::Open {
            record(&mut self.current.response, response);
            record(&mut self.current.lag, sample.start - sample.intended);
            record(&mut self.current.no_caller, sample.free - sample.intended);
            record(&mut self.current.client_late, sample.start - sample.free);
        }
        true
    }

    /// Hands the last interval on, and gives what belongs to none: the requests outside, and the
    /// successes in each 100 ms.
    pub fn finish(mut self) -> (Outside, Vec<u32>) {
        self.sink.hand_on(self.current);
        (self.outside, self.slots)
    }

    /// Counts a request that was due outside the window.
    fn record_outside(&mut self, window: Window, end: u64, is_ok: bool) {
        if !is_ok {
            self.outside.errors += 1;
            return;
        }
        self.outside.ok += 1;
        if window.contains(end) {
            self.turn_to(window, end);
            self.current.early += 1;
        }
    }

    /// Makes the interval that `end` lies in the current one.
    fn turn_to(&mut self, window: Window, end: u64) {
        let index = end.saturating_sub(window.start) / INTERVAL;
        if index == self.current.index {
            return;
        }
        let mut next = self.sink.spare().unwrap_or_else(|| Interval::new(index));
        next.index = index;
        self.sink.hand_on(mem::replace(&mut self.current, next));
    }

    fn count_slot(&mut self, end: u64) {
        let slot = (end / SLOT) as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += 1;
    }
}
