//! One side of a comparison: a value and its standard error.

use crate::{
    counts::Counts,
    statistics::{
        bootstrap::Blocks,
        estimate::{Estimate, Moments, t_quantile_among},
    },
};

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Number of trials, or of seconds within a single run.
    pub n: f64,
    /// A mean, or a quantile over all trials.
    pub value: f64,
    /// The value's standard error.
    pub error: f64,
}

impl Side {
    /// Returns the mean of `values`; `None` with fewer than two.
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let moments = Moments::of(values)?;
        Some(Self {
            n: moments.n,
            value: moments.mean,
            error: moments.error()?,
        })
    }

    /// Returns a quantile, in per cent, over all trials. Its standard error comes from a block
    /// bootstrap that draws whole trials (Efron and Tibshirani, "An Introduction to the
    /// Bootstrap", 1993, chapter 6), corrected for few of them. `None` with fewer than two trials,
    /// or without samples.
    pub fn of_quantile(trials: &[&Counts], percent: f64) -> Option<Self> {
        if trials.len() < 2 {
            return None;
        }
        let q = percent / 100.0;
        let n = trials.len() as f64;
        let blocks = Blocks::new(trials);
        let drawn: Option<Vec<f64>> = blocks
            .resampled([q])
            .into_iter()
            .map(|[value]| value.map(|value| value as f64))
            .collect();
        let spread = Moments::of(&drawn?)?.variance?.sqrt();
        Some(Self {
            n,
            value: blocks.quantile(q)? as f64,
            // Draws from n trials vary by a factor of (n - 1) / n less than trials do.
            error: spread * (n / (n - 1.0)).sqrt(),
        })
    }

    /// Returns the value with its 95 % confidence interval.
    pub fn estimate(self) -> Estimate {
        Estimate {
            mean: self.value,
            half_width: self.half_width(1),
        }
    }

    /// Returns half the width of an interval that is one of `intervals`, all of which hold their
    /// values with a probability of 95 %.
    pub fn half_width(self, intervals: usize) -> Option<f64> {
        t_quantile_among(self.n - 1.0, intervals).map(|factor| factor * self.error)
    }
}
