//! The quantiles that describe a distribution.

use serde::{Deserialize, Serialize, Serializer};

/// The quantiles that every description has, in per cent.
pub const QUANTILES: [f64; 10] = [1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// The values of [`QUANTILES`], in nanoseconds; absent where there are too few samples to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Named")]
#[cfg_attr(feature = "schema", schemars(with = "Named"))]
pub struct Quantiles([Option<u64>; QUANTILES.len()]);

impl Quantiles {
    /// Takes each quantile's value from `value_at`, which is given per cents.
    pub fn of(value_at: impl FnMut(f64) -> Option<u64>) -> Self {
        Self(QUANTILES.map(value_at))
    }

    /// Returns a quantile, given in per cent; `None` where it is not among [`QUANTILES`] or there
    /// are too few samples.
    pub fn get(&self, percent: f64) -> Option<u64> {
        let mut all = self.iter();
        all.find(|(own, _)| own.total_cmp(&percent).is_eq())?.1
    }

    /// Returns the quantiles, each with its per cent.
    pub fn iter(&self) -> impl Iterator<Item = (f64, Option<u64>)> {
        QUANTILES.into_iter().zip(self.0)
    }
}

/// The quantiles by their names in files. Absent: too few samples to tell.
#[expect(clippy::struct_field_names, reason = "a file's names have units")]
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Named {
    p1_ns: Option<u64>,
    p25_ns: Option<u64>,
    p50_ns: Option<u64>,
    p75_ns: Option<u64>,
    p90_ns: Option<u64>,
    p95_ns: Option<u64>,
    p99_ns: Option<u64>,
    #[serde(rename = "p99_9_ns")]
    p999_ns: Option<u64>,
    #[serde(rename = "p99_99_ns")]
    p9999_ns: Option<u64>,
    #[serde(rename = "p99_999_ns")]
    p99999_ns: Option<u64>,
}

impl From<Named> for Quantiles {
    fn from(named: Named) -> Self {
        Self([
            named.p1_ns,
            named.p25_ns,
            named.p50_ns,
            named.p75_ns,
            named.p90_ns,
            named.p95_ns,
            named.p99_ns,
            named.p999_ns,
            named.p9999_ns,
            named.p99999_ns,
        ])
    }
}

impl Serialize for Quantiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |percent: f64| format!("p{percent}_ns").replace('.', "_");
        serializer.collect_map(self.iter().map(|(percent, value)| (name(percent), value)))
    }
}
