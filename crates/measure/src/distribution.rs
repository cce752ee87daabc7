//! A histogram of times, and the numbers that describe it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// The quantiles that every summary has, in per cent.
pub const QUANTILES: [f64; 10] = [1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// Samples that must lie beyond a quantile before it is shown: with q the distance to the nearer
/// end of the distribution, at least `10 / q` samples in all.
const BEYOND: f64 = 10.0;

/// The share of samples that the trimmed mean leaves out at each end.
const TRIM: f64 = 0.001;

/// The numbers that describe a histogram. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// The least; absent without samples, like all the others.
    pub min: Option<u64>,
    /// The greatest.
    pub max: Option<u64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The standard deviation.
    pub sd: Option<f64>,
    /// The mean without the lowest and the highest 0.1 % of the samples (tm99.9).
    pub trimmed_mean: Option<f64>,
    /// Quantiles by name ("p50", "p99.9"); null where there are too few samples to tell.
    pub quantiles: BTreeMap<String, Option<u64>>,
}

impl Distribution {
    /// Describes a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let some = |value: u64| (!histogram.is_empty()).then_some(value);
        let some_f = |value: f64| (!histogram.is_empty()).then_some(value);
        Self {
            count: histogram.len(),
            min: some(histogram.min()),
            max: some(histogram.max()),
            mean: some_f(histogram.mean()),
            sd: some_f(histogram.stdev()),
            trimmed_mean: some_f(trimmed_mean(histogram)),
            quantiles: QUANTILES
                .iter()
                .map(|&percent| {
                    let shown = is_backed(histogram.len(), percent);
                    (
                        name(percent),
                        shown.then(|| histogram.value_at_percentile(percent)),
                    )
                })
                .collect(),
        }
    }

    /// Returns a quantile, given in per cent; `None` where it is not among [`QUANTILES`] or there
    /// are too few samples.
    pub fn quantile(&self, percent: f64) -> Option<u64> {
        self.quantiles.get(&name(percent)).copied().flatten()
    }
}

/// Returns a quantile's name: `p99.9`.
fn name(percent: f64) -> String {
    format!("p{percent}")
}

/// Returns true if `count` samples are enough for a quantile, given in per cent.
pub fn is_backed(count: u64, percent: f64) -> bool {
    let tail = percent.min(100.0 - percent) / 100.0;
    // A hair of tolerance: 100 - 99.9 is not exactly 0.1.
    count as f64 * tail >= BEYOND * (1.0 - 1e-9)
}

/// Returns the number of samples that a quantile, in per cent, takes.
pub fn samples_for(percent: f64) -> u64 {
    (BEYOND / (percent.min(100.0 - percent) / 100.0) * (1.0 - 1e-9)).ceil() as u64
}

/// Returns the mean of the samples between the quantiles [`TRIM`] and 1 - [`TRIM`]; a value at the
/// border counts in part.
fn trimmed_mean(histogram: &Histogram) -> f64 {
    let total = histogram.len() as f64;
    let (low, high) = (total * TRIM, total * (1.0 - TRIM));
    let mut below = 0.0;
    let mut sum = 0.0;
    for value in histogram.iter_recorded() {
        let upto = below + value.count_at_value() as f64;
        let inside = (upto.min(high) - f64::max(below, low)).max(0.0);
        sum += inside * histogram.median_equivalent(value.value_iterated_to()) as f64;
        below = upto;
    }
    sum / (high - low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::{histogram, record};

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = histogram();
        for &value in values {
            record(&mut histogram, value);
        }
        histogram
    }

    proptest! {
        /// The nearest-rank quantile of the sorted samples is the exact one.
        #[test]
        fn quantiles_are_within_a_thousandth_of_the_exact_ones(
            mut values in prop::collection::vec(1_u64..60_000_000_000, 1000..3000),
        ) {
            let distribution = Distribution::of(&of(&values));
            values.sort_unstable();
            for percent in [1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0] {
                let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
                let (exact, shown) = (values[rank - 1] as f64, distribution.quantile(percent).unwrap() as f64);
                prop_assert!((shown - exact).abs() <= exact * 0.001, "p{percent}: {shown} for {exact}");
            }
        }

        #[test]
        fn a_histogram_survives_the_file(values in prop::collection::vec(1_u64..60_000_000_000, 0..200)) {
            let _histogram = of(&values);

        }

        #[test]
        fn the_trimmed_mean_is_the_mean_of_the_sorted_middle(
            mut values in prop::collection::vec(1_u64..1_000_000_000, 2000..2001),
        ) {
            let trimmed = Distribution::of(&of(&values)).trimmed_mean.unwrap();
            values.sort_unstable();
            let middle = &values[2..1998];
            let exact = middle.iter().sum::<u64>() as f64 / middle.len() as f64;
            prop_assert!((trimmed - exact).abs() <= exact * 0.001, "{trimmed} for {exact}");
        }
    }

    #[test]
    fn a_quantile_needs_samples_beyond_it() {
        let distribution = Distribution::of(&of(&vec![5; 999]));
        assert_eq!(distribution.quantile(95.0), Some(5));
        assert_eq!(distribution.quantile(99.0), None);
        assert_eq!(distribution.quantile(1.0), None);
        assert_eq!(
            Distribution::of(&of(&vec![5; 10_000])).quantile(99.9),
            Some(5)
        );
        assert_eq!(Distribution::of(&of(&[])).mean, None);
    }

    #[test]
    fn times_beyond_the_range_are_kept_at_its_end() {
        assert_eq!(Distribution::of(&of(&[u64::MAX])).count, 1);
    }
}
