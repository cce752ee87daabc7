//! Standard errors of a single run's numbers, from the error bars that it found within itself.
//!
//! They tell how much a number would vary from minute to minute under the same conditions. What varies from run to run,
//! such as where threads and connections come to lie, they cannot tell: only trials can.

use super::Measure;
use crate::run::Step;
use netping_measure::statistics::{estimate::t_quantile, side::Side};

/// Half the width of a 95 % interval of a normal distribution, in standard errors.
const NORMAL: f64 = 1.96;

/// A quantile is told to this share of it: that of a histogram's slot.
const RESOLUTION: f64 = 1e-3;

/// A step's value of a measure with its standard error; `None` where the step has no error bar of it.
///
/// - The rate's bar is the interval of batch means over `n` whole seconds (Law and Kelton, "Simulation Modeling and
///   Analysis", chapter 9), half of which is `t(0.975, n - 1)` standard errors.
/// - A quantile's bar is the interval of a bootstrap of `n` seconds, taken for normal: 2 * 1.96 standard errors (Efron and
///   Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). Draws from `n` seconds vary by a factor of
///   `(n - 1) / n` less than seconds do. A value is rounded to its slot, which adds the variance of a uniform distribution.
///
/// Times are in microseconds.
pub(super) fn side(measure: Measure, step: &Step) -> Option<Side> {
    let precision = &step.summary.precision;
    // The intervals are of the whole seconds of the window.
    let n = step.summary.seconds.floor();
    if n < 2.0 {
        return None;
    }
    let value = measure.of_step(step)?;
    let interval = match measure {
        Measure::Rate => {
            return Some(Side {
                n,
                value,
                error: precision.rate_half_width? / t_quantile(n - 1.0)?,
            });
        }
        Measure::Quantile(50.0) => precision.p50?,
        Measure::Quantile(99.0) => precision.p99?,
        _ => return None,
    };
    let [low, high] = interval.map(|time| time as f64 / 1e3);
    let drawn = ((high - low) / (2.0 * NORMAL)).powi(2) * n / (n - 1.0);
    let rounded = (value * RESOLUTION).powi(2) / 12.0;
    Some(Side {
        n,
        value,
        error: (drawn + rounded).sqrt(),
    })
}
