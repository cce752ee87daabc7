//! A test for two levels in a distribution of times.

use crate::counts::Counts;

/// The width of a bin, on the natural logarithm: 5 %.
const BIN: f64 = 0.05;

/// Minimum share of the samples at each level.
const SHARE: f64 = 0.05;

/// Levels are at least this many times apart.
const APART: f64 = 1.5;

/// Maximum density between the levels, as a share of that at the lower peak.
const VALLEY: f64 = 0.2;

/// Minimum number of samples at the lower peak: below it, a valley may be chance.
const PEAK: f64 = 100.0;

/// Two levels of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// The median of the samples at the lower level.
    pub low: u64,
    /// The median of the samples at the higher level.
    pub high: u64,
    /// The share of samples at the higher level.
    pub high_share: f64,
}

/// Returns the two levels of a distribution with a deep valley between them; `None` where there
/// is one level, or there are too few samples to tell.
///
/// Each of two peaks of the histogram of logarithms, in bins of 5 % smoothed over three, must be at
/// least five times as high as the lowest bin between them. A tail, however long, has no such
/// valley.
pub fn modes(times: &Counts) -> Option<Modes> {
    let bin = |time: u64| ((time.max(1) as f64).ln() / BIN) as usize;
    let mut bins = vec![0.0; bin(times.max()?) + 2];
    for (time, count) in times.iter() {
        bins[bin(time)] += count as f64;
    }
    let smooth: Vec<f64> = (0..bins.len())
        .map(|at| {
            let near = &bins[at.saturating_sub(1)..(at + 2).min(bins.len())];
            near.iter().sum::<f64>() / 3.0
        })
        .collect();
    let main = (0..smooth.len()).max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))?;
    // The second peak is the one that is highest above the valley between it and the first.
    let valley = |peak: usize| {
        let (from, to) = (peak.min(main), peak.max(main));
        (from..=to).min_by(|a, b| smooth[*a].total_cmp(&smooth[*b]))
    };
    let depth = |peak: &usize| smooth[*peak] - valley(*peak).map_or(0.0, |at| smooth[at]);
    let second = (0..smooth.len()).max_by(|a, b| depth(a).total_cmp(&depth(b)))?;
    let split = valley(second)?;
    if smooth[second] < PEAK || smooth[split] > smooth[second] * VALLEY {
        return None;
    }
    let side = |is_high: bool| {
        let counts = times
            .iter()
            .filter(|(time, _)| (bin(*time) > split) == is_high);
        Counts::from(counts.collect::<Vec<_>>())
    };
    let [low, high] = [side(false), side(true)];
    let high_share = high.len() as f64 / times.len() as f64;
    let modes = Modes {
        low: low.quantile(0.5)?,
        high: high.quantile(0.5)?,
        high_share,
    };
    let apart = modes.high as f64 >= APART * modes.low as f64;
    (apart && (SHARE..=1.0 - SHARE).contains(&high_share)).then_some(modes)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::{
        histogram::{histogram, record},
        statistics::simulation::{exponential, normal, uniform},
    };

    /// Draws 20,000 times.
    fn times(seed: u64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> Counts {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut drawn = histogram();
        for _ in 0..20_000 {
            record(&mut drawn, draw(&mut random) as u64);
        }
        Counts::from(&drawn)
    }

    #[test]
    fn two_levels_are_found_from_a_tenth_of_the_samples_on() {
        for seed in 0..50 {
            let share = [0.1, 0.5, 0.9][seed as usize % 3];
            let both = times(seed, |random| {
                let is_high = uniform(random) < share;
                let level = if is_high { 60_000.0 } else { 15_000.0 };
                level * (0.15 * normal(random)).exp()
            });
            let modes = modes(&both).unwrap();
            assert!((modes.high_share - share).abs() < 0.02, "{modes:?}");
            assert!(modes.low.abs_diff(15_000) < 500 && modes.high.abs_diff(60_000) < 2000);
        }
    }

    #[test]
    fn one_level_is_one_however_long_its_tail() {
        for seed in 0..50 {
            for sigma in [0.02, 0.3, 1.5] {
                let one = times(seed, |random| 50_000.0 * (sigma * normal(random)).exp());
                assert_eq!(modes(&one), None, "{sigma}");
            }
            let tail = times(seed, |random| 20_000.0 * uniform(random).powf(-0.7));
            assert_eq!(modes(&tail), None);
            let waits = times(seed, |random| 5e6 * exponential(random));
            assert_eq!(modes(&waits), None);
        }
        assert_eq!(modes(&Counts::default()), None);
    }
}
