//! The spread of requests over connections.

use netping_measure::fairness::Fairness;
use netping_results::run::Run;

use super::most_points;
use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Fullest, fullest},
    unit::PageUnit,
};

const NOTE: &str = "Requests of each connection, as a share of the mean, from the one with the fewest, at the load with the \
                    highest rate (its first trial): all at 100 % is fair. Of many connections, some are shown, the first \
                    and the last always.";

/// Returns the chart of the spread over connections.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let spread = |own: Fullest<'_>| {
        let fairness = own.measurement.first().fairness.clone();
        let fairness = fairness.filter(|spread| !spread.connections.is_empty())?;
        let name = format!("{}, Jain's index {:.3}", own.name, fairness.jain);
        Some((name, own.colour, fairness))
    };
    let lines: Vec<_> = fullest(runs).into_iter().filter_map(spread).collect();
    let most = most_points(lines.len());
    let series = lines
        .into_iter()
        .map(|(name, colour, fairness)| Series::new(name, colour, ranked(&fairness, most)));
    let x = Axis {
        title: "connection, by its requests",
        unit: PageUnit::Count("from the least"),
        scale: AxisScale::Linear,
    };
    let plane = Plane {
        joined: 0.0,
        ..Plane::new(x, AxisScale::Linear)
    };
    let panel = Panel::rows(
        "requests, of the mean",
        PageUnit::Count("%"),
        series.collect(),
    );
    let text = ["fairness", "Fairness", NOTE];
    vec![Chart::new(text, "connection", [panel.on(plane)])]
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
    let ranks = (0..requests.len()).filter(|rank| rank % each == 0 || *rank == last);
    let point = |rank: usize| {
        let point = Point::new((rank + 1) as f64, requests[rank] as f64);
        let at = point.y / mean * 100.0;
        Point { at, ..point }
    };
    ranks.map(point).collect()
}
