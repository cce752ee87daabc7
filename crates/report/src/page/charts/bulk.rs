//! Throughput and cost of bulk streams, by their settings.

use netping_results::{
    metric::{self, Metric},
    run::Run,
};

use super::{strip, strips};
use crate::page::{
    chart::{Chart, Series},
    series::{apart, of_run},
};

const NOTE: &str = "A dot for each trial, their mean, and its 95 % interval. Rows are named by the settings that differ.";

/// Returns the chart of bulk streams.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let panel = |metric: &&Metric| strips(metric.label, metric, rows(runs, metric));
    let steps = runs.iter().flat_map(|run| &run.steps);
    let panels = metric::BULK
        .iter()
        .chain(metric::of_probes(steps))
        .map(panel);
    vec![Chart::new(["bulk", "Bulk streams", NOTE], "trials", panels)]
}

/// Returns a row for each measurement of bulk streams.
fn rows(runs: &[Run], metric: &Metric) -> Vec<Series> {
    let mut rows = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let mut all = run.measurements();
        all.retain(|own| own.settings().bulk.is_some());
        let names = apart(&all.iter().collect::<Vec<_>>());
        for (own, words) in all.iter().zip(names.values()) {
            let name = of_run(runs, at, &words.join(", "));
            rows.push(Series::new(name, rows.len(), strip(metric, own, "all")));
        }
    }
    rows
}
