//! Means with their confidence intervals.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its 95 % confidence interval, by Student's t.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The mean, or another value that stands for all.
    pub mean: f64,
    /// Half the interval's width; absent with fewer than two values.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Returns the mean of `values`, which are independent; `None` without any.
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

    /// Returns the ends of the interval.
    pub fn interval(self) -> Option<[f64; 2]> {
        let half = self.half_width?;
        Some([self.mean - half, self.mean + half])
    }
}

/// The number, mean and variance of some values.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    /// The number of values.
    pub n: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their sample variance; absent with fewer than two.
    pub variance: Option<f64>,
}

impl Moments {
    /// Returns the moments of `values`; `None` without any.
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

    /// Returns the standard error of the mean.
    pub fn error(&self) -> Option<f64> {
        self.variance.map(|variance| (variance / self.n).sqrt())
    }
}

/// Returns the factor that makes a standard error half a 95 % interval.
pub fn t_quantile(freedom: f64) -> Option<f64> {
    t_quantile_among(freedom, 1)
}

/// Returns the factor that makes a standard error half an interval, so that 95 % of sets of so many
/// intervals hold all their values (Bonferroni).
pub fn t_quantile_among(freedom: f64, intervals: usize) -> Option<f64> {
    t_at(freedom, 1.0 - 0.025 / intervals.max(1) as f64)
}

/// Returns the quantile `q`, from 0 to 1, of Student's t.
pub(super) fn t_at(freedom: f64, q: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom)
        .ok()
        .map(|t| t.inverse_cdf(q))
}
