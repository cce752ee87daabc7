//! The loads of a target: the fullest one, and the knee of a sweep.

use netping_measure::statistics::knee;
use netping_results::{
    estimate::estimate,
    format::plural,
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
};

/// Returns the measurement with the highest rate; of bulk streams, that with the most bytes per
/// second.
pub fn fullest<'m, 'a: 'm>(
    all: impl IntoIterator<Item = &'m Measurement<'a>>,
) -> Option<&'m Measurement<'a>> {
    let rate = |own: &Measurement<'_>| match own.settings().bulk {
        Some(_) => value(&metric::BULK_RATE, own),
        None => value(&metric::RATE, own),
    };
    let all = all.into_iter();
    all.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// Returns the place of the knee in a sweep over the callers of a closed loop; `None` where it has
/// none, or is no such sweep.
pub fn knee_of(sweep: &[Measurement<'_>]) -> Option<usize> {
    let rises = |pair: &[Measurement<'_>]| pair[0].settings().callers < pair[1].settings().callers;
    let is_closed = |own: &Measurement<'_>| own.settings().planned_rate.is_none();
    if !sweep.windows(2).all(rises) || !sweep.iter().all(is_closed) {
        return None;
    }
    let point = |own: &Measurement<'_>| {
        let p99 = estimate(&metric::P99, own).map(|p99| p99.value as u64);
        (value(&metric::RATE, own), p99)
    };
    let points: Vec<_> = sweep.iter().map(point).collect();
    knee::knee(&points)
}

/// Returns a load in words, with the connections where callers of a closed loop share them.
pub fn load_of(settings: &StepSettings) -> String {
    let load = settings.load_in_words();
    if settings.planned_rate.is_some() || settings.connections >= settings.callers {
        return load;
    }
    let connections = plural(settings.connections as u64, "connection");
    format!("{load} on {connections}")
}

/// Returns the value of a metric, 0 where there is none.
pub fn value(metric: &Metric, own: &Measurement<'_>) -> f64 {
    estimate(metric, own).map_or(0.0, |own| own.value)
}

/// Returns the largest number of trials that a measurement of the run has.
pub fn most_trials(run: &Run) -> u64 {
    let all = run.measurements();
    let trials = all.iter().map(|own| own.trials.len() as u64);
    trials.max().unwrap_or(0)
}
