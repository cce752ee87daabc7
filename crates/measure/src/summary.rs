//! The numbers that describe a step.

use enum_map::EnumMap;
use serde::{Deserialize, Serialize};

use crate::{
    accounting::Accounting,
    aggregate::Totals,
    distribution::Distribution,
    statistics::precision::Precision,
    times::{self, Time},
};

/// The numbers that describe a step. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Requests that count: `ok` + the errors + `in_flight` + `not_sent`.
    pub scheduled: u64,
    /// Their outcomes, and other counts.
    #[serde(flatten)]
    pub accounting: Accounting,
    /// The window's length, in seconds.
    #[serde(rename = "window_seconds")]
    pub seconds: f64,
    /// Verified replies that came within the window, per second of it.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The precision of the rate within the run.
    #[serde(flatten)]
    pub precision: Precision,
    /// The descriptions of the times of each kind.
    #[serde(flatten, with = "times")]
    #[cfg_attr(feature = "schema", schemars(with = "times::ByName<Distribution>"))]
    pub times: EnumMap<Time, Distribution>,
}

impl Summary {
    /// Returns the share of the callers' time that went to failed requests and to the pauses after
    /// them, between 0 and 1. A caller that waits long for a failure, or pauses while a server is
    /// gone, sends few requests: their share alone would hide it.
    pub fn time_lost(&self) -> f64 {
        let sum = |times: &Distribution| times.mean.unwrap_or(0.0) * times.count as f64;
        let lost = sum(&self.times[Time::Failed]) + self.accounting.paused_ns as f64;
        if lost > 0.0 {
            lost / (lost + sum(&self.times[Time::Service]))
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
        let seconds = totals.window.seconds();
        let accounting = totals.accounting.clone();
        let mut times = totals.histograms.describe();
        let response = &mut times[Time::Response];
        [response.p50_interval, response.p99_interval] = totals.quantile_intervals;
        Self {
            scheduled: accounting.scheduled(),
            seconds,
            rate: if seconds > 0.0 {
                accounting.arrived() as f64 / seconds
            } else {
                0.0
            },
            accounting,
            precision: totals.precision.clone(),
            times,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{aggregate::Aggregate, sample::LoopKind, window::Window};

    #[test]
    fn failures_and_the_pauses_after_them_are_lost_time() {
        let window = Window { start: 0, end: 1 };
        let mut summary = Summary::of(&Aggregate::new(LoopKind::Closed).finish(window));
        let per_mille = |summary: &Summary| (summary.time_lost() * 1000.0) as u64;
        assert_eq!(per_mille(&summary), 0);
        let times = |count, mean| Distribution {
            count,
            mean: Some(mean),
            ..Distribution::default()
        };
        summary.times[Time::Service] = times(10, 5.0);
        summary.times[Time::Failed] = times(2, 15.0);
        assert_eq!(per_mille(&summary), 375);
        summary.accounting.paused_ns = 20;
        assert_eq!(per_mille(&summary), 500);
    }
}
