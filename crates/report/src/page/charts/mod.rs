//! All charts: one file and one line here for each.

mod anatomy;
mod balance;
mod bulk;
mod clients;
mod connect;
mod fairness;
pub(super) mod forest;
mod heatmap;
mod histogram;
mod ladder;
mod load;
mod quantiles;
pub(super) mod shift;
mod sweep;
mod trials;

use netping_results::{
    estimate::estimate,
    metric::Metric,
    run::{Kind, Measurement, Run},
};

use super::{
    chart::{Chart, Exact, Mark, Panel, Point, Series},
    scale::AxisScale,
    unit::PageUnit,
};

/// A function that makes charts of runs; they have no panels where the runs lack the data.
type Maker = fn(&[Run]) -> Vec<Chart>;

/// The charts that may answer the question of a page: the first that the runs have data for do.
const LEADS: [&[Maker]; 8] = [
    &[ladder::charts],
    &[forest::overhead],
    &[bulk::charts],
    &[connect::charts],
    &[histogram::charts],
    &[sweep::charts],
    &[trials::charts, shift::charts],
    &[quantiles::charts, heatmap::charts],
];

/// The charts below, but for those that lead.
const OTHERS: [Maker; 10] = [
    forest::differences,
    trials::charts,
    shift::charts,
    load::charts,
    quantiles::charts,
    heatmap::charts,
    connect::charts,
    fairness::charts,
    clients::charts,
    balance::charts,
];

/// Those of runs whose windows are too short, and too many, for charts of single steps.
const OF_SHORT_WINDOWS: [Maker; 1] = [balance::charts];

/// Returns the charts of these runs in the order of the page.
pub(super) fn all(runs: &[Run]) -> Vec<Chart> {
    let drawn = |makers: &[Maker]| -> Vec<Chart> {
        let charts = makers.iter().flat_map(|maker| maker(runs));
        charts.filter(|chart| !chart.panels.is_empty()).collect()
    };
    let leads = LEADS.iter().map(|makers| drawn(makers));
    let mut leads = leads.filter(|charts| !charts.is_empty());
    let mut all = leads.next().unwrap_or_default();
    // Who asked for the parts of round trips wants to see them first.
    all.splice(0..0, drawn(&[anatomy::charts]));
    for chart in &mut all {
        chart.leads = true;
    }
    let are_short = runs
        .iter()
        .all(|run| matches!(run.kind, Kind::Ladder | Kind::Quick));
    let others: &[Maker] = if are_short {
        &OF_SHORT_WINDOWS
    } else {
        &OTHERS
    };
    let mut others = drawn(others);
    others.retain(|chart| all.iter().all(|lead| lead.file_stem() != chart.file_stem()));
    all.extend(others);
    all
}

/// Returns the estimate of a metric with its interval, and a dot for each of several trials;
/// nothing where there is no estimate.
fn strip(metric: &Metric, measurement: &Measurement<'_>, x: impl Into<Exact>) -> Vec<Point> {
    let Some(estimate) = estimate(metric, measurement) else {
        return Vec::new();
    };
    let has_dots = measurement.trials.len() > 1;
    let mark = if has_dots { Mark::Mean } else { Mark::BAR };
    let mut points = vec![Point::estimated(x, estimate).marked(mark)];
    if has_dots {
        points.extend(measurement.trials.iter().filter_map(|step| {
            let point = Point::new(
                Exact::Word(format!("trial {}", step.trial)),
                metric.of_step(step)?,
            );
            let is_bound = metric.is_bound_of(step);
            Some(Point { is_bound, ..point })
        }));
    }
    points
}

/// Returns the panel of a metric's [`strip`]s; its axis begins at 0 where a bar does, or where the values are far
/// apart.
fn strips(title: &str, metric: &Metric, rows: Vec<Series>) -> Panel {
    let mut panel = Panel::rows(title, PageUnit::Of(metric.unit), rows);
    let points = || panel.series.iter().flat_map(|row| &row.points);
    let least = points().map(|point| point.at).fold(f64::INFINITY, f64::min);
    let greatest = points().map(|point| point.at).fold(0.0, f64::max);
    if least > greatest / 2.0 && points().all(|point| point.mark != Mark::BAR) {
        panel.scale = AxisScale::Close;
    }
    panel
}

/// Returns the maximum number of points on each of `lines` lines: a page stays small however long a
/// run was.
fn most_points(lines: usize) -> usize {
    const IN_A_PANEL: usize = 240;
    (IN_A_PANEL / lines.max(1)).max(24)
}
