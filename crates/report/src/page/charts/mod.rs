//! All charts: one file and one line here for each.

mod balance;
mod bulk;
mod connect;
mod fairness;
pub(super) mod forest;
mod heatmap;
mod ladder;
mod load;
pub(super) mod quantiles;
mod time;

use netping_measure::times::Time;
use netping_results::{
    estimate::estimate,
    metric::Metric,
    run::{Kind, Measurement, Run},
};

use super::chart::{Chart, Exact, Mark, Point};

/// A function that makes charts of runs; they have no panels where the runs lack the data.
type Maker = fn(&[Run]) -> Vec<Chart>;

/// Returns the makers of these runs' charts, in the order of the page. The windows of a ladder are too
/// short, and too many, for charts of single steps.
pub(super) fn makers(runs: &[Run]) -> &'static [Maker] {
    let are_ladders = runs.iter().all(|run| run.kind == Kind::Ladder);
    if are_ladders { &LADDER } else { &ALL }
}

/// Those of ladders.
const LADDER: [Maker; 3] = [forest::charts, ladder::charts, balance::charts];

/// Every maker.
const ALL: [Maker; 10] = [
    forest::charts,
    ladder::charts,
    connect::charts,
    bulk::charts,
    load::charts,
    quantiles::charts,
    time::charts,
    heatmap::charts,
    fairness::charts,
    balance::charts,
];

/// Returns a bar at the estimate of a metric, with its interval, and a dot for each of several
/// trials; nothing where there is no estimate.
fn bar(metric: &Metric, measurement: &Measurement<'_>, x: impl Into<Exact>) -> Vec<Point> {
    let Some(estimate) = estimate(metric, measurement) else {
        return Vec::new();
    };
    let mut points = vec![Point::estimated(x, estimate).marked(Mark::BAR)];
    if measurement.trials.len() > 1 {
        points.extend(measurement.trials.iter().filter_map(|step| {
            let point = Point::new(
                Exact::Word(format!("trial {}", step.trial)),
                metric.of_step(step)?,
            );
            let is_bound = metric.is_bound(&step.summary.times[Time::Response]);
            Some(Point { is_bound, ..point })
        }));
    }
    points
}

/// Returns the maximum number of points on each of `lines` lines: a page stays small however long a
/// run was.
fn most_points(lines: usize) -> usize {
    const IN_A_PANEL: usize = 240;
    (IN_A_PANEL / lines.max(1)).max(24)
}
