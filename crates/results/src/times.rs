//! Times that are described and kept.

use netping_measure::{counts::Counts, distribution::Distribution};
use serde::{Deserialize, Serialize};

/// Times of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Their description.
    pub time: Distribution,
    /// All of them, in nanoseconds.
    pub histogram: Counts,
}

impl Times {
    /// Describes times.
    pub fn of(histogram: Counts) -> Self {
        Self {
            time: Distribution::of(&histogram),
            histogram,
        }
    }

    /// Returns the times of all parts together.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut histogram = Counts::default();
        parts.for_each(|part| histogram.add(&part.histogram));
        Self::of(histogram)
    }
}
