//! The spread of requests over connections.

use netping_measure::fairness::Fairness;
use netping_results::run::Run;

use super::most_points;
use crate::page::{
    chart::{Axis, Chart, Form, Joined, Panel, Plane, Point, Series},
    scale::Scale,
    series::{Group, groups},
    unit::Unit,
};

const NOTE: &str = "Requests of each connection, as a share of the mean, from the one with the fewest, at the load with the \
                    highest rate (its first trial): all at 100 % is fair. Of many connections, some are shown, the first \
                    and the last always.";

/// Returns the chart of the spread over connections, if it is known.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let groups = groups(runs);
    let lines: Vec<(&Group<'_>, String, &Fairness)> = groups
        .iter()
        .filter_map(|group| {
            let best = group.best()?;
            let fairness = best.first().fairness.as_ref();
            let fairness = fairness.filter(|own| !own.connections.is_empty())?;
            Some((group, group.name_of(best), fairness))
        })
        .collect();
    let series = |(group, name, fairness): &(&Group<'_>, String, &Fairness)| {
        let name = format!("{name}, Jain's index {:.3}", fairness.jain);
        let points = ranked(fairness, most_points(lines.len()));
        Series::new(name, group.colour, points)
    };
    let x = Axis {
        title: "connection, by its requests",
        unit: Unit::Count("from the least"),
        scale: Scale::Linear,
    };
    let panel = Panel::new(
        "requests, of the mean",
        Unit::Count("%"),
        Form::Plane(Plane {
            joined: Joined::None,
            ..Plane::new(x, Scale::Linear)
        }),
        lines.iter().map(series).collect(),
    );
    let chart = Chart::new(["fairness", "Fairness", NOTE], "connection", [panel]);
    chart.into_iter().collect()
}

/// The connections' requests, ascending, by rank from 1 on; at most about `most` of them.
fn ranked(fairness: &Fairness, most: usize) -> Vec<Point> {
    let connections = fairness.connections.iter();
    let mut requests: Vec<u64> = connections.map(|connection| connection.requests).collect();
    requests.sort_unstable();
    let each = requests.len().div_ceil(most).max(1);
    let last = requests.len().saturating_sub(1);
    let sum: u64 = requests.iter().sum();
    let mean = (sum as f64 / requests.len().max(1) as f64).max(f64::MIN_POSITIVE);
    let shown = requests
        .iter()
        .enumerate()
        .filter(|(rank, _)| rank % each == 0 || *rank == last);
    shown
        .map(|(rank, &requests)| Point {
            at: requests as f64 / mean * 100.0,
            ..Point::new(rank + 1, requests)
        })
        .collect()
}
