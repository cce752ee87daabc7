//! The cost of opening a connection, part by part.

use netping_measure::connect::ConnectPhase;
use netping_results::run::{Run, Step};

use crate::page::{
    chart::{Chart, Form, Mark, Panel, Point, Series},
    series::{load, step_series},
    unit::Unit,
};

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
            series.push(Series {
                name,
                colour: group.colour,
                dashed: false,
                points: stacked(step),
            });
        }
    }
    series.retain(|series| !series.points.is_empty());
    if series.is_empty() {
        return Vec::new();
    }
    let keys = parts()
        .enumerate()
        .map(|(colour, phase)| (phase.name(), colour))
        .collect();
    vec![Chart {
        kind: "connect",
        variant: None,
        title: "Opening a connection".to_owned(),
        note: "The mean time of each part, from looking up the name to the first verified reply. Means add up to the \
               whole; medians would not."
            .to_owned(),
        x_title: "part",
        keys,
        panels: vec![Panel {
            title: "mean time, part by part".to_owned(),
            unit: Unit::NANOS,
            form: Form::Rows,
            series,
        }],
    }]
}

/// The parts of the whole.
fn parts() -> impl Iterator<Item = ConnectPhase> {
    ConnectPhase::ALL
        .into_iter()
        .filter(|phase| *phase != ConnectPhase::Total)
}

/// The parts of a step, each beginning where the one before it ends.
fn stacked(step: &Step) -> Vec<Point> {
    let mut from = 0.0;
    let mut points = Vec::new();
    for (colour, phase) in parts().enumerate() {
        let Some(mean) = step.connect.get(&phase).and_then(|phase| phase.time.mean) else {
            continue;
        };
        points.push(Point::new(phase.name(), mean).marked(Mark::Bar {
            from,
            colour: Some(colour),
        }));
        from += mean;
    }
    points
}
