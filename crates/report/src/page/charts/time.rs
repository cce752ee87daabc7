//! Rate and times, second by second.

use netping_measure::{interval::IntervalSummary, window::INTERVAL};
use netping_results::run::{Run, Step};

use super::most_points;
use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::fullest,
    unit::PageUnit,
};

/// The number of an interval.
type Number = fn(&IntervalSummary) -> Option<u64>;

/// The panels: titles, units, and the numbers of an interval.
const PANELS: [(&str, PageUnit, Number); 4] = [
    ("rate", PageUnit::RATE, |own| Some(own.ok)),
    ("p50 response time", PageUnit::NANOS, |own| own.response_p50),
    ("p99 response time", PageUnit::NANOS, |own| own.response_p99),
    ("longest response time", PageUnit::NANOS, |own| {
        own.response_max
    }),
];

const NOTE: &str = "Second by second, at the load with the highest rate, a line for each trial; a request lies where it ended. Warm-up, which is not \
                    measured, is shaded. A second without a reply has no time: the line is broken there. Of a long run, each point is the worst of the seconds up to the next.";

/// Returns the chart of what was measured second by second.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut lines: Vec<(String, usize, &Step)> = Vec::new();
    for own in fullest(runs) {
        let trials = own.measurement.trials.iter();
        let whole = trials.filter(|step| within(step).count() > 1);
        lines.extend(whole.map(|step| (own.name.clone(), own.colour, *step)));
    }
    let warm_ups = lines.iter().map(|(.., step)| step.settings.warmup_seconds);
    let warm_up = warm_ups.fold(0.0, f64::max);
    let most = most_points(lines.len());
    let seconds = lines.iter().map(|(.., step)| within(step).count());
    let longest_step = seconds.max().unwrap_or(0).div_ceil(most).max(1);
    let panel = |(title, unit, value): (&str, PageUnit, Number)| {
        let is_rate = unit == PageUnit::RATE;
        let point = |own: &IntervalSummary| {
            let mut point = Point::new(own.start_ns as f64, value(own)? as f64);
            if is_rate {
                // The file has replies and a length; the axis has their quotient.
                point.at *= 1e9 / own.length_ns as f64;
            }
            Some(point)
        };
        let series = |(name, colour, step): &(String, usize, &Step)| {
            let points = within(step).filter_map(point).collect();
            Series::new(name.clone(), *colour, thinned(points, most, is_rate))
        };
        let y = if is_rate {
            AxisScale::Linear
        } else {
            AxisScale::Log
        };
        let plane = Plane {
            shaded: (warm_up > 0.0).then_some(-warm_up * 1e9),
            joined: (longest_step as f64 + 0.5) * INTERVAL as f64,
            ..Plane::new(Axis::ELAPSED, y)
        };
        Panel::rows(title, unit, lines.iter().map(series).collect()).on(plane)
    };
    let panels = PANELS.map(panel);
    vec![Chart::new(["time", "Over time", NOTE], "from", panels)]
}

/// The intervals of the window.
pub(super) fn within(step: &Step) -> impl Iterator<Item = &IntervalSummary> {
    step.intervals
        .iter()
        .filter(|interval| interval.length_ns > 0)
}

/// At most `most` of the points: the worst one of each so many.
fn thinned(points: Vec<Point>, most: usize, less_is_worse: bool) -> Vec<Point> {
    let each = points.len().div_ceil(most).max(1);
    if each == 1 {
        return points;
    }
    let badness = |point: &Point| if less_is_worse { -point.at } else { point.at };
    let chunks = points.chunks(each);
    let worst = chunks.filter_map(|some| {
        let all = some.iter();
        all.max_by(|a, b| badness(a).total_cmp(&badness(b)))
    });
    worst.cloned().collect()
}
