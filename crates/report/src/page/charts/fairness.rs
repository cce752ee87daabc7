//! The spread of requests over connections.

use netping_measure::fairness::{Fairness, PerConnection};
use netping_results::run::Run;

use super::most_points;
use crate::page::{
    chart::{Axis, Chart, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Fullest, fullest},
    unit::PageUnit,
};

const NOTE: &str = "Above, the requests of each connection as a share of the mean, in ascending order: 100 % everywhere is fair. Below, the mean \
                    service time of the same connections. The load is the one with the highest rate, in its first trial. Of many connections, some \
                    are shown, always with the first, the last and the slow ones.";

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
    let (mut requests, mut times) = (Vec::new(), Vec::new());
    for (name, colour, fairness) in lines {
        let ranked = ranked(&fairness, most);
        let shares = shares(&fairness, &ranked);
        requests.push(Series::new(name.clone(), colour, shares));
        times.push(Series::new(name, colour, means(&ranked)));
    }
    let panels = [
        (
            "requests, as a share of the mean",
            PageUnit::Count("%"),
            AxisScale::Linear,
            requests,
        ),
        ("mean service time", PageUnit::NANOS, AxisScale::Log, times),
    ];
    let panels = panels.map(|(title, unit, scale, series)| {
        let x = Axis {
            title: "connections, by their requests",
            unit: PageUnit::Rank,
            scale: AxisScale::Linear,
        };
        let plane = Plane {
            is_joined: false,
            ..Plane::new(x, scale)
        };
        Panel::rows(title, unit, series).on(plane)
    });
    let text = ["fairness", "Requests by connection", NOTE];
    vec![Chart::new(text, "connection", panels)]
}

/// Returns the connections by their requests, ascending, with their ranks from 1 on: about `most` of
/// them, and all that are slow.
fn ranked(fairness: &Fairness, most: usize) -> Vec<(f64, PerConnection)> {
    let mut connections = fairness.connections.clone();
    connections.sort_by_key(|connection| connection.requests);
    let each = connections.len().div_ceil(most).max(1);
    let last = connections.len().saturating_sub(1);
    let ranked = connections.into_iter().enumerate();
    let shown = ranked.filter(|(rank, own)| rank % each == 0 || *rank == last || own.slow);
    shown.map(|(rank, own)| ((rank + 1) as f64, own)).collect()
}

/// Returns the requests of these connections, drawn as shares of the mean of all.
fn shares(fairness: &Fairness, ranked: &[(f64, PerConnection)]) -> Vec<Point> {
    let all = &fairness.connections;
    let sum: u64 = all.iter().map(|connection| connection.requests).sum();
    let mean = (sum as f64 / all.len().max(1) as f64).max(f64::MIN_POSITIVE);
    let point = |(rank, own): &(f64, PerConnection)| Point {
        at: own.requests as f64 / mean * 100.0,
        aside: aside(own),
        ..Point::new(*rank, own.requests as f64)
    };
    ranked.iter().map(point).collect()
}

/// Returns the mean times of those with replies.
fn means(ranked: &[(f64, PerConnection)]) -> Vec<Point> {
    let answered = ranked.iter().filter(|(_, own)| own.requests > 0);
    let point = |(rank, own): &(f64, PerConnection)| Point {
        aside: aside(own),
        ..Point::new(*rank, own.mean)
    };
    answered.map(point).collect()
}

/// Returns what is told of a slow connection: the ends of its socket, where they are known.
fn aside(own: &PerConnection) -> Option<String> {
    let port = own.local_port.map(|port| format!(", local port {port}"));
    let server = own.server.map(|server| format!(", to {server}"));
    own.slow
        .then(|| "slow".to_owned() + &port.unwrap_or_default() + &server.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_connections_are_always_shown_and_named() {
        let connection = |at: u64| PerConnection {
            requests: 1000 - at,
            mean: 1e6,
            local_port: Some(40_000 + at as u16),
            slow: at == 501,
            ..PerConnection::default()
        };
        let fairness = Fairness::of((0..1000).map(connection).collect()).unwrap();
        let ranked = ranked(&fairness, 10);
        let ranks: Vec<f64> = ranked.iter().map(|(rank, _)| *rank).collect();
        assert_eq!(ranks.len(), 12);
        assert_eq!(ranks[4..8], [401.0, 499.0, 501.0, 601.0]);
        let shares = shares(&fairness, &ranked);
        let told: Vec<&String> = shares.iter().filter_map(|own| own.aside.as_ref()).collect();
        assert_eq!(told, ["slow, local port 40501"]);
        assert_eq!(means(&ranked).len(), 12);
    }
}
