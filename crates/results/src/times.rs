//! Times that are described and kept.

use netping_measure::{counts::Counts, distribution::Distribution, histogram::Histogram};
use serde::{Deserialize, Serialize};

use crate::file::histogram;

/// Times of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Their description.
    pub time: Distribution,
    /// All of them, in nanoseconds.
    #[serde(with = "histogram")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub histogram: Counts,
}

impl Times {
    /// Describes times.
    pub fn of(times: &Histogram) -> Self {
        Self {
            time: Distribution::of(times),
            histogram: times.into(),
        }
    }

    /// Returns the times of all parts together.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut histogram = Counts::default();
        parts.for_each(|part| histogram.add(&part.histogram));
        Self {
            time: Distribution::of(&histogram.to_histogram()),
            histogram,
        }
    }
}
