//! Differences between two targets.

use serde::{Deserialize, Serialize};

use crate::statistics::{side::Side, welch::Welch};

/// Significance level: differences less likely by chance than this are called differences.
pub const SIGNIFICANT: f64 = 0.05;

/// The outcome of comparing two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// The values do not show a difference, which does not prove that there is none.
    NoDifference,
}

/// The difference of two targets, relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The second value less the first, as a share of the first.
    pub relative: f64,
    /// The 95 % confidence interval of `relative`.
    pub interval: [f64; 2],
    /// The probability of a difference at least as large by chance alone, times the number of
    /// comparisons made together (Bonferroni), at most 1.
    pub p_value: f64,
    /// The first and the second value, in their own unit.
    pub values: [f64; 2],
    /// Half the width of the 95 % confidence interval of the second less the first, in that unit.
    pub half_width: f64,
}

impl Difference {
    /// Compares two values by Welch's t-test, as one of `comparisons` made together. `None` where
    /// the first value is 0.
    pub fn between(first: Side, second: Side, comparisons: usize) -> Option<Self> {
        let welch = Welch::compare(first, second)?;
        (welch.first != 0.0).then(|| Self {
            relative: (welch.second - welch.first) / welch.first,
            interval: welch.interval().map(|end| end / welch.first),
            p_value: (welch.p_value * comparisons as f64).min(1.0),
            values: [welch.first, welch.second],
            half_width: welch.half_width,
        })
    }

    /// Compares the means of two sets of values. `None` with fewer than two values on either side,
    /// or where the first mean is 0.
    pub fn of_means(first: &[f64], second: &[f64], comparisons: usize) -> Option<Self> {
        Self::between(Side::of_mean(first)?, Side::of_mean(second)?, comparisons)
    }

    /// Returns the verdict on the second target.
    pub fn finding(self, more_is_better: bool) -> Finding {
        match self.p_value < SIGNIFICANT {
            false => Finding::NoDifference,
            true if (self.relative > 0.0) == more_is_better => Finding::Better,
            true => Finding::Worse,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::{counts::Counts, statistics::estimate::Estimate};

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

    /// The values of a textbook example of Welch's test: t = -2.46, 24.99 degrees of freedom, p =
    /// 0.021.
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
        let difference = Difference::of_means(&a, &b, 1).unwrap();
        assert!(
            (difference.p_value - 0.021).abs() < 5e-4,
            "{}",
            difference.p_value
        );
        assert_eq!(difference.finding(true), Finding::Better);
        assert_eq!(difference.finding(false), Finding::Worse);
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
        let same = Difference::of_means(&a, &a, 1).unwrap();
        assert_eq!(
            (same.relative, same.p_value, same.finding(true)),
            (0.0, 1.0, Finding::NoDifference)
        );
        assert_eq!(Difference::of_means(&a, &[1.0], 1), None);
    }

    #[test]
    fn quantiles_differ_by_more_than_their_trials_do() {
        // Each trial's values lie around a level of its own.
        let trials = |levels: [u64; 6]| {
            levels.map(|level| Counts::from(vec![(level, 90), (level + 50, 9), (level * 2, 1)]))
        };
        let a = trials([100, 104, 98, 101, 97, 103]);
        let b = trials([121, 118, 125, 119, 123, 120]);
        let difference = of_quantiles(&a, &b, 3).unwrap();
        assert_eq!(difference.finding(false), Finding::Worse);
        assert!(
            difference.interval[0] > 0.1 && difference.interval[1] < 0.35,
            "{difference:?}"
        );
        let same = of_quantiles(&a, &a, 3).unwrap();
        assert_eq!(
            (same.relative, same.p_value, same.finding(false)),
            (0.0, 1.0, Finding::NoDifference)
        );
        let near = of_quantiles(&a, &trials([102, 99, 105, 100, 98, 101]), 3).unwrap();
        assert_eq!(near.finding(false), Finding::NoDifference, "{near:?}");
        assert_eq!(of_quantiles(&a[..1], &b, 3), None);
    }

    fn of_quantiles(first: &[Counts], second: &[Counts], comparisons: usize) -> Option<Difference> {
        let side = |trials: &[Counts]| Side::of_quantile(&trials.iter().collect::<Vec<_>>(), 50.0);
        Difference::between(side(first)?, side(second)?, comparisons)
    }

    /// The chance of a false alarm, on trials whose levels are drawn from one distribution, is not
    /// above what is said.
    #[test]
    fn bootstrapped_differences_of_equals_are_rare() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut trials = || -> Vec<Counts> {
            (0..5)
                .map(|_| {
                    let level = (0..12).map(|_| 1000 + random.next_u64() % 400).sum();
                    Counts::from(vec![(level, 100)])
                })
                .collect()
        };
        let alarms = (0..200)
            .filter(|_| {
                let difference = of_quantiles(&trials(), &trials(), 1).unwrap();
                difference.finding(true) != Finding::NoDifference
            })
            .count();
        assert!(alarms <= 16, "{alarms} of 200");
    }
}
