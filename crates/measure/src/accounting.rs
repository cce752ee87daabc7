//! The outcome of every request that counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// The outcome of every request that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Returns the number of failures.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Returns the number of requests that count: the sum of all outcomes.
    pub fn scheduled(&self) -> u64 {
        self.ok + self.failed() + self.in_flight + self.not_sent
    }

    /// Returns the share of requests without a verified reply, from 0 to 1; 0 without requests.
    pub fn error_rate(&self) -> f64 {
        let scheduled = self.scheduled();
        if scheduled == 0 {
            0.0
        } else {
            (scheduled - self.ok) as f64 / scheduled as f64
        }
    }
}

/// Returns the verified replies that arrived within the window: those that count, less those that
/// came after it, plus those of requests due before it.
pub fn arrived(ok: u64, late: u64, early: u64) -> u64 {
    ok.saturating_sub(late) + early
}
