//! Standard errors of a single run's numbers, from the error bars that it found within itself.
//!
//! They describe how much a number varies within a run. They do not cover what varies from run to
//! run, such as the placement of threads: only trials show that.

use netping_measure::statistics::{estimate::t_quantile, side::Side};

use crate::{
    metric::{Metric, Source},
    run::Step,
};

/// Relative resolution of a quantile: that of a histogram's slot.
const RESOLUTION: f64 = 1e-3;

/// Returns a step's value of a metric with its standard error; `None` where the step has no error
/// bar of it.
///
/// - Half of the rate's bar is `t(0.975, n - 1)` standard errors of `n` batches.
/// - A quantile's bar is symmetric on a logarithmic scale, and half of it is as many standard
///   errors
///   of `n` seconds. A value is rounded to its slot, which adds the variance of a uniform
///   distribution.
///
/// Files of older versions do not say `n`; it is the number of seconds.
pub(super) fn side(metric: &Metric, step: &Step) -> Option<Side> {
    let precision = &step.summary.precision;
    let seconds = step.summary.seconds.floor();
    let known = |count: Option<u64>| count.map_or(seconds, |count| count as f64);
    let is_quantile = matches!(metric.source, Source::Quantile(_));
    let n = known(if is_quantile {
        precision.blocks
    } else {
        precision.rate_batches
    });
    if n < 2.0 {
        return None;
    }
    let value = metric.of_step(step)?;
    let [low, high] = metric.interval(step)?;
    let factor = t_quantile(n - 1.0)?;
    let error = if is_quantile && low > 0.0 {
        let drawn = value * (high / low).ln() / 2.0 / factor;
        let rounded = (value * RESOLUTION).powi(2) / 12.0;
        (drawn.powi(2) + rounded).sqrt()
    } else {
        (high - low) / 2.0 / factor
    };
    Some(Side { n, value, error })
}
