//! The cost of opening a connection, part by part.

use netping_measure::connect::ConnectPhase;
use netping_results::run::{Run, Step};

use super::stacked;
use crate::page::{
    chart::{Chart, Form, Panel, Point, Series},
    series::{load, step_series},
    unit::Unit,
};

const NOTE: &str = "The mean time of each part, from looking up the name to the first verified reply. Means add up to the \
                    whole; medians would not.";

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = step_series(runs);
    let several = groups.iter().any(|group| group.steps.len() > 1);
    let mut series = Vec::new();
    for group in &groups {
        for step in &group.steps {
            let trial = if step.trial > 1 {
                format!(", trial {}", step.trial)
            } else {
                String::new()
            };
            let name = if several {
                format!("{}, {}{trial}", group.name, load(step))
            } else {
                group.name.clone()
            };
            series.push(Series::new(name, group.colour, points(step)));
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

fn points(step: &Step) -> Vec<Point> {
    let mean = |phase| step.connect.get(&phase).and_then(|phase| phase.time.mean);
    let parts = parts().enumerate();
    stacked(parts.filter_map(|(colour, phase)| Some((phase.name(), colour, mean(phase)?))))
}
