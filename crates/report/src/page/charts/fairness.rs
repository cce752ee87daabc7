//! The spread of requests over connections.

use netping_results::run::{Run, Step};

use super::most_points;
use crate::page::{
    chart::{Axis, Chart, Form, Panel, Point, Series},
    scale::Scale,
    series::{load, step_series},
    unit::Unit,
};

pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = step_series(runs);
    let steps: Vec<_> = groups
        .iter()
        .filter_map(|group| {
            let step = *group.best().first()?;
            let fairness = step
                .fairness
                .as_ref()
                .filter(|fairness| !fairness.connections.is_empty())?;
            Some((group, step, fairness))
        })
        .collect();
    if steps.is_empty() {
        return Vec::new();
    }
    let series = steps
        .iter()
        .map(|(group, step, fairness)| Series {
            name: format!(
                "{}, {}, Jain's index {:.3}",
                group.name,
                load(step),
                fairness.jain
            ),
            colour: group.colour,
            dashed: false,
            points: ranked(step, most_points(steps.len())),
        })
        .collect();
    let x = Axis {
        title: "connection, by its requests",
        unit: Unit::Count("from the least"),
        scale: Scale::Linear,
    };
    let form = Form::Plane {
        x,
        y: Scale::Linear,
        shaded: None,
    };
    vec![Chart {
        kind: "fairness",
        variant: None,
        title: "Fairness".to_owned(),
        note:
            "Requests of each connection, from the one with the fewest, at the load with the highest rate (its first \
               trial): a level line is fair. Of many connections, some are shown, the first and the last always."
                .to_owned(),
        x_title: "connection",
        keys: Vec::new(),
        panels: vec![Panel {
            title: "requests per connection".to_owned(),
            unit: Unit::Count("requests"),
            form,
            series,
        }],
    }]
}

/// The connections' requests, ascending, by rank from 1 on; at most about `most` of them.
fn ranked(step: &Step, most: usize) -> Vec<Point> {
    let connections = step
        .fairness
        .iter()
        .flat_map(|fairness| &fairness.connections);
    let mut requests: Vec<u64> = connections.map(|connection| connection.requests).collect();
    requests.sort_unstable();
    let each = requests.len().div_ceil(most).max(1);
    let last = requests.len().saturating_sub(1);
    let shown = requests
        .iter()
        .enumerate()
        .filter(|(rank, _)| rank % each == 0 || *rank == last);
    shown
        .map(|(rank, &requests)| Point::new(rank + 1, requests))
        .collect()
}
