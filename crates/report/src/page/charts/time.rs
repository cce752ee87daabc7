//! How rate and times went, second by second.

use super::most_points;
use crate::{
    page::{
        chart::{Axis, Chart, Form, Panel, Point, Series},
        scale::Scale,
        strand::{load, strands},
        unit::Unit,
    },
    run::{IntervalSummary, Run, Step},
};

/// What a panel shows of an interval.
struct Shown {
    title: &'static str,
    unit: Unit,
    scale: Scale,
    value: fn(&IntervalSummary) -> Option<Point>,
    less_is_worse: bool,
}

const PANELS: [Shown; 4] = [
    Shown {
        title: "rate",
        unit: Unit::Rate,
        scale: Scale::Linear,
        value: |interval| Some(rate(interval)),
        less_is_worse: true,
    },
    times("p50 response time", |interval| Some(Point::new(interval.start_ns, interval.response_p50?))),
    times("p99 response time", |interval| Some(Point::new(interval.start_ns, interval.response_p99?))),
    times("longest response time", |interval| Some(Point::new(interval.start_ns, interval.response_max?))),
];

const fn times(title: &'static str, value: fn(&IntervalSummary) -> Option<Point>) -> Shown {
    Shown { title, unit: Unit::Nanos, scale: Scale::Log, value, less_is_worse: false }
}

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut lines: Vec<(String, usize, &Step)> = Vec::new();
    for strand in strands(runs) {
        for step in strand.best().into_iter().filter(|step| within(step).count() > 1) {
            lines.push((format!("{}, {}", strand.name, load(step)), strand.colour, step));
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let warm_up = lines.iter().map(|(.., step)| step.settings.warmup_seconds).fold(0.0, f64::max);
    let shaded = (warm_up > 0.0).then_some(-warm_up * 1e9);
    let x = Axis { title: "since the window's start", unit: Unit::Nanos, scale: Scale::Linear };
    let panel = |shown: &Shown| Panel {
        title: shown.title.to_owned(),
        unit: shown.unit,
        form: Form::Plane { x, y: shown.scale, shaded },
        series: lines
            .iter()
            .map(|(name, colour, step)| Series {
                name: name.clone(),
                colour: *colour,
                dashed: false,
                points: thinned(
                    within(step).filter_map(shown.value).collect(),
                    most_points(lines.len()),
                    shown.less_is_worse,
                ),
            })
            .filter(|series| !series.points.is_empty())
            .collect(),
    };
    vec![Chart {
        kind: "time",
        variant: None,
        title: "Over time".to_owned(),
        note:
            "Second by second, at the load with the highest rate, a line for each trial; a request lies where it ended. Warm-up, which is not \
               measured, is shaded. Of a long run, each point is the worst of the seconds up to the next."
                .to_owned(),
        x_title: "from",
        keys: Vec::new(),
        panels: PANELS.iter().map(panel).filter(|panel| !panel.series.is_empty()).collect(),
    }]
}

/// The intervals of the window.
fn within(step: &Step) -> impl Iterator<Item = &IntervalSummary> {
    step.intervals.iter().filter(|interval| interval.length_ns > 0)
}

/// The file has replies and a length; the axis has their quotient.
fn rate(interval: &IntervalSummary) -> Point {
    let at = interval.ok as f64 * 1e9 / interval.length_ns as f64;
    Point { at, ..Point::new(interval.start_ns, interval.ok) }
}

/// At most `most` of the points: the worst one of each so many.
fn thinned(points: Vec<Point>, most: usize, less_is_worse: bool) -> Vec<Point> {
    let each = points.len().div_ceil(most).max(1);
    if each == 1 {
        return points;
    }
    let badness = |point: &Point| if less_is_worse { -point.at } else { point.at };
    points
        .chunks(each)
        .filter_map(|some| some.iter().max_by(|a, b| badness(a).total_cmp(&badness(b))).cloned())
        .collect()
}
