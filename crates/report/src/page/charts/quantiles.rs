//! The whole distribution of the times.

use netping_measure::counts::Counts;
use netping_results::run::{Histograms, Run, Step};

use crate::page::{
    chart::{Axis, Chart, Form, Panel, Point, Series},
    scale::Scale,
    series::{StepSeries, load, step_series},
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

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = step_series(runs);
    let series: Vec<Series> = groups.iter().flat_map(curves).collect();
    let x = Axis {
        title: "quantile, each nine as wide as the last",
        unit: Unit::Quantile,
        scale: Scale::Nines,
    };
    let form = Form::plane(x, Scale::Log);
    let panel = Panel::new("time up to the quantile", Unit::NANOS, form, series);
    let chart = Chart::new(["quantiles", "Quantiles", NOTE], "quantile", [panel]);
    chart.into_iter().collect()
}

/// The curves of a group: one, or, in an open loop, response and service time.
fn curves(group: &StepSeries<'_>) -> Vec<Series> {
    let steps = group.best();
    let Some(first) = steps.first() else {
        return Vec::new();
    };
    let open = first.settings.planned_rate.is_some();
    let curve = |what: &str, dashed: bool, of: fn(&Histograms) -> &Counts| Series {
        name: format!("{}, {}{what}", group.name, load(first)),
        colour: group.colour,
        dashed,
        points: points(&sum(&steps, of)),
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

/// Adds up the times of all steps.
fn sum(steps: &[&Step], of: fn(&Histograms) -> &Counts) -> Counts {
    let mut sum = Counts::default();
    for step in steps {
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
