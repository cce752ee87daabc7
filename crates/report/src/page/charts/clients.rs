//! The clients of merged runs beside each other.

use netping_measure::statistics::outliers::median;
use netping_results::{
    metric::{self, Metric},
    run::{Kind, PartStep, Run, Step},
};

use super::strips;
use crate::page::chart::{Chart, Mark, Panel, Point, Series};

const NOTE: &str = "A dot for each client of a load, and their median. One that is far off the others has another machine or network, or other \
                    programs beside it.";

/// Returns the chart of the clients' rates and response times.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let merged = || {
        let runs = runs.iter();
        runs.filter(|run| !run.parts.is_empty() && run.kind != Kind::Bulk)
    };
    let panel = |title, metric: &Metric, of: &dyn Fn(&PartStep) -> Option<(f64, bool)>| -> Panel {
        let rows = merged().flat_map(|run| rows(run, of));
        strips(title, metric, rows.collect())
    };
    if merged().next().is_none() {
        return Vec::new();
    }
    let times = |metric: &'static Metric| {
        move |step: &PartStep| {
            let times = step.response_time.as_ref()?;
            Some((metric.of_times(times)?, metric.is_bound(times)))
        }
    };
    let panels = [
        panel("rate of each client", &metric::RATE, &|step| {
            Some((step.rate, false))
        }),
        panel("p50 of each client", &metric::P50, &times(&metric::P50)),
        panel("p99 of each client", &metric::P99, &times(&metric::P99)),
    ];
    vec![Chart::new(
        ["clients", "Clients beside each other", NOTE],
        "client",
        panels,
    )]
}

/// Returns a row for each load of a run, with the clients' median, and a dot for each of which the value is known, or a
/// lower bound of it.
fn rows(run: &Run, of: &dyn Fn(&PartStep) -> Option<(f64, bool)>) -> Vec<Series> {
    let steps = run.steps.iter().enumerate();
    let row = |(at, step): (usize, &Step)| {
        let values = run.parts.iter().filter_map(|part| {
            let value = of(part.steps.get(at)?)?;
            Some((&part.host, value))
        });
        let values: Vec<(&String, (f64, bool))> = values.collect();
        if values.is_empty() {
            return None;
        }
        let middle = median(values.iter().map(|(_, (value, _))| *value));
        let mut points = vec![Point::new("median", middle).marked(Mark::Mean)];
        let dots = values.into_iter();
        points.extend(dots.map(|(host, (value, is_bound))| Point {
            is_bound,
            ..Point::new(host.as_str(), value)
        }));
        let name = format!("{}, {}", step.name(), step.settings.load_in_words());
        Some(Series::new(name, 0, points))
    };
    steps.filter_map(row).collect()
}
