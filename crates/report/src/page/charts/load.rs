//! Charts of a value against the load: callers of a closed loop, the planned rate of an open one.

use netping_measure::{distribution::Distribution, statistics::knee::knee};
use netping_results::{
    metric::{self, Metric},
    run::{Run, Step},
};

use crate::page::{
    chart::{Axis, Chart, Exact, Form, Guide, Mark, Panel, Place, Plane, Point, Series},
    scale::Scale,
    series::{StepSeries, step_series},
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
    /// A second value of the steps of an open loop, from other times, and its name.
    pub(super) beside: Option<(&'static str, Times)>,
}

/// One of a step's distributions of times.
type Times = fn(&Step) -> &Distribution;

/// A number of a step, and its 95 % interval.
type Value<'a> = &'a dyn Fn(&Step) -> Option<(f64, Option<[f64; 2]>)>;

/// The kind of load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Callers,
    Planned,
}

/// A chart for closed loops and one for open ones, where there are any.
pub(super) fn charts(runs: &[Run], against: &Against) -> Vec<Chart> {
    let groups = step_series(runs);
    [Load::Callers, Load::Planned]
        .into_iter()
        .filter_map(|load| chart(&groups, against, load))
        .collect()
}

fn chart(groups: &[StepSeries<'_>], against: &Against, load: Load) -> Option<Chart> {
    let mut loads: Vec<Exact> = groups
        .iter()
        .flat_map(|group| &group.steps)
        .filter_map(|step| load.of(step))
        .collect();
    loads.dedup();
    let metrics = against.metrics.iter();
    let panels = metrics.map(|metric| panel(groups, against, metric, load, &loads));
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
    /// The load of a step, where it is of this kind.
    fn of(self, step: &Step) -> Option<Exact> {
        match (self, step.settings.planned_rate) {
            (Self::Callers, None) => Some(step.settings.callers.into()),
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
fn guides(groups: &[StepSeries<'_>], metric: &Metric, load: Load) -> Vec<Guide> {
    if load == Load::Planned {
        return Vec::new();
    }
    let of = |group: &StepSeries<'_>| {
        let steps = &group.steps;
        let rises = steps
            .windows(2)
            .all(|pair| pair[0].settings.callers < pair[1].settings.callers);
        let point = |step: &&Step| (step.summary.rate, step.summary.response_time.quantile(99.0));
        let points: Vec<_> = steps.iter().map(point).collect();
        let at = knee(&points).filter(|_| rises)?;
        let guide = |name, at| Guide {
            name,
            at,
            colour: group.colour,
        };
        let knee = guide("knee", Place::X(steps[at].settings.callers as f64));
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

/// `loads` are those of all steps; of a single one, a line has nothing to show, and rows compare
/// better.
fn panel(
    groups: &[StepSeries<'_>],
    against: &Against,
    metric: &Metric,
    load: Load,
    loads: &[Exact],
) -> Panel {
    let title = match metric.unit {
        metric::Unit::CpuMicros => format!("{} per request", metric.label),
        _ => metric.label.to_owned(),
    };
    let mut series = Vec::new();
    for group in groups {
        let mut add = |name: String, dashed: bool, value: Value<'_>| {
            let point = |step: &&Step| {
                let (y, range) = value(step)?;
                Some(Point::new(load.of(step)?, y).with_range(range))
            };
            let mut points: Vec<Point> = group.steps.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.x.value().total_cmp(&b.x.value()));
            let own = Series::new(name, group.colour, points);
            series.push(Series { dashed, ..own });
        };
        add(group.name.clone(), false, &|step| {
            Some((metric.of_step(step)?, metric.interval(step)))
        });
        if let (Load::Planned, Some((name, times))) = (load, against.beside) {
            add(format!("{}, {name}", group.name), true, &|step| {
                Some((metric.of_times(times(step))?, None))
            });
        }
    }
    let (title, form) = if let [single] = loads {
        for series in &mut series {
            if let [only] = series.points.as_mut_slice() {
                only.mark = Mark::BAR;
            }
        }
        let at = load.axis().unit.shown(single.value());
        (format!("{title} at {at}"), Form::Rows)
    } else {
        let y = match metric.unit {
            metric::Unit::Nanos => Scale::Log,
            _ if is_flattened(&series) => Scale::Log,
            _ => Scale::Linear,
        };
        let title = if y == Scale::Log && metric.unit != metric::Unit::Nanos {
            title + ", logarithmic"
        } else {
            title
        };
        let plane = Plane {
            guides: guides(groups, metric, load),
            ..Plane::new(load.axis(), y)
        };
        (title, Form::Plane(plane))
    };
    Panel::new(&title, Unit::Of(metric.unit), form, series)
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
