//! The clients of a merged run.

use netping_measure::distribution::Distribution;
use serde::{Deserialize, Serialize};

use super::HostClock;
use crate::file::time_of_day;

/// One client of a merged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// The client's host.
    pub host: String,
    /// Its CPUs; absent in files of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// Its command line.
    pub command_line: Vec<String>,
    /// The time of day on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<HostClock>,
    /// Its contribution to each step, in their order.
    pub steps: Vec<PartStep>,
}

/// One client's contribution to a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartStep {
    /// Requests that count.
    pub requests: u64,
    /// Verified replies per second of its own window.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// Start of its window by its own clock, in nanoseconds since 1970.
    #[serde(default, with = "time_of_day", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub window_started_at: Option<u64>,
    /// Length of its window, in seconds.
    #[serde(default)]
    pub window_seconds: f64,
    /// Share of its window that lies in the time that all clients have in common, by the server's
    /// clock if the offsets from it are known; from 0 to 1.
    #[serde(default)]
    pub overlap: f64,
    /// Its response times; absent in files of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Distribution>,
}
