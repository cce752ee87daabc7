//! The loads of a target: the fullest one, and the knee of a sweep.

use netping_measure::{statistics::knee, status::Status};
use netping_results::{
    estimate::estimate,
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
};

use crate::finding::connections;

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
    format!("{load} on {}", connections(settings))
}

/// The rates of a sweep over connections at the highest number of callers.
#[derive(Debug)]
pub struct BestConnections<'m, 'a> {
    /// The measurement with the highest rate.
    pub best: &'m Measurement<'a>,
    /// The lowest rate with more connections, if it is lower beyond doubt: the intervals do not overlap.
    pub fall: Option<&'m Measurement<'a>>,
    /// Those whose rates may be as high: the intervals overlap, or there are none. By connections.
    pub unclear: Vec<&'m Measurement<'a>>,
}

/// Returns what the measurements of one target show of its connections; `None` unless its highest number
/// of callers was measured with several numbers of connections, in closed loops.
pub fn best_connections<'m, 'a>(all: &'m [Measurement<'a>]) -> Option<BestConnections<'m, 'a>> {
    let is_closed = |own: &StepSettings| own.planned_rate.is_none() && own.bulk.is_none();
    let mut row: Vec<&Measurement<'_>> = all.iter().collect();
    row.retain(|own| is_closed(own.settings()));
    let callers = row.iter().map(|own| own.settings().callers);
    let most = callers.max()?;
    row.retain(|own| own.settings().callers == most);
    row.sort_by_key(|own| own.settings().connections);
    let best = fullest(row.iter().copied())?;
    let count = best.settings().connections;
    row.retain(|own| own.settings().connections != count);
    let is_alone = row.is_empty();
    let (mut lower, unclear): (Vec<_>, Vec<_>) =
        row.into_iter().partition(|own| is_lower(own, best));
    lower.retain(|own| own.settings().connections > count);
    let rate = |own: &Measurement<'_>| value(&metric::RATE, own);
    let fall = lower.into_iter().min_by(|a, b| rate(a).total_cmp(&rate(b)));
    (!is_alone).then_some(BestConnections {
        best,
        fall,
        unclear,
    })
}

/// Returns true if the interval of a rate lies below that of another.
fn is_lower(own: &Measurement<'_>, other: &Measurement<'_>) -> bool {
    let ends = |side| estimate(&metric::RATE, side).and_then(|rate| rate.interval);
    let pair = ends(own).zip(ends(other));
    pair.is_some_and(|([_, high], [low, _])| high < low)
}

/// Returns the value of a metric, 0 where there is none.
pub fn value(metric: &Metric, own: &Measurement<'_>) -> f64 {
    estimate(metric, own).map_or(0.0, |own| own.value)
}

/// Returns the largest number of trials that a measurement of the run has, without those that were cut short.
pub fn most_trials(run: &Run) -> u64 {
    let trials = run.measurements().into_iter().map(|own| {
        let whole = own
            .trials
            .iter()
            .filter(|step| step.status == Status::Complete);
        whole.count() as u64
    });
    trials.max().unwrap_or(0)
}
