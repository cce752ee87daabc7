//! Bursts of an open loop.

use serde::{Deserialize, Serialize};

use crate::format;

/// Stretches of an open loop with another rate. Each begins half-way through a cycle, the first of which begins with the
/// window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstSettings {
    /// The rate between bursts, in requests per second.
    #[serde(rename = "base_rate_per_s")]
    pub base_rate: f64,
    /// The rate in bursts, in requests per second.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// The length of a burst, in seconds.
    #[serde(rename = "length_seconds")]
    pub length: u64,
    /// The length of a cycle, in seconds.
    #[serde(rename = "every_seconds")]
    pub every: u64,
}

impl BurstSettings {
    /// Returns those of two clients together.
    #[must_use]
    pub fn together(self, other: Self) -> Self {
        Self {
            base_rate: self.base_rate + other.base_rate,
            rate: self.rate + other.rate,
            ..self
        }
    }

    /// Returns them without rates, but for the rate of a burst as so many times that between bursts: what clients that
    /// share a load have in common.
    #[must_use]
    pub(crate) fn shape(self) -> Self {
        Self {
            base_rate: 1.0,
            rate: (self.rate / self.base_rate * 1000.0).round() / 1000.0,
            ..self
        }
    }

    /// Returns them as people read them.
    pub fn in_words(&self) -> String {
        format!(
            "bursts of {} req/s for {} s every {} s",
            format::rate(self.rate),
            self.length,
            self.every
        )
    }
}
