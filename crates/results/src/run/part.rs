//! The clients of a merged run.

use serde::{Deserialize, Serialize};

/// One client of a merged run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// The client's host.
    pub host: String,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// Its command line.
    pub command_line: Vec<String>,
    /// Its contribution to each step, in their order.
    pub steps: Vec<PartStep>,
}

/// One client's contribution to a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartStep {
    /// Requests that count.
    pub requests: u64,
    /// Verified replies per second of its own window.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
}
