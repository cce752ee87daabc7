//! Charts of a value against the load: callers of a closed loop, the planned rate of an open one.

use netping_measure::statistics::knee::knee;
use netping_results::{
    estimate::estimate,
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
};

use super::bar;

use crate::page::{
    chart::{Axis, Chart, Exact, Form, Guide, Panel, Place, Plane, Point, Series},
    scale::Scale,
    series::{Group, groups},
    unit::Unit,
};

/// A kind of chart against the load.
pub(super) struct Against {
    pub(super) kind: &'static str,
    /// The beginning of the title.
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    /// A panel for each.
    pub(super) metrics: metric::List,
    /// A second metric for each, which open loops have, and the name of all of these.
    pub(super) beside: Option<(&'static str, metric::List)>,
}

/// The kind of load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Callers,
    Planned,
}

/// A chart for closed loops and one for open ones, where there are any.
pub(super) fn charts(runs: &[Run], against: &Against) -> Vec<Chart> {
    let groups = groups(runs);
    [Load::Callers, Load::Planned]
        .into_iter()
        .filter_map(|load| chart(&groups, against, load))
        .collect()
}

fn chart(groups: &[Group<'_>], against: &Against, load: Load) -> Option<Chart> {
    let mut loads: Vec<Exact> = groups
        .iter()
        .flat_map(|group| &group.measurements)
        .filter_map(|own| load.of(own.settings()))
        .collect();
    loads.dedup();
    // Of a single load, a line has nothing to show, and rows compare better.
    let single = match &loads[..] {
        [single] => Some(single.value()),
        _ => None,
    };
    let panels = against.metrics.iter().enumerate().map(|(at, metric)| {
        let beside = against.beside.filter(|_| load == Load::Planned);
        let beside = beside.map(|(name, metrics)| (name, metrics[at]));
        let series = series(groups, load, metric, beside, single.is_some());
        match single {
            Some(single) => rows(series, load, metric, single),
            None => plane(series, load, metric, guides(groups, metric, load)),
        }
    });
    let (variant, of, x_title) = match load {
        Load::Callers => (None, "callers", "callers"),
        Load::Planned => (Some("open"), "planned rate", "planned req/s"),
    };
    let chart = Chart::new([against.kind, against.title, against.note], x_title, panels)?;
    let title = format!("{} against {of}", against.title);
    Some(Chart {
        variant,
        title,
        ..chart
    })
}

impl Load {
    /// The load, where it is of this kind.
    fn of(self, settings: &StepSettings) -> Option<Exact> {
        match (self, settings.planned_rate) {
            (Self::Callers, None) => Some(settings.callers.into()),
            (Self::Planned, Some(rate)) => Some(rate.into()),
            _ => None,
        }
    }

    fn axis(self) -> Axis {
        match self {
            Self::Callers => Axis {
                title: "callers",
                unit: Unit::Count("callers"),
                scale: Scale::Log,
            },
            Self::Planned => Axis {
                title: "planned rate, req/s",
                unit: Unit::RATE,
                scale: Scale::Linear,
            },
        }
    }
}

/// Returns marks in a sweep of callers: where each series' rate stops to grow and, in the panel of the
/// rate, its capacity.
fn guides(groups: &[Group<'_>], metric: &Metric, load: Load) -> Vec<Guide> {
    if load == Load::Planned {
        return Vec::new();
    }
    let callers = |own: &Measurement<'_>| own.settings().callers;
    let of = |group: &Group<'_>| {
        let all = &group.measurements;
        let rises = all
            .windows(2)
            .all(|pair| callers(&pair[0]) < callers(&pair[1]));
        let points: Vec<_> = all
            .iter()
            .map(|own| {
                let rate = estimate(&metric::RATE, own).map_or(0.0, |own| own.value);
                let p99 = estimate(&metric::P99, own).map(|own| own.value as u64);
                (rate, p99)
            })
            .collect();
        let at = knee(&points).filter(|_| rises)?;
        let guide = |name, at| Guide {
            name,
            at,
            colour: group.colour,
        };
        let knee = guide("knee", Place::X(callers(&all[at]) as f64));
        let most = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
        let capacity = guide("capacity", Place::Y(most));
        let is_rate = metric == &metric::RATE;
        Some([Some(knee), is_rate.then_some(capacity)])
    };
    let marked = groups.iter().filter_map(of);
    marked.flatten().flatten().collect()
}

/// Series whose greatest values differ by more than this factor share no linear scale: the smaller
/// ones would be flat.
const FLATTENING: f64 = 4.0;

/// Returns true where one series flattens another on a linear scale, and a logarithm can show all of
/// their values.
fn is_flattened(series: &[Series]) -> bool {
    let values = || series.iter().flat_map(|series| &series.points);
    let most = |series: &Series| {
        let values = series.points.iter().map(|point| point.at);
        values.fold(0.0, f64::max)
    };
    let tops = || series.iter().filter(|own| !own.points.is_empty()).map(most);
    let (least, most) = (
        tops().fold(f64::INFINITY, f64::min),
        tops().fold(0.0, f64::max),
    );
    values().all(|point| point.at > 0.0) && most > FLATTENING * least
}

/// Returns a line or a row for each group, and a dashed one for the metric beside.
fn series(
    groups: &[Group<'_>],
    load: Load,
    metric: &Metric,
    beside: Option<(&str, &Metric)>,
    in_rows: bool,
) -> Vec<Series> {
    let points = |group: &Group<'_>, metric: &Metric| {
        let mut points: Vec<Point> = Vec::new();
        for own in &group.measurements {
            match (load.of(own.settings()), estimate(metric, own)) {
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
        let own = Series::new(group.name.clone(), group.colour, points(group, metric));
        all.push(own);
        all.extend(beside.map(|(name, metric)| Series {
            dashed: true,
            ..Series::new(
                format!("{}, {name}", group.name),
                group.colour,
                points(group, metric),
            )
        }));
    }
    all
}

/// Returns a panel with a row for each group.
fn rows(series: Vec<Series>, load: Load, metric: &Metric, single: f64) -> Panel {
    let at = load.axis().unit.shown(single);
    let title = format!("{} at {at}", title(metric));
    Panel::new(&title, Unit::Of(metric.unit), Form::Rows, series)
}

/// Returns a panel with a line for each group.
fn plane(series: Vec<Series>, load: Load, metric: &Metric, guides: Vec<Guide>) -> Panel {
    let is_time = metric.unit == metric::Unit::Nanos;
    let y = if is_time || is_flattened(&series) {
        Scale::Log
    } else {
        Scale::Linear
    };
    let mut title = title(metric);
    if y == Scale::Log && !is_time {
        title.push_str(", logarithmic");
    }
    let plane = Plane {
        guides,
        ..Plane::new(load.axis(), y)
    };
    Panel::new(&title, Unit::Of(metric.unit), Form::Plane(plane), series)
}

fn title(metric: &Metric) -> String {
    match metric.unit {
        metric::Unit::CpuMicros => format!("{} per request", metric.label),
        _ => metric.label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_far_above_the_others_asks_for_a_logarithm() {
        let series = |tops: &[f64]| -> Vec<Series> {
            let one = |top: &f64| {
                let points = [top / 9.0, *top].map(|value| Point::new(1_u64, value));
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
