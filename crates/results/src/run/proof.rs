//! What was planted on the client's machine between measurements, and what was seen of it.

use serde::{Deserialize, Serialize};

/// A proof of the measurement on this machine: a built-in server with a known service time, a stall and a
/// difference, measured as the targets were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The server's service time, in nanoseconds: a timer's, which may be late.
    pub service_ns: u64,
    /// The median of the response times that were seen, in nanoseconds.
    pub seen_service_ns: Option<u64>,
    /// The length of the stall, in seconds.
    pub stall_seconds: f64,
    /// The longest response time that was seen of it in an open loop, in seconds.
    pub seen_stall_seconds: Option<f64>,
    /// The number of trials in which both servers were measured.
    #[serde(default = "ten")]
    pub trials: u32,
    /// The difference between the service times of two servers, as a share of the first one's.
    pub difference: f64,
    /// The difference between their medians that was seen.
    pub seen_difference: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// The least difference that such trials show with a probability of 80 %.
    pub detectable: Option<f64>,
}

impl Proof {
    /// Returns true if the difference was seen: its interval leaves out 0.
    pub fn has_seen_difference(&self) -> bool {
        self.interval.is_some_and(|[low, _]| low > 0.0)
    }
}

/// Returns the number of trials that there once always were.
fn ten() -> u32 {
    10
}
