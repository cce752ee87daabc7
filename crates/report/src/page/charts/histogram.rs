//! The histogram that a short look shows in the terminal.

use netping_measure::times::Time;
use netping_results::run::{Kind, Measurement, Run};

use crate::{
    bars::buckets,
    page::{
        chart::{Axis, Chart, Mark, Panel, Plane, Point, Series},
        scale::AxisScale,
        series::{Group, groups},
        unit::PageUnit,
    },
};

const NOTE: &str = "A bar for the responses whose time lies between its two sides.";

const TIME: Axis = Axis {
    title: "response time",
    unit: PageUnit::NANOS,
    scale: AxisScale::Log,
};

/// Returns the chart of the response times of a short look.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let are_looks = runs.iter().all(|run| run.kind == Kind::Quick);
    let groups = groups(runs);
    let shown = groups.iter().filter(|_| are_looks);
    let panels = shown.filter_map(|group| Some(panel(group, group.measurements.last()?)));
    vec![Chart::new(
        ["histogram", "Response times", NOTE],
        "from",
        panels,
    )]
}

/// Returns the histogram of the last load of a target, as the terminal does.
fn panel(group: &Group<'_>, own: &Measurement<'_>) -> Panel {
    let times = &own.first().histograms.times[Time::Response];
    let bar = |([from, until], count): ([u64; 2], u64)| {
        let until = until as f64;
        Point {
            aside: Some(format!("up to {}", PageUnit::NANOS.shown(until))),
            ..Point::new(from as f64, count as f64).marked(Mark::Column { until })
        }
    };
    let bars = buckets(times).into_iter().map(bar).collect();
    let series = Series::new(group.name.clone(), group.colour, bars);
    let title = format!("responses of {}", group.name_of(own));
    let plane = Plane::new(TIME, AxisScale::Linear);
    Panel::rows(&title, PageUnit::Count("responses"), vec![series]).on(plane)
}
