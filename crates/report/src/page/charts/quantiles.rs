//! The whole distribution of the times.

use netping_measure::{counts::Counts, times::Time};
use netping_results::{
    compare::compare_runs,
    comparison::{Compared, Comparison},
    metric::{self, Metric, Source},
    run::{Measurement, Run},
};

use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Fullest, fullest},
    unit::PageUnit,
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
    unit: PageUnit::Quantile,
    scale: AxisScale::Nines,
};

/// Most measurements of two runs whose curves are compared.
const MOST_COMPARED: usize = 6;

const COMPARED: &str = "The response times of both runs, the trials of each added up, and below them the change from base to new at some \
                        quantiles. A bar is the 95 % interval, as wide as those of the claims; where a run is short or alone, not every \
                        quantile has one.";

/// Returns the chart of the quantiles of each target, in nanoseconds.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let series = fullest(runs).iter().flat_map(curves).collect();
    let plane = Plane::new(QUANTILE, AxisScale::Log);
    let panel = Panel::rows("time up to the quantile", PageUnit::NANOS, series).on(plane);
    let text = ["quantiles", "Quantiles", NOTE];
    vec![Chart::new(text, "quantile", [panel])]
}

/// Returns the chart of two runs' curves, each with the change from one to the other.
pub(in crate::page) fn compared(base: &Run, new: &Run) -> Chart {
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
    Chart {
        variant: Some("compared"),
        ..Chart::new(["quantiles", "Quantiles", COMPARED], "quantile", panels)
    }
}

/// Returns the curves of a measurement in the base and in the new run.
fn both(name: &str, pair: &Compared<'_>) -> Panel {
    let curve = |name: &str, colour, side| {
        let times = sum(side, Time::Response);
        Series::new(name.to_owned(), colour, points(&times))
    };
    let curves = vec![curve("base", 0, &pair.base), curve("new", 1, &pair.new)];
    Panel::rows(name, PageUnit::NANOS, curves).on(Plane::new(QUANTILE, AxisScale::Log))
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
    let series = vec![Series::new("change".to_owned(), 2, changes)];
    let unit = PageUnit::Change(&metric::P50);
    Panel::rows("change from base to new", unit, series).on(Plane::new(QUANTILE, AxisScale::Linear))
}

/// The curves of a group: one, or, in an open loop, response and service time.
fn curves(own: &Fullest<'_>) -> Vec<Series> {
    let curve = |what: &str, dashed: bool, time: Time| Series {
        name: own.name.clone() + what,
        colour: own.colour,
        dashed,
        points: points(&sum(&own.measurement, time)),
    };
    match own.measurement.settings().planned_rate {
        None => vec![curve("", false, Time::Service)],
        Some(_) => vec![
            curve(", response", false, Time::Response),
            curve(", service", true, Time::Service),
        ],
    }
}

/// Adds up the times of a kind over all trials.
fn sum(measurement: &Measurement<'_>, time: Time) -> Counts {
    let mut sum = Counts::default();
    for step in &measurement.trials {
        sum.add(&step.histograms.times[time]);
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
            let time = times.quantile(percent / 100.0)?;
            Some(Point::new(percent, time as f64))
        })
        .collect()
}
