//! The cost of opening a connection, part by part.

use netping_measure::connect::ConnectPhase;
use netping_results::run::{Run, Step};

use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    series::groups,
    unit::Unit,
};

const NOTE: &str = "The mean time of each part, from looking up the name to the first verified reply. Means add up to the \
                    whole; medians would not.";

/// Returns the chart of opening connections, if that was measured.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let several = groups.iter().any(|group| group.measurements.len() > 1);
    let mut series = Vec::new();
    for group in &groups {
        for own in &group.measurements {
            for step in &own.trials {
                let mut name = if several {
                    group.name_of(own)
                } else {
                    group.name.clone()
                };
                if own.trials.len() > 1 {
                    name.extend([", trial ", &step.trial.to_string()]);
                }
                series.push(Series::new(name, group.colour, points(step)));
            }
        }
    }
    let panel = Panel::new("mean time, part by part", Unit::NANOS, Form::Rows, series);
    let chart = Chart::new(["connect", "Opening a connection", NOTE], "part", [panel]);
    let keys = parts().enumerate();
    let keys: Vec<_> = keys.map(|(colour, phase)| (phase.name(), colour)).collect();
    chart
        .map(|chart| Chart { keys, ..chart })
        .into_iter()
        .collect()
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
