//! The whole distribution of the times.

use netping_measure::counts::Counts;
use netping_results::{
    compare::compare_runs,
    comparison::{Compared, Comparison},
    metric::{self, Metric, Source},
    run::{Histograms, Measurement, Run},
};

use crate::page::{
    chart::{Axis, Chart, Form, Panel, Plane, Point, Series},
    scale::Scale,
    series::{Group, groups},
    unit::Unit,
};

/// Where points lie within each nine, as 1 / (1 - q): as far apart on the scale as round quantiles
/// permit.
const WITHIN_A_NINE: [f64; 10] = [1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.25, 8.0];

/// More nines than any run has samples for.
const NINES: i32 = 18;

/// Samples that must lie beyond the last point.
const BEYOND: f64 = 10.0;

const NOTE: &str = "Of each series, the load with the highest rate, its trials added up. Service time is from sending; \
                    response time, from when the request was due, is drawn in an open loop: the space between them is waiting. \
                    A curve ends where fewer than ten samples lie beyond it.";

/// The axis of quantiles.
const QUANTILE: Axis = Axis {
    title: "quantile, each nine as wide as the last",
    unit: Unit::Quantile,
    scale: Scale::Nines,
};

/// Most measurements of two runs whose curves are compared.
const MOST_COMPARED: usize = 6;

const COMPARED: &str = "The response times of both runs, the trials of each added up, and below them the change from base to new at some \
                        quantiles. A bar is the 95 % interval, as wide as those of the claims; where a run is short or alone, not every \
                        quantile has one.";

/// Returns the chart of the quantiles of each target, in nanoseconds.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let series: Vec<Series> = groups.iter().flat_map(curves).collect();
    let form = Form::plane(QUANTILE, Scale::Log);
    let panel = Panel::new("time up to the quantile", Unit::NANOS, form, series);
    let chart = Chart::new(["quantiles", "Quantiles", NOTE], "quantile", [panel]);
    chart.into_iter().collect()
}

/// Returns the chart of two runs' curves, each with the change from one to the other.
pub(in crate::page) fn compared(base: &Run, new: &Run) -> Option<Chart> {
    let is_quantile = |metric: &&Metric| matches!(metric.source, Source::Quantile(_));
    let quantiles: Vec<_> = metric::TIMES.iter().copied().filter(is_quantile).collect();
    let comparison = compare_runs(base, new, &quantiles);
    let requests = comparison
        .pairs
        .iter()
        .filter(|pair| pair.base.settings().bulk.is_none());
    let panels = requests.take(MOST_COMPARED).flat_map(|pair| {
        let name = comparison.short_name(pair);
        [both(&name, pair), changes(pair)]
    });
    let chart = Chart::new(["quantiles", "Quantiles", COMPARED], "quantile", panels)?;
    Some(Chart {
        variant: Some("compared"),
        ..chart
    })
}

/// Returns the curves of a measurement in the base and in the new run.
fn both(name: &str, pair: &Compared<'_>) -> Panel {
    let sides = [("base", &pair.base), ("new", &pair.new)];
    let curve = |(at, (name, side)): (usize, (&str, &Measurement<'_>))| {
        let times = sum(side, |all| &all.response_time);
        Series::new(name.to_owned(), at, points(&times))
    };
    let curves = sides.into_iter().enumerate().map(curve).collect();
    let form = Form::plane(QUANTILE, Scale::Log);
    Panel::new(name, Unit::NANOS, form, curves)
}

/// Returns the change of each quantile.
fn changes(pair: &Compared<'_>) -> Panel {
    let change = |own: &Comparison| {
        let Source::Quantile(percent) = own.metric.source else {
            return None;
        };
        Some(Point::new(percent, own.change?).with_range(own.interval))
    };
    let mut changes: Vec<Point> = pair.comparisons.iter().filter_map(change).collect();
    changes.sort_by(|a, b| a.x.value().total_cmp(&b.x.value()));
    let plane = Plane {
        signed: true,
        ..Plane::new(QUANTILE, Scale::Linear)
    };
    let series = Series::new("change".to_owned(), 2, changes);
    Panel::new(
        "change from base to new",
        Unit::Change(&metric::P50),
        Form::Plane(plane),
        vec![series],
    )
}

/// The curves of a group: one, or, in an open loop, response and service time.
fn curves(group: &Group<'_>) -> Vec<Series> {
    let Some(best) = group.best() else {
        return Vec::new();
    };
    let open = best.settings().planned_rate.is_some();
    let curve = |what: &str, dashed: bool, of: fn(&Histograms) -> &Counts| Series {
        name: group.name_of(best) + what,
        colour: group.colour,
        dashed,
        points: points(&sum(best, of)),
    };
    if open {
        vec![
            curve(", response", false, |all| &all.response_time),
            curve(", service", true, |all| &all.service_time),
        ]
    } else {
        vec![curve("", false, |all| &all.service_time)]
    }
}

/// Adds up the times of all trials.
fn sum(measurement: &Measurement<'_>, of: fn(&Histograms) -> &Counts) -> Counts {
    let mut sum = Counts::default();
    for step in &measurement.trials {
        sum.add(of(&step.histograms));
    }
    sum
}

/// The points that the samples back.
fn points(times: &Counts) -> Vec<Point> {
    let most = times.len() as f64 / BEYOND * (1.0 + 1e-9);
    (0..NINES)
        .map(|nines| 10_f64.powi(nines))
        .take_while(|power| *power <= most)
        .flat_map(|power| WITHIN_A_NINE.map(|within| within * power))
        .filter(|inverse| *inverse <= most)
        .filter_map(|inverse| {
            let percent = 100.0 - 100.0 / inverse;
            Some(Point::new(percent, times.quantile(percent / 100.0)?))
        })
        .collect()
}
