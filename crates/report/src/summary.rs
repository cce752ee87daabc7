//! The numbers that describe a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    collector::Collected, distribution::Distribution, error_kind::ErrorKind, precision::Precision,
    recorder::Outside,
};

/// How every request that counts went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// Verified replies.
    pub ok: u64,
    /// Failures by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Requests without a reply when the drain was over.
    pub in_flight: u64,
    /// Requests that were due but never handed to the transport.
    pub not_sent: u64,
}

impl Accounting {
    /// All failures.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Every request that counts: the sum of all there is.
    pub fn scheduled(&self) -> u64 {
        self.ok + self.failed() + self.in_flight + self.not_sent
    }

    /// The share of requests that got no verified reply, from 0 to 1; 0 without requests.
    pub fn error_rate(&self) -> f64 {
        let scheduled = self.scheduled();
        if scheduled == 0 {
            0.0
        } else {
            (scheduled - self.ok) as f64 / scheduled as f64
        }
    }
}

/// The numbers that describe a step. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Requests that count: `ok` + the errors + `in_flight` + `not_sent`.
    pub scheduled: u64,
    /// How they went.
    #[serde(flatten)]
    pub accounting: Accounting,
    /// Requests that ended outside the window, and so enter nothing else.
    pub outside_ok: u64,
    /// Failures outside the window.
    pub outside_errors: u64,
    /// The window's length, in seconds.
    pub seconds: f64,
    /// Of the verified replies, those that came after the window's end, in an open loop's drain.
    pub late: u64,
    /// Verified replies within the window to requests that had been due before it, in an open loop's warm-up. They are of
    /// `outside_ok`, and enter nothing but the rate.
    #[serde(default)]
    pub early: u64,
    /// Verified replies that came within the window, per second of it.
    pub rate: f64,
    /// How much rate and response time vary within the run.
    pub precision: Precision,
    /// `end - start` of successes.
    pub service_time: Distribution,
    /// `end - intended` of successes, and at least the age of what is in flight.
    pub response_time: Distribution,
    /// `start - intended` of successes.
    pub lag: Distribution,
    /// `end - start` of failures.
    pub failed_time: Distribution,
}

pub(crate) fn arrived(ok: u64, late: u64, early: u64) -> u64 {
    ok.saturating_sub(late) + early
}

impl Summary {
    /// Verified replies that came within the window: what both sides' CPU time went into.
    pub fn arrived(&self) -> u64 {
        arrived(self.accounting.ok, self.late, self.early)
    }

    /// The mean number of requests in the system by Little's law: rate times mean service time (X * R).
    pub fn in_system(&self) -> Option<f64> {
        self.service_time.mean.map(|mean| self.rate * mean / 1e9)
    }

    /// Requests that count and have no verified reply: they failed, were in flight in the end, or were never sent.
    pub fn unserved(&self) -> u64 {
        self.scheduled.saturating_sub(self.accounting.ok)
    }

    pub(crate) fn of(collected: &Collected) -> Self {
        let Outside { ok, errors } = collected.outside;
        let seconds = collected.window.seconds();
        let accounting = collected.accounting.clone();
        Self {
            scheduled: accounting.scheduled(),
            outside_ok: ok,
            outside_errors: errors,
            seconds,
            late: collected.late,
            early: collected.early,
            rate: if seconds > 0.0 {
                collected.arrived() as f64 / seconds
            } else {
                0.0
            },
            accounting,
            precision: collected.precision.clone(),
            service_time: Distribution::of(&collected.service),
            response_time: Distribution::of(&collected.response),
            lag: Distribution::of(&collected.lag),
            failed_time: Distribution::of(&collected.failed),
        }
    }
}

impl Cost {
    /// CPU time of the server for each request, in microseconds.
    pub fn server_cpu_us_per_request(&self) -> Option<f64> {
        self.server.as_ref()?.cpu_us_per_request
    }
}

/// What a step used of the machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of each of the client's workers over the window, in seconds.
    pub client_worker_cpu_seconds: Vec<f64>,
    /// CPU time of all workers for each request that counts, in microseconds.
    pub client_cpu_us_per_request: Option<f64>,
    /// What the server used; absent where its counters could not be read.
    pub server: Option<ServerDemand>,
}

/// What the server's process used between the window's start and its end: its service demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerDemand {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// CPU time for each request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Context switches for each request.
    pub context_switches_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: Option<u64>,
}
