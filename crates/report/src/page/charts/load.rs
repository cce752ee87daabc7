//! Charts of a value against the load: callers of a closed loop, the planned rate of an open one.

use netping_results::{
    estimate::estimate,
    metric::{self, Metric},
    run::{Run, StepSettings},
};

use super::bar;
use crate::{
    loads::{self, knee_of},
    page::{
        chart::{Axis, Chart, Guide, GuidePlace, Panel, Plane, Point, Series},
        scale::AxisScale,
        series::{Group, groups},
        unit::PageUnit,
    },
};

/// A kind of chart against the load.
struct Against {
    kind: &'static str,
    /// The beginning of the title.
    title: &'static str,
    note: &'static str,
    /// A panel for each.
    metrics: metric::List,
    /// The service time beside each, which open loops have.
    beside: metric::List,
}

static KINDS: [Against; 2] = [
    Against {
        kind: "throughput",
        title: "Throughput",
        note: "Verified replies within the window, per second of it, the time that 99 % of them took at most, and the CPU \
               time of client and server for each. \
               Bars are 95 % intervals: of the trials where there are several, else within the step. \
               With more callers than at the knee, the rate grows by less than 5 % and p99 rises; capacity is the \
               highest rate.",
        metrics: metric::THROUGHPUT_CHARTS,
        beside: &[],
    },
    Against {
        kind: "latency",
        title: "Latency",
        note: "Response time, from when a request was due. In a closed loop that is the service time; in an open loop \
               the service time, from when it was sent, is dashed. A quantile is shown where enough samples lie beyond it.",
        metrics: metric::LATENCY_CHARTS,
        beside: metric::SERVICE_CHARTS,
    },
];

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

/// Returns a chart of each kind for closed loops and one for open ones.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let charts = KINDS
        .iter()
        .flat_map(|kind| LOADS.iter().map(|load| chart(&groups, kind, load)));
    charts.collect()
}

fn chart(groups: &[Group<'_>], kind: &Against, load: &LoadAxis) -> Chart {
    let mut loads: Vec<f64> = groups
        .iter()
        .flat_map(|group| &group.measurements)
        .filter_map(|own| (load.of)(own.settings()))
        .collect();
    loads.dedup();
    // Of a single load, a line has nothing to show, and rows compare better.
    let single = match &loads[..] {
        [single] => Some(*single),
        _ => None,
    };
    let panels = kind.metrics.iter().enumerate().map(|(at, metric)| {
        let beside = kind.beside.get(at).filter(|_| load.variant.is_some());
        let series = series(groups, load, metric, beside.copied(), single.is_some());
        let mut title = match metric.unit {
            metric::Unit::CpuMicros => format!("{} per request", metric.label),
            _ => metric.label.to_owned(),
        };
        let unit = PageUnit::Of(metric.unit);
        if let Some(single) = single {
            title = format!("{title} at {}", load.axis.unit.shown(single));
            return Panel::rows(&title, unit, series);
        }
        let mut plane = Plane::new(load.axis, AxisScale::Log);
        plane.guides = guides(groups, metric, load);
        if unit != PageUnit::NANOS && is_flattened(&series) {
            title.push_str(", logarithmic");
        } else if unit != PageUnit::NANOS {
            plane.y = AxisScale::Linear;
        }
        Panel::rows(&title, unit, series).on(plane)
    });
    let text = [kind.kind, kind.title, kind.note];
    Chart {
        variant: load.variant,
        title: format!("{} against {}", kind.title, load.axis.title),
        ..Chart::new(text, load.axis.title, panels)
    }
}

/// Returns marks in a sweep of callers: where each series' rate stops to grow and, in the panel of the
/// rate, its capacity.
fn guides(groups: &[Group<'_>], metric: &Metric, load: &LoadAxis) -> Vec<Guide> {
    let mut guides = Vec::new();
    for group in groups.iter().filter(|_| load.variant.is_none()) {
        let all = &group.measurements;
        let Some(at) = knee_of(all) else { continue };
        let guide = |name, at| Guide {
            name,
            at,
            colour: group.colour,
        };
        let callers = all[at].settings().callers;
        guides.push(guide("knee", GuidePlace::X(callers as f64)));
        if metric == &metric::RATE {
            let rates = all.iter().map(|own| loads::value(metric, own));
            guides.push(guide("capacity", GuidePlace::Y(rates.fold(0.0, f64::max))));
        }
    }
    guides
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

/// Returns a line or a row for each group, and a dashed one for the metric beside.
fn series(
    groups: &[Group<'_>],
    load: &LoadAxis,
    metric: &Metric,
    beside: Option<&Metric>,
    in_rows: bool,
) -> Vec<Series> {
    let points = |group: &Group<'_>, metric: &Metric| {
        let mut points: Vec<Point> = Vec::new();
        for own in &group.measurements {
            match ((load.of)(own.settings()), estimate(metric, own)) {
                (Some(x), _) if in_rows => points.extend(bar(metric, own, x)),
                (Some(x), Some(estimate)) => points.push(Point::estimated(x, estimate)),
                _ => {}
            }
        }
        if !in_rows {
            points.sort_by(|a, b| a.x.value().total_cmp(&b.x.value()));
        }
        points
    };
    let mut all = Vec::new();
    for group in groups {
        let name = group.name.clone();
        all.push(Series::new(name, group.colour, points(group, metric)));
        all.extend(beside.map(|metric| Series {
            name: format!("{}, service time", group.name),
            colour: group.colour,
            dashed: true,
            points: points(group, metric),
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
