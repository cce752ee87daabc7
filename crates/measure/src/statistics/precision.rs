//! Error bars within one run: the variation to expect if it were repeated under the same
//! conditions.

use serde::{Deserialize, Serialize};

use crate::{
    counts::Counts,
    statistics::{bootstrap::Blocks, estimate::Estimate},
};

/// Minimum number of seconds from which variation is estimated.
const FEWEST: usize = 5;

/// 95 % confidence intervals; absent where the run has fewer than five whole seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Precision {
    /// Half the width of the rate's interval, in requests/s: batch means over the seconds, by
    /// Student's t.
    pub rate_half_width: Option<f64>,
    /// Interval of the median response time, in nanoseconds: a block bootstrap over the seconds.
    pub p50: Option<[u64; 2]>,
    /// Interval of the 99th percentile of the response time, in nanoseconds.
    pub p99: Option<[u64; 2]>,
}

impl Precision {
    /// Returns the intervals, from the rate and the response times of each whole second.
    pub fn of(rates: &[f64], seconds: &[&Counts]) -> Self {
        if rates.len() < FEWEST {
            return Self::default();
        }
        let [p50, p99] = bootstrap(seconds, [0.5, 0.99]);
        Self {
            rate_half_width: Estimate::of(rates).and_then(|rate| rate.half_width),
            p50,
            p99,
        }
    }
}

/// Returns the intervals of quantiles when whole seconds are drawn with replacement.
fn bootstrap(seconds: &[&Counts], quantiles: [f64; 2]) -> [Option<[u64; 2]>; 2] {
    let drawn = Blocks::new(seconds).resampled(quantiles);
    [0, 1].map(|at| {
        let mut found: Vec<u64> = drawn.iter().filter_map(|drawn| drawn[at]).collect();
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
        let level: Vec<Counts> = (0..10).map(|_| vec![(100, 50), (200, 50)].into()).collect();
        let jumpy: Vec<Counts> = (0..10)
            .map(|at| vec![(100 + at * 50, 100)].into())
            .collect();
        let of =
            |seconds: &[Counts]| Precision::of(&[1.0; 10], &seconds.iter().collect::<Vec<_>>());
        assert_eq!(of(&level).p99, Some([200, 200]));
        let [low, high] = of(&jumpy).p50.unwrap();
        assert!(low < 325 && 325 <= high, "{low}..{high}");
        assert_eq!(of(&level).rate_half_width, Some(0.0));
        assert_eq!(Precision::of(&[1.0; 4], &[]), Precision::default());
    }
}
