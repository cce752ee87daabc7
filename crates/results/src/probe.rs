//! A small request and its reply beside bulk streams.

use netping_measure::counts::Counts;
use serde::{Deserialize, Serialize};

use crate::times::Times;

/// The response times of small requests, which are due at a constant rate, before and beside the streams of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeSummary {
    /// Of requests that were due while the streams were idle.
    pub idle: Times,
    /// Of requests that were due while they carried bytes. One without a good reply, whenever it was due, is among them
    /// with the time limit.
    pub loaded: Times,
    /// Requests without a good reply.
    pub failed: u64,
    /// Requests that were sent late because as many as there may be were under way, which is a part of their response
    /// times; 0 in files of older versions, which do not have it.
    #[serde(default)]
    pub waited: u64,
}

impl ProbeSummary {
    /// Describes the times, in nanoseconds.
    pub fn of([idle, loaded]: [Counts; 2], failed: u64, waited: u64) -> Self {
        Self {
            idle: Times::of(idle),
            loaded: Times::of(loaded),
            failed,
            waited,
        }
    }

    /// Adds up those of several runs or clients; `None` without any.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        parts.cloned().reduce(|sum, part| Self {
            idle: Times::sum([&sum.idle, &part.idle].into_iter()),
            loaded: Times::sum([&sum.loaded, &part.loaded].into_iter()),
            failed: sum.failed + part.failed,
            waited: sum.waited + part.waited,
        })
    }
}
