//! Times and CPU per request against the load: callers of a closed loop, the planned rate of an open one.

use netping_results::{
    estimate::estimate,
    metric::{self, Metric},
    run::{Run, StepSettings},
};

use super::sweep::is_sweep;
use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Group, groups},
    unit::PageUnit,
};

const NOTE: &str = "Response time, and the CPU time of client and server for each request. The bars are 95 % intervals.";

const OPEN: &str = " Response time is counted from when a request was due; the service time, dashed, from when it was sent.";

/// A kind of load.
struct LoadAxis {
    variant: Option<&'static str>,
    axis: Axis,
    of: fn(&StepSettings) -> Option<f64>,
}

static LOADS: [LoadAxis; 2] = [
    LoadAxis {
        variant: None,
        axis: Axis {
            title: "callers",
            unit: PageUnit::Count("callers"),
            scale: AxisScale::Log,
        },
        of: |own| own.planned_rate.is_none().then_some(own.callers as f64),
    },
    LoadAxis {
        variant: Some("open"),
        axis: Axis {
            title: "planned rate, req/s",
            unit: PageUnit::RATE,
            scale: AxisScale::Linear,
        },
        of: |own| own.planned_rate,
    },
];

/// Returns a chart of sweeps of closed loops, and one of those of open ones.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut groups = groups(runs);
    groups.retain(is_sweep);
    LOADS.iter().map(|load| chart(&groups, load)).collect()
}

fn chart(groups: &[Group<'_>], load: &LoadAxis) -> Chart {
    let panels = metric::LOAD_CHARTS.iter().enumerate().map(|(at, metric)| {
        let beside = metric::SERVICE_CHARTS.get(at);
        let beside = beside.filter(|_| load.variant.is_some());
        let series = series(groups, load, metric, beside.copied());
        let unit = PageUnit::Of(metric.unit);
        let mut title = match metric.unit {
            metric::Unit::CpuMicros => format!("{} per request", metric.label),
            _ => metric.label.to_owned(),
        };
        let mut plane = Plane::new(load.axis, AxisScale::Log);
        if unit != PageUnit::NANOS && is_flattened(&series) {
            title.push_str(", logarithmic");
        } else if unit != PageUnit::NANOS {
            plane.y = AxisScale::Linear;
        }
        Panel::rows(&title, unit, series).on(plane)
    });
    let open = if load.variant.is_some() { OPEN } else { "" };
    Chart {
        variant: load.variant,
        note: NOTE.to_owned() + open,
        title: format!(
            "Times and CPU by {}",
            load.axis.title.trim_end_matches(", req/s")
        ),
        ..Chart::new(["load", "", ""], load.axis.title, panels)
    }
}

/// Series whose greatest values differ by more than this factor share no linear scale: the smaller
/// ones would be flat.
const FLATTENING: f64 = 4.0;

/// Returns true where one series flattens another on a linear scale, and a logarithm can show all of
/// their values.
fn is_flattened(series: &[Series]) -> bool {
    let top = |own: &Series| own.points.iter().map(|point| point.at).reduce(f64::max);
    let tops = || series.iter().filter_map(top);
    let least = tops().fold(f64::INFINITY, f64::min);
    let mut points = series.iter().flat_map(|own| &own.points);
    points.all(|point| point.at > 0.0) && tops().any(|top| top > FLATTENING * least)
}

/// Returns a line for each group, and a dashed one for the metric beside.
fn series(
    groups: &[Group<'_>],
    load: &LoadAxis,
    metric: &Metric,
    beside: Option<&Metric>,
) -> Vec<Series> {
    let points = |group: &Group<'_>, metric: &Metric| {
        let all = group.measurements.iter();
        let own = all.filter_map(|own| {
            Some(Point::estimated(
                (load.of)(own.settings())?,
                estimate(metric, own)?,
            ))
        });
        let mut points: Vec<Point> = own.collect();
        points.sort_by(|a, b| a.x.value().total_cmp(&b.x.value()));
        points
    };
    let mut all = Vec::new();
    for group in groups {
        let name = group.name.clone();
        all.push(Series::new(name, group.colour, points(group, metric)));
        all.extend(beside.map(|metric| Series {
            dashed: true,
            ..Series::new(
                format!("{}, service time", group.name),
                group.colour,
                points(group, metric),
            )
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_far_above_the_others_asks_for_a_logarithm() {
        let series = |tops: &[f64]| -> Vec<Series> {
            let one = |top: &f64| {
                let points = [top / 9.0, *top].map(|value| Point::new(1.0, value));
                Series::new(String::new(), 0, points.to_vec())
            };
            tops.iter().map(one).collect()
        };
        assert!(is_flattened(&series(&[100.0, 450.0])));
        assert!(!is_flattened(&series(&[100.0, 390.0])));
        // A logarithm has no place for 0.
        assert!(!is_flattened(&series(&[0.0, 450.0])));
        assert!(!is_flattened(&series(&[450.0])));
    }
}
