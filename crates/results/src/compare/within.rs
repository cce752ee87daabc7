//! Standard errors of a single run's numbers, from the error bars that it found within itself.
//!
//! They describe how much a number varies within a run. They do not cover what varies from run to
//! run, such as the placement of threads: only trials show that.

use netping_measure::statistics::{estimate::t_quantile, side::Side};

use crate::{
    metric::{Metric, Source},
    run::Step,
};

/// Half the width of a 95 % interval of a normal distribution, in standard errors.
const NORMAL: f64 = 1.96;

/// Relative resolution of a quantile: that of a histogram's slot.
const RESOLUTION: f64 = 1e-3;

/// Returns a step's value of a metric with its standard error; `None` where the step has no error
/// bar of it.
///
/// - The rate's bar is the interval of batch means over `n` whole seconds (Law and Kelton,
///   "Simulation Modeling and Analysis", chapter 9), half of which is `t(0.975, n - 1)` standard
///   errors.
/// - A quantile's bar is the interval of a bootstrap of `n` seconds, taken for normal: 2 * 1.96
///   standard errors (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13).
///   Draws from `n` seconds vary by a factor of `(n - 1) / n` less than seconds do. A value is
///   rounded to its slot, which adds the variance of a uniform distribution.
pub(super) fn side(metric: &Metric, step: &Step) -> Option<Side> {
    // The intervals are of the whole seconds of the window.
    let n = step.summary.seconds.floor();
    if n < 2.0 {
        return None;
    }
    let value = metric.of_step(step)?;
    let [low, high] = metric.interval(step)?;
    let width = high - low;
    let error = if let Source::Quantile(_) = metric.source {
        let drawn = (width / (2.0 * NORMAL)).powi(2) * n / (n - 1.0);
        let rounded = (value * RESOLUTION).powi(2) / 12.0;
        (drawn + rounded).sqrt()
    } else {
        width / 2.0 / t_quantile(n - 1.0)?
    };
    Some(Side { n, value, error })
}
