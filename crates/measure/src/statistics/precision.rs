//! Error bars within one run: how much its numbers would vary if it were run again under the same conditions.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use serde::{Deserialize, Serialize};

use crate::statistics::difference::Estimate;

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
    pub fn of(rates: &[f64], seconds: &[Vec<(u64, u64)>]) -> Self {
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

/// The intervals of quantiles when whole seconds are drawn with replacement.
fn bootstrap(seconds: &[Vec<(u64, u64)>], quantiles: [f64; 2]) -> [Option<[u64; 2]>; 2] {
    let blocks = Blocks::new(seconds);
    // The same samples give the same interval.
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..RESAMPLES {
        let drawn = blocks.draw(&mut random);
        for (found, q) in found.iter_mut().zip(quantiles) {
            found.extend(blocks.quantile(&drawn, q));
        }
    }
    found.map(|mut found| {
        found.sort_unstable();
        let last = found.len().checked_sub(1)?;
        Some([found[last * 25 / 1000], found[last * 975 / 1000]])
    })
}

/// Histograms to be drawn with replacement and added up: of seconds, or of whole trials.
#[derive(Debug)]
pub struct Blocks {
    /// Every value of any block, ascending.
    values: Vec<u64>,
    /// How often each occurs, block by block.
    rows: Vec<Vec<u64>>,
}

impl Blocks {
    /// From the `(value, count)` of each block, ascending.
    pub fn new<B: AsRef<[(u64, u64)]>>(blocks: &[B]) -> Self {
        let mut values: Vec<u64> = blocks
            .iter()
            .flat_map(|block| block.as_ref().iter().map(|(value, _)| *value))
            .collect();
        values.sort_unstable();
        values.dedup();
        let row = |block: &B| {
            let mut counts = vec![0; values.len()];
            for (value, count) in block.as_ref() {
                if let Ok(at) = values.binary_search(value) {
                    counts[at] = *count;
                }
            }
            counts
        };
        let rows = blocks.iter().map(row).collect();
        Self { values, rows }
    }

    /// The counts of all blocks together.
    pub fn whole(&self) -> Vec<u64> {
        self.sum(self.rows.iter())
    }

    /// The counts of as many blocks as there are, each drawn from all.
    pub fn draw(&self, random: &mut ChaCha8Rng) -> Vec<u64> {
        let rows = self.rows.len() as u64;
        self.sum((0..rows).map(|_| &self.rows[(random.next_u64() % rows) as usize]))
    }

    /// The smallest value that a share `q` of `counts` does not exceed; `None` without any.
    pub fn quantile(&self, counts: &[u64], q: f64) -> Option<u64> {
        let total: u64 = counts.iter().sum();
        let rank = ((q * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let at = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        at.map(|at| self.values[at])
    }

    fn sum<'a>(&self, rows: impl Iterator<Item = &'a Vec<u64>>) -> Vec<u64> {
        let mut sum = vec![0; self.values.len()];
        for row in rows {
            for (sum, count) in sum.iter_mut().zip(row) {
                *sum += count;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_quantile_and_is_wider_where_seconds_differ() {
        let level: Vec<Vec<(u64, u64)>> = (0..10).map(|_| vec![(100, 50), (200, 50)]).collect();
        let jumpy: Vec<Vec<(u64, u64)>> = (0..10).map(|at| vec![(100 + at * 50, 100)]).collect();
        let of = |seconds: &[Vec<(u64, u64)>]| Precision::of(&[1.0; 10], seconds);
        assert_eq!(of(&level).p99, Some([200, 200]));
        let [low, high] = of(&jumpy).p50.unwrap();
        assert!(low < 325 && 325 <= high, "{low}..{high}");
        assert_eq!(of(&level).rate_half_width, Some(0.0));
        assert_eq!(Precision::of(&[1.0; 4], &[]), Precision::default());
    }
}
