//! The difference of two values that were measured in pairs.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::estimate::{Moments, t_quantile_among};

/// Relative resolution of a histogram of three digits: pairs whose differences agree more closely
/// than this may do so by rounding alone.
const RESOLUTION: f64 = 1e-3;

/// Two values measured in pairs, one pair for each trial, and their mean difference. What changes
/// from trial to trial is in both values of a pair, and cancels out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// The mean of the first values.
    pub first: f64,
    /// The mean of the second values.
    pub second: f64,
    /// Half the width of the interval of the second less the first: with a probability of 95 %,
    /// those of all comparisons made together hold their differences.
    pub half_width: f64,
    /// The probability of a difference at least as large by chance alone, times the number of
    /// comparisons (Bonferroni), at most 1.
    pub p_value: f64,
}

impl Paired {
    /// Compares values of the same trials by Student's t-test of their differences, as one of
    /// `comparisons` made together. `None` with fewer than two pairs, unequal numbers of values, or
    /// one that is not finite.
    pub fn compare(first: &[f64], second: &[f64], comparisons: usize) -> Option<Self> {
        let is_finite = first.iter().chain(second).all(|value| value.is_finite());
        if first.len() != second.len() || !is_finite {
            return None;
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let (a, b) = (Moments::of(first)?.mean, Moments::of(second)?.mean);
        let moments = Moments::of(&differences)?;
        let freedom = moments.n - 1.0;
        let resolution = RESOLUTION * a.abs().max(b.abs()) / moments.n.sqrt();
        let error = moments.error()?.max(resolution);
        let tails = if error > 0.0 {
            let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
            2.0 * t.sf((moments.mean / error).abs())
        } else {
            // All are 0.
            1.0
        };
        Some(Self {
            first: a,
            second: b,
            half_width: error * t_quantile_among(freedom, comparisons)?,
            p_value: (tails * comparisons as f64).min(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::normal;

    /// Eight trials of a machine that drifts by 20 %; the second value is `added` higher, both vary
    /// by 1.
    fn trials(random: &mut ChaCha8Rng, added: f64) -> [Vec<f64>; 2] {
        let levels: Vec<f64> = (0..8).map(|_| 100.0 + 20.0 * normal(random)).collect();
        [0.0, added].map(|added| {
            levels
                .iter()
                .map(|level| level + added + normal(random))
                .collect()
        })
    }

    #[test]
    fn pairs_see_through_drift_and_raise_few_false_alarms() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut shown = |added: f64| {
            (0..1000)
                .filter(|_| {
                    let [first, second] = trials(&mut random, added);
                    let paired = Paired::compare(&first, &second, 1).unwrap();
                    (paired.second - paired.first).abs() > paired.half_width
                })
                .count()
        };
        // Added 2 is a tenth of the drift, and four standard errors of the mean difference.
        let (alarms, found) = (shown(0.0), shown(2.0));
        assert!((20..=75).contains(&alarms), "{alarms} of 1000");
        assert!(found >= 850, "{found} of 1000");
    }

    #[test]
    fn values_that_are_no_pairs_are_not_compared() {
        assert_eq!(Paired::compare(&[1.0, 2.0], &[1.0], 1), None);
        assert_eq!(Paired::compare(&[1.0], &[2.0], 1), None);
        let endless = [1.0, f64::INFINITY];
        assert_eq!(Paired::compare(&[1.0, 2.0], &endless, 1), None);
    }
}
