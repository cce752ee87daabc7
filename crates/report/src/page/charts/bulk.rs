//! Throughput and cost of bulk streams, by their settings.

use netping_results::{
    metric::{self, Metric},
    run::Run,
};

use super::bar;
use crate::page::{
    chart::{Chart, Panel, Series},
    series::{apart, of_run},
    unit::PageUnit,
};

const NOTE: &str = "The mean of the trials with its 95 % interval, and a dot for each trial. Names have the settings that differ.";

/// Returns the chart of bulk streams.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let panel = |metric: &&Metric| {
        let unit = PageUnit::Of(metric.unit);
        Panel::rows(metric.label, unit, rows(runs, metric))
    };
    let panels = metric::BULK.iter().map(panel);
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
            rows.push(Series::new(name, rows.len(), bar(metric, own, "all")));
        }
    }
    rows
}
