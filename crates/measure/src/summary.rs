//! The numbers that describe a step.

use serde::{Deserialize, Serialize};

use crate::{
    accounting::{Accounting, arrived},
    aggregate::Totals,
    distribution::Distribution,
    recorder::Outside,
    statistics::precision::Precision,
};

/// The numbers that describe a step. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Requests that count: `ok` + the errors + `in_flight` + `not_sent`.
    pub scheduled: u64,
    /// Their outcomes.
    #[serde(flatten)]
    pub accounting: Accounting,
    /// Successes due outside the window.
    pub outside_ok: u64,
    /// Failures due outside the window.
    pub outside_errors: u64,
    /// The window's length, in seconds.
    #[serde(rename = "window_seconds")]
    pub seconds: f64,
    /// Of the verified replies, those that came after the window's end, in the drain.
    pub late: u64,
    /// Verified replies within the window to requests that had been due before it, in the warm-up.
    /// They are of `outside_ok`, and enter nothing but the rate.
    #[serde(default)]
    pub early: u64,
    /// Verified replies that came within the window, per second of it.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The precision of the rate within the run.
    #[serde(flatten)]
    pub precision: Precision,
    /// `end - start` of successes.
    pub service_time: Distribution,
    /// `end - intended` of successes, and at least the age of requests that timed out, were in
    /// flight at the end, or were never sent.
    pub response_time: Distribution,
    /// `start - intended` of successes.
    pub lag: Distribution,
    /// The part of an open loop's lag in which no caller was free.
    #[serde(default)]
    pub no_caller_free: Distribution,
    /// The part of an open loop's lag in which a caller was free, but the client was late.
    #[serde(default)]
    pub client_late: Distribution,
    /// `end - start` of failures.
    pub failed_time: Distribution,
}

impl Summary {
    /// Returns the verified replies that came within the window, which both sides' CPU time served.
    pub fn arrived(&self) -> u64 {
        arrived(self.accounting.ok, self.late, self.early)
    }

    /// Returns the mean number of requests in the system by Little's law: rate times mean service
    /// time (X * R), with that of the requests that failed.
    pub fn in_system(&self) -> Option<f64> {
        let failed = &self.failed_time;
        let failed = failed.mean.unwrap_or(0.0) * failed.count as f64 / self.seconds;
        self.service_time
            .mean
            .map(|mean| (self.rate * mean + failed) / 1e9)
    }

    /// Returns the share of the callers' time that went to failed requests, between 0 and 1. A
    /// caller that waits long for a failure sends few requests: their share alone would hide it.
    pub fn time_lost(&self) -> f64 {
        let sum = |times: &Distribution| times.mean.unwrap_or(0.0) * times.count as f64;
        let lost = sum(&self.failed_time);
        if lost > 0.0 {
            lost / (lost + sum(&self.service_time))
        } else {
            0.0
        }
    }

    /// Returns the larger of the shares of requests and of the callers' time that failures took.
    pub fn failure_share(&self) -> f64 {
        self.accounting.error_rate().max(self.time_lost())
    }

    /// Returns the requests without a verified reply: failed, still in flight, or never sent.
    pub fn unserved(&self) -> u64 {
        self.scheduled.saturating_sub(self.accounting.ok)
    }

    /// Describes a step's totals.
    pub fn of(totals: &Totals) -> Self {
        let Outside { ok, errors } = totals.outside;
        let seconds = totals.window.seconds();
        let accounting = totals.accounting.clone();
        Self {
            scheduled: accounting.scheduled(),
            outside_ok: ok,
            outside_errors: errors,
            seconds,
            late: totals.late,
            early: totals.early,
            rate: if seconds > 0.0 {
                totals.arrived() as f64 / seconds
            } else {
                0.0
            },
            accounting,
            precision: totals.precision.clone(),
            service_time: Distribution::of(&totals.service),
            response_time: Distribution::censored(&totals.response, &totals.censored)
                .with_intervals(totals.quantile_intervals),
            lag: Distribution::of(&totals.lag),
            no_caller_free: Distribution::of(&totals.no_caller),
            client_late: Distribution::of(&totals.client_late),
            failed_time: Distribution::of(&totals.failed),
        }
    }
}
