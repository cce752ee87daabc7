//! The cost of opening a connection, part by part.

use netping_measure::connect::ConnectPhase;
use netping_results::run::{Run, Step};

use crate::page::{
    chart::{Chart, Mark, Panel, Point, Series},
    series::groups,
    unit::PageUnit,
};

const NOTE: &str = "The mean time of each part, from looking up the name to the first verified reply. Means add up to the \
                    whole; medians would not.";

/// Returns the chart of opening connections.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let several = groups.iter().any(|group| group.measurements.len() > 1);
    let mut series = Vec::new();
    for group in &groups {
        for own in &group.measurements {
            let name = if several {
                group.name_of(own)
            } else {
                group.name.clone()
            };
            for step in &own.trials {
                let trial = match own.trials.len() {
                    1 => String::new(),
                    _ => format!(", trial {}", step.trial),
                };
                let name = format!("{name}{trial}");
                series.push(Series::new(name, group.colour, points(step)));
            }
        }
    }
    let panel = Panel::rows("mean time, part by part", PageUnit::NANOS, series);
    let key = |(colour, phase): (usize, ConnectPhase)| {
        Series::new(phase.name().to_owned(), colour, Vec::new())
    };
    vec![Chart {
        keys: parts().enumerate().map(key).collect(),
        ..Chart::new(["connect", "Opening a connection", NOTE], "part", [panel])
    }]
}

/// The parts of the whole.
fn parts() -> impl Iterator<Item = ConnectPhase> {
    ConnectPhase::ALL
        .into_iter()
        .filter(|phase| *phase != ConnectPhase::Total)
}

/// Returns a bar of parts, each of which begins where the one before it ends.
fn points(step: &Step) -> Vec<Point> {
    let mut end = 0.0;
    let bar = |(colour, phase): (usize, ConnectPhase)| {
        let mean = step.connect.get(&phase)?.time.mean?;
        let from = end;
        end += mean;
        let colour = Some(colour);
        Some(Point::new(phase.name(), mean).marked(Mark::Bar { from, colour }))
    };
    parts().enumerate().filter_map(bar).collect()
}
