//! Intervals that hold their values together, however often one looks at them.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability that one of the intervals does not hold its value.
const ERROR: f64 = 0.05;

/// The variance, before anything is measured, of the effect in units of the standard deviation of a trial. With
/// more, intervals at any time are narrower after a few trials, and wider after many.
const EFFECT: f64 = 3.0;

/// A number of intervals that hold their values together with a probability of 95 % (Bonferroni).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// The number of intervals, at least 1.
    pub intervals: usize,
    /// True where one looks at them after every trial, and ends when one has seen enough: they hold at all
    /// looks together.
    pub at_any_time: bool,
}

impl Together {
    /// A single interval of a fixed number of trials.
    pub const ONE: Self = Self::fixed(1);

    /// Returns this number of intervals of a fixed number of trials.
    pub const fn fixed(intervals: usize) -> Self {
        Self {
            intervals,
            at_any_time: false,
        }
    }

    /// Returns the factor that makes a standard error half an interval; `None` where no finite interval holds
    /// the value, as with a few trials at any time.
    pub fn factor(self, freedom: f64) -> Option<f64> {
        self.factor_at(freedom, ERROR)
    }

    /// Returns the factor with which a value is shown to be on one side of a limit.
    pub fn one_sided(self, freedom: f64) -> Option<f64> {
        self.factor_at(freedom, 2.0 * ERROR)
    }

    fn factor_at(self, freedom: f64, error: f64) -> Option<f64> {
        let error = error / self.intervals.max(1) as f64;
        if self.at_any_time {
            at_any_time(freedom, error)
        } else {
            Some(students(freedom)?.inverse_cdf(1.0 - error / 2.0))
        }
    }

    /// Returns the probability of a value at least this number of standard errors from 0 by chance alone, times
    /// the number of intervals, at most 1.
    pub fn p_value(self, freedom: f64, errors: f64) -> Option<f64> {
        let p = if self.at_any_time {
            evidence(freedom, errors).recip()
        } else {
            2.0 * students(freedom)?.sf(errors.abs())
        };
        Some((p * self.intervals.max(1) as f64).min(1.0))
    }
}

fn students(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

/// Returns the evidence that a mean is not 0: the Bayes factor of a t-test whose effect is normal with variance
/// `EFFECT` (Gönen, Johnson, Lu and Westfall, "The Bayesian two-sample t test", 2005). Where it is 0, the
/// evidence exceeds 1 / p at any time with a probability of at most p, whatever the spread: it is a
/// nonnegative martingale (Pérez-Ortiz, Lardy, de Heide and Grünwald, "E-statistics, group invariance and
/// anytime-valid testing", 2024).
fn evidence(freedom: f64, errors: f64) -> f64 {
    let n = freedom + 1.0;
    let spread = 1.0 + n * EFFECT;
    let square = errors.powi(2) / freedom;
    let ratio = (1.0 + square) / (1.0 + square / spread);
    ratio.powf(n / 2.0) / spread.sqrt()
}

/// Returns the number of standard errors at which the evidence is 1 / `error`; `None` where it never is.
fn at_any_time(freedom: f64, error: f64) -> Option<f64> {
    let n = freedom + 1.0;
    let spread = 1.0 + n * EFFECT;
    let ratio = (spread.sqrt() / error).powf(2.0 / n);
    let square = (ratio - 1.0) / (1.0 - ratio / spread);
    (freedom > 0.0 && ratio < spread).then(|| (freedom * square).sqrt())
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::{
        moments::Moments,
        simulation::{exponential, normal, uniform},
    };

    const AT_ANY_TIME: Together = Together {
        intervals: 1,
        at_any_time: true,
    };

    #[test]
    fn factors_are_those_of_students_t() {
        let near = |factor: Option<f64>, expected: f64| (factor.unwrap() - expected).abs() < 1e-4;
        assert!(near(Together::ONE.factor(4.0), 2.7764));
        assert!(near(Together::fixed(2).factor(4.0), 3.4954));
        assert!(near(Together::ONE.one_sided(4.0), 2.1318));
        assert!(near(Together::ONE.p_value(4.0, -2.7764), 0.05));
        assert!(near(Together::fixed(2).p_value(4.0, 3.4954), 0.05));
        assert_eq!(Together::fixed(30).p_value(4.0, 2.7764), Some(1.0));
        assert_eq!(Together::ONE.factor(0.0), None);
    }

    #[test]
    fn a_value_at_the_end_of_its_interval_has_the_p_value_of_it() {
        for freedom in [4.0, 19.0, 300.0] {
            for intervals in [1, 12] {
                let own = Together {
                    intervals,
                    ..AT_ANY_TIME
                };
                let factor = own.factor(freedom).unwrap();
                let p = own.p_value(freedom, factor).unwrap();
                assert!((p - 0.05).abs() < 1e-9, "{freedom}, {intervals}: {p}");
                assert!(factor > Together::fixed(intervals).factor(freedom).unwrap());
            }
        }
        assert_eq!(AT_ANY_TIME.factor(1.0), None);
    }

    /// Returns the share of 2,000 simulated series of 200 values around 0, in per cent, whose interval holds 0
    /// at every look from the third value on.
    fn coverage(seed: u64, mut next: impl FnMut(&mut ChaCha8Rng, f64) -> f64) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let holds = |values: &[f64]| {
            let own = Moments::of(values).unwrap();
            let factor = AT_ANY_TIME.factor(own.n - 1.0);
            factor.is_none_or(|factor| own.mean.abs() <= factor * own.error().unwrap())
        };
        let held = (0..2000).filter(|_| {
            let mut values = Vec::new();
            (0..200).all(|_| {
                let last = values.last().copied().unwrap_or_default();
                values.push(next(&mut random, last));
                values.len() < 3 || holds(&values)
            })
        });
        held.count() as f64 / 20.0
    }

    /// The table of docs/methodology.md.
    #[test]
    fn all_looks_together_are_covered_as_documented() {
        type Next = fn(&mut ChaCha8Rng, f64) -> f64;
        let cases: [(&str, Next, f64); 6] = [
            ("normal", |random, _| normal(random), 97.05),
            ("uniform", |random, _| uniform(random) - 0.5, 94.35),
            ("exponential", |random, _| exponential(random) - 1.0, 85.8),
            (
                "ten times as slow in one of ten",
                |random, _| 0.1 * normal(random) + f64::from(u8::from(uniform(random) < 0.1)) - 0.1,
                68.0,
            ),
            (
                "AR(1), 0.2",
                |random, last| 0.2 * last + normal(random),
                90.7,
            ),
            (
                "AR(1), 0.5",
                |random, last| 0.5 * last + normal(random),
                60.9,
            ),
        ];
        let found = cases.map(|(name, next, _)| (name, coverage(3, next)));
        let expected = cases.map(|(name, _, covered)| (name, covered));
        assert_eq!(found, expected);
    }
}
