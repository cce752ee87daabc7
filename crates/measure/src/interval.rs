//! One second of a step.

use serde::{Deserialize, Serialize};

use crate::{buckets::Buckets, path::PathSecond, window::INTERVAL};

/// One second of a step. Times are in nanoseconds; requests lie where they ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalSummary {
    /// Start, in nanoseconds since the window's start.
    pub start_ns: u64,
    /// Length within the window, in nanoseconds; 0 for seconds of an open loop's drain.
    pub length_ns: u64,
    /// Verified replies that came in it.
    pub ok: u64,
    /// Failures.
    pub errors: u64,
    /// Median of the service time.
    #[serde(rename = "service_p50_ns")]
    pub service_p50: Option<u64>,
    /// 99th percentile of the service time.
    #[serde(rename = "service_p99_ns")]
    pub service_p99: Option<u64>,
    /// Longest service time.
    #[serde(rename = "service_max_ns")]
    pub service_max: Option<u64>,
    /// Median of the response time.
    #[serde(rename = "response_p50_ns")]
    pub response_p50: Option<u64>,
    /// 99th percentile of the response time.
    #[serde(rename = "response_p99_ns")]
    pub response_p99: Option<u64>,
    /// Longest response time.
    #[serde(rename = "response_max_ns")]
    pub response_max: Option<u64>,
    /// The response times by buckets; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Buckets::is_empty")]
    pub response_buckets: Buckets,
    /// The account that TCP or QUIC gives of the connections; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathSecond>,
}

impl IntervalSummary {
    /// Returns a whole second in which nothing ended.
    pub fn idle(start_ns: u64) -> Self {
        Self {
            start_ns,
            length_ns: INTERVAL,
            ..Self::default()
        }
    }
}
