//! The difference of two values in their own unit, by Welch's t-test.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::{
    estimate::{Moments, t_at, t_quantile, t_quantile_among},
    side::Side,
};

/// Relative resolution of a histogram of three digits: trials that agree more closely than this may
/// do so by rounding alone.
const RESOLUTION: f64 = 1e-3;

/// Two values and their difference, by Student's t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// The first value.
    pub first: f64,
    /// The second value.
    pub second: f64,
    /// Half the width of the difference's 95 % interval.
    pub half_width: f64,
    /// The probability of a difference at least as large by chance alone, without any adjustment.
    pub p_value: f64,
    /// The ratio of the second to the first; absent unless both are positive.
    pub ratio: Option<Ratio>,
}

/// The ratio of two values, on a logarithmic scale: there it is a difference, whose error is that
/// of both values, and no interval reaches below a ratio of 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The natural logarithm of the ratio.
    pub log: f64,
    /// Its standard error, by the delta method: from the relative errors of both values.
    pub error: f64,
    /// Its degrees of freedom, by Welch and Satterthwaite.
    pub freedom: f64,
}

/// The power with which a test should find a difference: 80 %.
const POWER: f64 = 0.8;

impl Ratio {
    /// Returns the interval of the ratio less 1 as one of `comparisons`, all of which hold their
    /// ratios with a probability of 95 %.
    pub fn interval(self, comparisons: usize) -> Option<[f64; 2]> {
        let half = t_quantile_among(self.freedom, comparisons)? * self.error;
        Some([self.log - half, self.log + half].map(f64::exp_m1))
    }

    /// Returns the probability of a ratio at least as far from 1 by chance alone, times the number
    /// of comparisons made together (Bonferroni), at most 1.
    pub fn p_value(self, comparisons: usize) -> Option<f64> {
        let t = StudentsT::new(0.0, 1.0, self.freedom).ok()?;
        let tails = 2.0 * t.sf((self.log / self.error).abs());
        Some((tails * comparisons as f64).min(1.0))
    }

    /// Returns the smallest margin within which the two values are equivalent, as one of
    /// `comparisons` made together: a ratio less 1.
    pub fn equivalence(self, comparisons: usize) -> Option<f64> {
        let factor = t_at(self.freedom, 1.0 - 0.05 / comparisons.max(1) as f64)?;
        Some((self.log.abs() + factor * self.error).exp_m1())
    }

    /// Returns the smallest ratio less 1 that such measurements show with a probability of 80 %, as
    /// one of `comparisons` made together.
    pub fn detectable(self, comparisons: usize) -> Option<f64> {
        let factor = t_quantile_among(self.freedom, comparisons)? + t_at(self.freedom, POWER)?;
        Some((factor * self.error).exp_m1())
    }
}

impl Welch {
    /// Compares two values that have standard errors (Welch, "The generalization of Student's
    /// problem when several different population variances are involved", 1947).
    pub fn compare(a: Side, b: Side) -> Option<Self> {
        let (ea, eb) = (a.error.powi(2), b.error.powi(2));
        // Welch and Satterthwaite's degrees of freedom.
        let freedom = if ea + eb > 0.0 {
            (ea + eb).powi(2) / (ea.powi(2) / (a.n - 1.0) + eb.powi(2) / (b.n - 1.0))
        } else {
            a.n + b.n - 2.0
        };
        let welch = Self::student(a.value, b.value, (ea + eb).sqrt(), freedom)?;
        let ratio = (a.value > 0.0 && b.value > 0.0).then(|| ratio(a, b));
        Some(Self { ratio, ..welch })
    }

    /// Compares the means of trials. Where one side has a single trial, the spread of the other
    /// side's trials stands for both (Student's test). `None` with one trial on each side, or
    /// without any.
    pub fn of_trials(first: &[f64], second: &[f64]) -> Option<Self> {
        let (a, b) = (Moments::of(first)?, Moments::of(second)?);
        let against_one = |many: &Moments| {
            let error = (many.variance? * (1.0 + 1.0 / many.n)).sqrt();
            let welch = Self::student(a.mean, b.mean, error, many.n - 1.0)?;
            let ratio = (a.mean > 0.0 && b.mean > 0.0 && many.mean > 0.0).then(|| Ratio {
                log: (b.mean / a.mean).ln(),
                error: (error / many.mean).max(RESOLUTION),
                freedom: many.n - 1.0,
            });
            Some(Self { ratio, ..welch })
        };
        match (Side::of_mean(first), Side::of_mean(second)) {
            (Some(first), Some(second)) => Self::compare(first, second),
            (Some(_), None) => against_one(&a),
            (None, Some(_)) => against_one(&b),
            (None, None) => None,
        }
    }

    /// Returns the ends of the difference's 95 % interval.
    pub fn interval(self) -> [f64; 2] {
        let difference = self.second - self.first;
        [difference - self.half_width, difference + self.half_width]
    }

    fn student(first: f64, second: f64, error: f64, freedom: f64) -> Option<Self> {
        let difference = second - first;
        let error = error.max(RESOLUTION * first.abs().max(second.abs()));
        let (half_width, p_value) = if error > 0.0 {
            let tail = StudentsT::new(0.0, 1.0, freedom)
                .ok()?
                .sf((difference / error).abs());
            (error * t_quantile(freedom)?, 2.0 * tail)
        } else {
            // Both are 0.
            (0.0, 1.0)
        };
        Some(Self {
            first,
            second,
            half_width,
            p_value,
            ratio: None,
        })
    }
}

fn ratio(a: Side, b: Side) -> Ratio {
    let (ra, rb) = ((a.error / a.value).powi(2), (b.error / b.value).powi(2));
    let freedom = if ra + rb > 0.0 {
        (ra + rb).powi(2) / (ra.powi(2) / (a.n - 1.0) + rb.powi(2) / (b.n - 1.0))
    } else {
        a.n + b.n - 2.0
    };
    Ratio {
        log: (b.value / a.value).ln(),
        error: (ra + rb).sqrt().max(RESOLUTION),
        freedom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_trial_is_judged_by_the_spread_of_the_others() {
        // t = 5 / (sqrt(2.5) * sqrt(1 + 1/5)) = 2.887 with 4 degrees of freedom: p = 0.0447.
        let many = [1.0, 2.0, 3.0, 4.0, 5.0];
        let welch = Welch::of_trials(&many, &[8.0]).unwrap();
        assert!((welch.p_value - 0.0447).abs() < 5e-4, "{welch:?}");
        let turned = Welch::of_trials(&[8.0], &many).unwrap();
        assert!((turned.p_value - welch.p_value).abs() < 1e-12);
        assert!((turned.interval()[1] + welch.interval()[0]).abs() < 1e-9);
        assert_eq!(Welch::of_trials(&[1.0], &[2.0]), None);
        assert_eq!(Welch::of_trials(&[], &many), None);
    }

    #[test]
    fn trials_that_agree_to_the_digit_are_not_certain_beyond_it() {
        let welch = Welch::of_trials(&[1000.0; 3], &[999.9; 3]).unwrap();
        assert!(
            welch.p_value > 0.5 && welch.interval()[1] > 0.0,
            "{welch:?}"
        );
        let welch = Welch::of_trials(&[1000.0; 3], &[900.0; 3]).unwrap();
        assert!(welch.p_value < 0.001, "{welch:?}");
        assert!((Welch::of_trials(&[0.0; 3], &[0.0; 3]).unwrap().p_value - 1.0).abs() < 1e-12);
    }
}
