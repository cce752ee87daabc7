//! A histogram of times, and the numbers that describe it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    counts::Counts,
    histogram::{Histogram, LONGEST},
    quantiles::{QUANTILES, Quantiles},
};

/// Samples that must lie beyond a quantile before it is shown: with q the distance to the nearer
/// end of the distribution, at least `10 / q` samples in all.
const BEYOND: f64 = 10.0;

/// The share of samples that the trimmed mean leaves out at each end.
const TRIM: f64 = 0.001;

/// The numbers that describe a histogram. Times are in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// The least; absent without samples, like all the others.
    #[serde(rename = "min_ns")]
    pub min: Option<u64>,
    /// The greatest.
    #[serde(rename = "max_ns")]
    pub max: Option<u64>,
    /// The arithmetic mean.
    #[serde(rename = "mean_ns")]
    pub mean: Option<f64>,
    /// The standard deviation.
    #[serde(rename = "sd_ns")]
    pub sd: Option<f64>,
    /// The mean without the lowest and the highest 0.1 % of the samples (tm99.9).
    #[serde(rename = "trimmed_mean_ns")]
    pub trimmed_mean: Option<f64>,
    /// Quantiles.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// The 95 % confidence interval of the median within the run, by ranks that vary over the
    /// seconds; absent where the run is too short for one.
    #[serde(
        rename = "p50_interval_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub p50_interval: Option<[u64; 2]>,
    /// That of the 99th percentile.
    #[serde(
        rename = "p99_interval_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub p99_interval: Option<[u64; 2]>,
    /// The names of those of these numbers that are lower bounds: requests without a reply, and
    /// times beyond the histogram's range, are in them with the time that they took at least.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub at_least: BTreeSet<String>,
}

impl Distribution {
    /// Describes a histogram.
    pub fn of(times: &Counts) -> Self {
        Self::censored(times, &Counts::default())
    }

    /// Describes a histogram of which some samples are `bounds`: the true ones are greater by an
    /// unknown amount.
    ///
    /// A quantile is a bound itself if it would grow should they all be infinite.
    pub fn censored(times: &Counts, bounds: &Counts) -> Self {
        let histogram = &times.to_histogram();
        let some = |value: u64| (!histogram.is_empty()).then_some(value);
        let some_f = |value: f64| (!histogram.is_empty()).then_some(value);
        Self {
            count: histogram.len(),
            min: some(histogram.min()),
            max: some(histogram.max()),
            mean: some_f(histogram.mean()),
            sd: some_f(histogram.stdev()),
            trimmed_mean: some_f(trimmed_mean(histogram)),
            quantiles: Quantiles::of(|percent| {
                let shown = is_backed(histogram.len(), percent);
                shown.then(|| histogram.value_at_percentile(percent))
            }),
            p50_interval: None,
            p99_interval: None,
            at_least: at_least(histogram, bounds),
        }
    }

    /// Returns true if the number of this name is a lower bound.
    pub fn is_bound(&self, name: &str) -> bool {
        self.at_least.contains(name)
    }

    /// Returns a quantile, given in per cent; `None` where it is not among [`QUANTILES`] or there
    /// are too few samples.
    pub fn quantile(&self, percent: f64) -> Option<u64> {
        self.quantiles.get(percent)
    }
}

/// Returns the names of the numbers that are lower bounds.
fn at_least(histogram: &Histogram, bounds: &Counts) -> BTreeSet<String> {
    let beyond = histogram.count_between(LONGEST, u64::MAX);
    if bounds.is_empty() && beyond == 0 {
        return BTreeSet::new();
    }
    let all = histogram.len();
    // Samples that are known to be at most `value`.
    let known = |value: u64| {
        let bounds = bounds.iter().take_while(|(bound, _)| *bound <= value);
        let bounds: u64 = bounds.map(|(_, count)| count).sum();
        histogram.count_between(0, value) - bounds.min(all)
    };
    let is_bound = |percent: f64| {
        let value = histogram.value_at_percentile(percent);
        let rank = (percent / 100.0 * all as f64).ceil() as u64;
        value >= LONGEST || known(value) < rank
    };
    let quantiles = QUANTILES.into_iter().filter(|percent| is_bound(*percent));
    let mut names: BTreeSet<String> = quantiles.map(name).collect();
    names.extend(["mean", "sd"].map(str::to_owned));
    if is_bound(100.0) {
        names.insert("max".to_owned());
    }
    if is_bound(100.0 * (1.0 - TRIM)) {
        names.insert("tm99.9".to_owned());
    }
    names
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

    fn of(values: &[u64]) -> Counts {
        values.iter().copied().collect()
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
    fn quantiles_that_reach_into_unanswered_requests_are_bounds() {
        let mut times = of(&vec![1_000_000; 960]);
        // Forty were given up after 5 ms to 200 ms.
        let waited = of(&(1..=40)
            .map(|number| 5_000_000 * number)
            .collect::<Vec<_>>());
        times.add(&waited);
        let censored = Distribution::censored(&times, &waited);
        let bounds: Vec<_> = censored.at_least.iter().map(String::as_str).collect();
        assert_eq!(
            bounds,
            [
                "max", "mean", "p99", "p99.9", "p99.99", "p99.999", "sd", "tm99.9"
            ]
        );
        assert_eq!(censored.quantile(95.0), Some(1_000_447));
        assert!(Distribution::of(&times).at_least.is_empty());
    }

    #[test]
    fn times_beyond_the_range_are_bounds() {
        let one = Distribution::of(&of(&[u64::MAX]));
        assert_eq!((one.count, one.is_bound("max")), (1, true));
    }
}
