//! The outcome of every request that counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// How every request that counts went.
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

pub fn arrived(ok: u64, late: u64, early: u64) -> u64 {
    ok.saturating_sub(late) + early
}
