//! Takes the samples of one worker. No lock, and no allocation for a sample.

use std::mem;

use enum_map::EnumMap;

use crate::{
    accounting::Accounting,
    counts::Counts,
    course::Course,
    error_kind::ErrorKind,
    histogram::{Histogram, histogram, record},
    sample::{LoopKind, Sample},
    times::Time,
    window::{INTERVAL, Window},
};

/// The samples of one worker in one interval.
#[derive(Debug)]
pub struct Interval {
    /// Its number, counted from the window's start.
    pub index: u64,
    /// The times of requests that ended. In a closed loop, response times are empty, being the
    /// service times, and so are the lag, being 0, and its parts.
    pub times: EnumMap<Time, Histogram>,
    /// `end - intended` of requests that timed out: their response times are at least that.
    pub censored: Histogram,
    /// The counts except that of successes, which is that of service times. Requests that were due
    /// outside the window are in whichever interval was current.
    pub accounting: Accounting,
}

impl Interval {
    /// Returns an empty interval.
    pub fn new(index: u64) -> Self {
        Self {
            index,
            times: EnumMap::from_fn(|_| histogram()),
            censored: histogram(),
            accounting: Accounting::default(),
        }
    }

    /// Returns `end - intended` of successes. In a closed loop it is the service time, and kept once.
    pub fn response_times(&self) -> &Histogram {
        match &self.times[Time::Response] {
            response if response.is_empty() => &self.times[Time::Service],
            response => response,
        }
    }

    /// Empties it for another use.
    pub fn clear(&mut self) {
        for histogram in self.times.values_mut().chain([&mut self.censored]) {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
        self.accounting = Accounting::default();
    }
}

/// The records of a worker that belong to no interval, or those of several workers added up.
#[derive(Debug, Clone, Default)]
pub struct Remainder {
    /// Counts of connections.
    pub accounting: Accounting,
    /// Age of each request without a reply, in nanoseconds since it was due.
    pub in_flight: Counts,
    /// Age at the window's end of each request that was due but never handed to the transport, in
    /// nanoseconds.
    pub not_sent: Counts,
    /// The course of the requests, warm-up and all.
    pub course: Course,
}

impl Remainder {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.accounting += &other.accounting;
        self.in_flight.add(&other.in_flight);
        self.not_sent.add(&other.not_sent);
        self.course.add(&other.course);
    }
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
    course: Course,
}

impl<S: Sink> Recorder<S> {
    /// Returns a recorder without samples.
    pub fn new(kind: LoopKind, mut sink: S) -> Self {
        Self {
            kind,
            current: sink.spare().unwrap_or_else(|| Interval::new(0)),
            sink,
            course: Course::new(),
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
        self.course.record(window, sample, outcome);
        if !window.contains(sample.intended) {
            self.record_outside(window, sample.end, outcome.is_ok());
            return false;
        }
        self.turn_to(window, sample.end);
        let service = sample.end - sample.start;
        let response = sample.end - sample.intended;
        if let Err(kind) = outcome {
            *self.current.accounting.errors.entry(kind).or_default() += 1;
            record(&mut self.current.times[Time::Failed], service);
            if kind.is_timeout() {
                record(&mut self.current.censored, response);
            }
            return true;
        }
        self.current.accounting.late += u64::from(sample.end >= window.end);
        let times = &mut self.current.times;
        record(&mut times[Time::Service], service);
        if self.kind == LoopKind::Open {
            let Sample {
                intended,
                free,
                start,
                ..
            } = sample;
            record(&mut times[Time::Response], response);
            record(&mut times[Time::Lag], start - intended);
            record(&mut times[Time::NoCallerFree], free - intended);
            record(&mut times[Time::ClientLate], start - free);
        }
        true
    }

    /// Hands the last interval on; returns the course of the requests.
    pub fn finish(mut self) -> Course {
        self.sink.hand_on(self.current);
        self.course
    }

    /// Counts a request that was due outside the window.
    fn record_outside(&mut self, window: Window, end: u64, is_ok: bool) {
        if is_ok && window.contains(end) {
            self.turn_to(window, end);
            self.current.accounting.early += 1;
        }
        let accounting = &mut self.current.accounting;
        accounting.outside_ok += u64::from(is_ok);
        accounting.outside_errors += u64::from(!is_ok);
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
}
