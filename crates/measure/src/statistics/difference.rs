//! Means of repeated trials, and differences between them.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::{precision::Blocks, welch::Welch};

/// Differences less likely by chance than this are called differences.
pub const SIGNIFICANT: f64 = 0.05;

/// A mean with its 95 % confidence interval, by Student's t.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean, or another value that stands for all.
    pub mean: f64,
    /// Half the interval's width; absent with fewer than two values.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The mean of `values`, which are independent; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let moments = Moments::of(values)?;
        let half_width = moments
            .error()
            .and_then(|error| Some(error * t_quantile(moments.n - 1.0)?));
        Some(Self {
            mean: moments.mean,
            half_width,
        })
    }

    /// A quantile, in per cent, of all trials together, with its interval from whole trials drawn anew: what
    /// [`Difference::of_quantiles`] compares. `None` with a single trial.
    pub fn of_quantile<B: AsRef<[(u64, u64)]>>(trials: &[B], percent: f64) -> Option<Self> {
        let side = Side::of_quantile(trials, percent)?;
        Some(Self {
            mean: side.value,
            half_width: Some(side.error * t_quantile(side.n - 1.0)?),
        })
    }
}

/// What a comparison of two targets shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// The values do not show a difference; that is not to say that there is none.
    NoDifference,
}

/// How often whole trials are drawn anew.
const RESAMPLES: usize = 400;

/// The difference of two targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The second value less the first, as a share of the first.
    pub relative: f64,
    /// The 95 % confidence interval of that.
    pub interval: [f64; 2],
    /// The probability of a difference at least as large by chance alone, times the number of comparisons made
    /// together (Bonferroni), at most 1.
    pub p_value: f64,
    /// The first value and the second, in the unit they were given in: means, or quantiles over all trials.
    pub values: [f64; 2],
    /// Half the width of the 95 % confidence interval of the second less the first, in that unit.
    pub half_width: f64,
}

impl Difference {
    /// The difference of two means by Welch's t-test; one of `comparisons` measures looked at together. `None` with fewer
    /// than two values on either side, or where the first mean is 0.
    pub fn between(first: &[f64], second: &[f64], comparisons: usize) -> Option<Self> {
        let side = |values| {
            let moments = Moments::of(values)?;
            Some(Side {
                n: moments.n,
                value: moments.mean,
                error: moments.error()?,
            })
        };
        Self::welch(side(first)?, side(second)?, comparisons)
    }

    /// The difference of two quantiles over all of a side's trials, each given by its `(value, count)` in ascending
    /// order. A side's standard error comes from a block bootstrap that draws whole trials (Efron and Tibshirani, "An
    /// Introduction to the Bootstrap", 1993, chapter 6), made up for few of them; then as for means. `None` with fewer
    /// than two trials on either side, or without samples.
    pub fn of_quantiles<B: AsRef<[(u64, u64)]>>(
        first: &[B],
        second: &[B],
        percent: f64,
        comparisons: usize,
    ) -> Option<Self> {
        Self::welch(
            Side::of_quantile(first, percent)?,
            Side::of_quantile(second, percent)?,
            comparisons,
        )
    }

    fn welch(a: Side, b: Side, comparisons: usize) -> Option<Self> {
        let gap = Welch::compare(a, b)?;
        (gap.first != 0.0).then(|| Self {
            relative: (gap.second - gap.first) / gap.first,
            interval: gap.interval().map(|end| end / gap.first),
            p_value: (gap.p_value * comparisons as f64).min(1.0),
            values: [gap.first, gap.second],
            half_width: gap.half_width,
        })
    }

    /// What it shows, where `more_is_better` or less is.
    pub fn shown(self, more_is_better: bool) -> Finding {
        match self.p_value < SIGNIFICANT {
            false => Finding::NoDifference,
            true if (self.relative > 0.0) == more_is_better => Finding::Better,
            true => Finding::Worse,
        }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Trials, or the seconds of a single run.
    pub n: f64,
    pub value: f64,
    /// The value's standard error.
    pub error: f64,
}

impl Side {
    pub fn of_quantile<B: AsRef<[(u64, u64)]>>(trials: &[B], percent: f64) -> Option<Self> {
        let n = trials.len() as f64;
        let blocks = Blocks::new(trials);
        let quantile = |counts: &[u64]| {
            blocks
                .quantile(counts, percent / 100.0)
                .map(|value| value as f64)
        };
        // The same trials give the same answer.
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let drawn: Option<Vec<f64>> = (0..RESAMPLES)
            .map(|_| quantile(&blocks.draw(&mut random)))
            .collect();
        let spread = Moments::of(&drawn?)?.variance?.sqrt();
        // Draws from n trials vary by a factor of (n - 1) / n less than trials do.
        (trials.len() > 1).then_some(Self {
            n,
            value: quantile(&blocks.whole())?,
            error: spread * (n / (n - 1.0)).sqrt(),
        })
    }
}

pub struct Moments {
    pub n: f64,
    pub mean: f64,
    /// The variance of the values; absent with fewer than two.
    pub variance: Option<f64>,
}

impl Moments {
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = (n > 0.0).then(|| values.iter().sum::<f64>() / n)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            n,
            mean,
            variance: (n > 1.0).then(|| squares / (n - 1.0)),
        })
    }

    /// The standard error of the mean.
    pub fn error(&self) -> Option<f64> {
        self.variance.map(|variance| (variance / self.n).sqrt())
    }
}

/// The factor that makes a standard error half a 95 % interval.
pub fn t_quantile(freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom)
        .ok()
        .map(|t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn a_mean_has_students_interval() {
        // t(0.975, 4) = 2.7764, and the standard error is 0.7071.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(near(estimate.mean, 3.0) && near(estimate.half_width.unwrap(), 1.9632));
        assert_eq!(Estimate::of(&[1.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    /// The values of a textbook example of Welch's test: t = -2.46, 24.99 degrees of freedom, p = 0.021.
    #[test]
    fn a_difference_has_welchs_p_value() {
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5,
            24.4,
        ];
        let difference = Difference::between(&a, &b, 1).unwrap();
        assert!(
            (difference.p_value - 0.021).abs() < 5e-4,
            "{}",
            difference.p_value
        );
        assert_eq!(difference.shown(true), Finding::Better);
        assert_eq!(difference.shown(false), Finding::Worse);
        assert!(difference.interval[0] > 0.0 && difference.interval[0] < difference.relative);
        let [first, second] = difference.values;
        assert!(
            near(first, 20.82) && near(second, 22.9867),
            "{first} {second}"
        );
        assert!(near(
            (second - first - difference.half_width) / first,
            difference.interval[0]
        ));
        let same = Difference::between(&a, &a, 1).unwrap();
        assert_eq!(
            (same.relative, same.p_value, same.shown(true)),
            (0.0, 1.0, Finding::NoDifference)
        );
        assert_eq!(Difference::between(&a, &[1.0], 1), None);
    }

    #[test]
    fn quantiles_differ_by_more_than_their_trials_do() {
        // Each trial's values lie around a level of its own.
        let trials = |levels: [u64; 6]| {
            levels.map(|level| vec![(level, 90), (level + 50, 9), (level * 2, 1)])
        };
        let a = trials([100, 104, 98, 101, 97, 103]);
        let b = trials([121, 118, 125, 119, 123, 120]);
        let difference = Difference::of_quantiles(&a, &b, 50.0, 3).unwrap();
        assert_eq!(difference.shown(false), Finding::Worse);
        assert!(
            difference.interval[0] > 0.1 && difference.interval[1] < 0.35,
            "{difference:?}"
        );
        let same = Difference::of_quantiles(&a, &a, 50.0, 3).unwrap();
        assert_eq!(
            (same.relative, same.p_value, same.shown(false)),
            (0.0, 1.0, Finding::NoDifference)
        );
        let near =
            Difference::of_quantiles(&a, &trials([102, 99, 105, 100, 98, 101]), 50.0, 3).unwrap();
        assert_eq!(near.shown(false), Finding::NoDifference, "{near:?}");
        assert_eq!(Difference::of_quantiles(&a[..1], &b, 50.0, 3), None);
    }

    /// The chance of a false alarm, on trials whose levels are drawn from one distribution, is not above what is said.
    #[test]
    fn bootstrapped_differences_of_equals_are_rare() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut trials = || -> Vec<Vec<(u64, u64)>> {
            (0..5)
                .map(|_| {
                    let level = (0..12)
                        .map(|_| 1000 + rand_chacha::rand_core::Rng::next_u64(&mut random) % 400)
                        .sum();
                    vec![(level, 100)]
                })
                .collect()
        };
        let alarms = (0..200)
            .filter(|_| {
                let difference = Difference::of_quantiles(&trials(), &trials(), 50.0, 1).unwrap();
                difference.shown(true) != Finding::NoDifference
            })
            .count();
        assert!(alarms <= 16, "{alarms} of 200");
    }
}
