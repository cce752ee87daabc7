//! Throughput and cost of bulk streams, by their settings.

use netping_results::{
    metric::{self, Metric},
    run::Run,
};

use super::bar;
use crate::page::{
    chart::{Chart, Form, Panel, Series},
    series::{apart, of_run},
    unit::Unit,
};

const NOTE: &str = "The mean of the trials with its 95 % interval, and a dot for each trial. Names have the settings that differ.";

/// Returns the chart of bulk streams, if there are any.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let panels = metric::BULK.iter().map(|metric| {
        let title = metric.label;
        let rows = rows(runs, metric);
        Panel::new(title, Unit::Of(metric.unit), Form::Rows, rows)
    });
    let chart = Chart::new(["bulk", "Bulk streams", NOTE], "trials", panels);
    chart.into_iter().collect()
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
