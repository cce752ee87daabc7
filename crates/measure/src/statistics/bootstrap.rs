//! Quantiles of histograms drawn with replacement: a block bootstrap.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::counts::{Counts, quantile};

/// Number of resamples.
const RESAMPLES: usize = 400;

/// Histograms that are drawn with replacement and added up: those of seconds, or of whole trials.
#[derive(Debug)]
pub struct Blocks {
    /// Every value of any block, ascending.
    values: Vec<u64>,
    /// The count of each value, block by block.
    rows: Vec<Vec<u64>>,
}

impl Blocks {
    /// Lays out `blocks` over the values that occur in any of them.
    pub fn new(blocks: &[&Counts]) -> Self {
        let mut values: Vec<u64> = blocks
            .iter()
            .flat_map(|block| block.iter().map(|(value, _)| value))
            .collect();
        values.sort_unstable();
        values.dedup();
        let row = |block: &&Counts| {
            let mut counts = vec![0; values.len()];
            for (value, count) in block.iter() {
                if let Ok(at) = values.binary_search(&value) {
                    counts[at] = count;
                }
            }
            counts
        };
        let rows = blocks.iter().map(row).collect();
        Self { values, rows }
    }

    /// Returns the quantile `q` of all blocks together.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.quantile_of(&self.sum(self.rows.iter()), q)
    }

    /// Returns the quantiles of each resample, resample by resample. The same blocks give the same
    /// answer.
    pub fn resampled<const N: usize>(&self, quantiles: [f64; N]) -> Vec<[Option<u64>; N]> {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let rows = self.rows.len() as u64;
        (0..RESAMPLES)
            .map(|_| {
                let drawn =
                    self.sum((0..rows).map(|_| &self.rows[(random.next_u64() % rows) as usize]));
                quantiles.map(|q| self.quantile_of(&drawn, q))
            })
            .collect()
    }

    fn quantile_of(&self, counts: &[u64], q: f64) -> Option<u64> {
        quantile(self.values.iter().copied().zip(counts.iter().copied()), q)
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
