//! Detection of the end of a run's transient.

use crate::statistics::change_point::change;

/// Observations in a batch.
const BATCH: usize = 5;

/// Minimum number of batches.
const FEWEST: usize = 6;

/// Looks in a row that must find the same end of the transient.
const PASSES: usize = 4;

/// Ends of the transient that differ by no more than so many observations are the same.
const SAME: usize = 2 * BATCH;

/// Finds the end of the transient in a series as it grows.
///
/// After each batch, MSER-5 looks at the whole series. The transient has ended when its end has
/// lain in the first half, at the same place, several times in a row, and nothing after it is a
/// change of level: a series that still rises moves the end along.
#[derive(Debug, Clone, Default)]
pub struct WarmUpDetector {
    series: Vec<f64>,
    /// The ends that were found in a row.
    ends: Vec<usize>,
}

impl WarmUpDetector {
    /// Adds an observation; returns the length of the transient, in observations, once it is known.
    pub fn add(&mut self, observation: f64) -> Option<usize> {
        self.series.push(observation);
        if !self.series.len().is_multiple_of(BATCH) {
            return None;
        }
        let Some(end) = mser5(&self.series) else {
            self.ends.clear();
            return None;
        };
        if self.ends.iter().any(|other| other.abs_diff(end) > SAME) {
            self.ends.clear();
        }
        self.ends.push(end);
        let is_steady = self.ends.len() >= PASSES && change(&self.series[end..]).is_none();
        is_steady.then_some(end)
    }
}

/// Returns the number of first observations that belong to the transient, by the rule MSER-5: in
/// batches of five, the number whose removal minimizes the standard error of the mean of the rest
/// (White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
/// simulation", 2000). `None` where that is half or more: no steady state has been seen yet.
pub fn mser5(observations: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = observations
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let n = batches.len();
    if n < FEWEST {
        return None;
    }
    let error = |cut: usize| {
        let rest = &batches[cut..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        rest.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count * count)
    };
    // Near the end so few are left that their agreement is chance.
    let cut = (0..=n - FEWEST / 2).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
    (cut * 2 < n).then_some(cut * BATCH)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::normal;

    /// Feeds rates of 100 ms, which rise for `ramp` of them to 1,000 and vary by 5 %; returns the
    /// end that was found, and when.
    fn detect(seed: u64, ramp: usize) -> Option<(usize, usize)> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut detector = WarmUpDetector::default();
        (0..600).find_map(|at| {
            let level = 1000.0 * (at as f64 / ramp.max(1) as f64).min(1.0);
            let level = if ramp == 0 { 1000.0 } else { level };
            Some((
                detector.add(level * (1.0 + 0.05 * normal(&mut random)))?,
                at,
            ))
        })
    }

    /// MSER-5 may cut more than the transient, never much less.
    #[test]
    fn a_ramp_is_found() {
        for ramp in [0, 10, 90] {
            let found: Vec<usize> = (0..100).map(|seed| detect(seed, ramp).unwrap().0).collect();
            let near = found.iter().filter(|end| end.abs_diff(ramp) <= 10).count();
            let early = found.iter().filter(|end| **end + 10 < ramp).count();
            assert!(near >= 70 && early <= 1, "{ramp}: {near}, {early} of 100");
        }
    }

    #[test]
    fn a_rate_that_rises_all_the_time_is_never_steady() {
        let steady = (0..100).filter(|seed| detect(*seed, 600).is_some()).count();
        assert!(steady <= 5, "{steady} of 100");
        assert_eq!(mser5(&[1.0; 29]), None);
    }
}
