//! Error bars within one run: how much its numbers would vary if it were run again under the same conditions.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use serde::{Deserialize, Serialize};

use crate::compare::Estimate;

/// The fewest intervals that tell anything about variation.
const FEWEST: usize = 5;

/// How often the intervals are drawn anew.
const RESAMPLES: usize = 400;

/// 95 % confidence intervals; absent where the run has fewer than five whole seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half the width of the rate's interval, in requests/s: batch means over the seconds, by Student's t.
    pub rate_half_width: Option<f64>,
    /// Of the median response time, in nanoseconds: the seconds' histograms drawn anew (a block bootstrap).
    pub p50: Option<[u64; 2]>,
    /// Of its 99th percentile.
    pub p99: Option<[u64; 2]>,
}

impl Precision {
    /// From the rates and the response times, as `(value, count)` ascending, of each whole second.
    pub(crate) fn of(rates: &[f64], seconds: &[&[(u64, u64)]]) -> Self {
        if rates.len() < FEWEST {
            return Self::default();
        }
        let [p50, p99] = bootstrap(seconds, [0.5, 0.99]);
        Self { rate_half_width: Estimate::of(rates).and_then(|rate| rate.half_width), p50, p99 }
    }
}

/// The intervals of quantiles when whole seconds are drawn with replacement.
fn bootstrap(seconds: &[&[(u64, u64)]], quantiles: [f64; 2]) -> [Option<[u64; 2]>; 2] {
    let mut values: Vec<u64> = seconds.iter().flat_map(|second| second.iter().map(|(value, _)| *value)).collect();
    values.sort_unstable();
    values.dedup();
    if values.is_empty() {
        return [None; 2];
    }
    let row = |second: &&[(u64, u64)]| {
        let mut counts = vec![0; values.len()];
        for (value, count) in *second {
            if let Ok(at) = values.binary_search(value) {
                counts[at] = *count;
            }
        }
        counts
    };
    let rows: Vec<Vec<u64>> = seconds.iter().map(row).collect();
    // The same samples give the same interval.
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..RESAMPLES {
        let mut sum = vec![0; values.len()];
        for _ in 0..rows.len() {
            let drawn = &rows[(random.next_u64() % rows.len() as u64) as usize];
            for (sum, count) in sum.iter_mut().zip(drawn) {
                *sum += count;
            }
        }
        let total: u64 = sum.iter().sum();
        for (found, q) in found.iter_mut().zip(quantiles) {
            let rank = ((q * total as f64).ceil() as u64).max(1);
            let mut seen = 0;
            let at = sum.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            found.extend(at.map(|at| values[at]));
        }
    }
    found.map(|mut found| {
        found.sort_unstable();
        let last = found.len().checked_sub(1)?;
        Some([found[last * 25 / 1000], found[last * 975 / 1000]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_quantile_and_is_wider_where_seconds_differ() {
        let level: Vec<Vec<(u64, u64)>> = (0..10).map(|_| vec![(100, 50), (200, 50)]).collect();
        let jumpy: Vec<Vec<(u64, u64)>> = (0..10).map(|at| vec![(100 + at * 50, 100)]).collect();
        let of = |seconds: &[Vec<(u64, u64)>]| {
            Precision::of(&[1.0; 10], &seconds.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        assert_eq!(of(&level).p99, Some([200, 200]));
        let [low, high] = of(&jumpy).p50.unwrap();
        assert!(low < 325 && 325 <= high, "{low}..{high}");
        assert_eq!(of(&level).rate_half_width, Some(0.0));
        assert_eq!(Precision::of(&[1.0; 4], &[]), Precision::default());
    }
}
