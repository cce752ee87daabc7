//! The ladder: the value of each rung under each load.

use netping_results::{
    metric::Metric,
    run::{Kind, Measurement, Run, StepSettings},
};

use super::bar;
use crate::{
    distinct, grouped,
    ladder::metric_of,
    loads::load_of,
    page::{
        chart::{Chart, Panel, Series},
        series::of_run,
        unit::PageUnit,
    },
};

const NOTE: &str = "From the plainest server up. A bar is the mean of the rounds with its 95 % interval, with a dot for each round. \
                    Client and servers share a machine: compare rungs, not machines.";

/// Returns the chart of the rungs.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut rows = Vec::new();
    let ladders = runs.iter().enumerate();
    for (at, run) in ladders.filter(|(_, run)| run.kind == Kind::Ladder) {
        let all = run.measurements();
        let names = distinct(all.iter().map(Measurement::name));
        for own in &all {
            let (metric, settings) = (metric_of(own.settings()), own.settings());
            let colour = names.iter().position(|name| *name == own.name());
            let name = of_run(runs, at, own.name());
            let points = bar(metric, own, settings.callers as f64);
            let row = Series::new(name, colour.unwrap_or_default(), points);
            rows.push(((title(metric, settings), PageUnit::Of(metric.unit)), row));
        }
    }
    let panels = grouped(rows.into_iter()).into_iter();
    let panels = panels.map(|((title, unit), rows)| Panel::rows(&title, unit, rows));
    vec![Chart::new(["ladder", "Ladder", NOTE], "callers", panels)]
}

/// Returns the title of the panel with all rungs under one load.
fn title(metric: &Metric, settings: &StepSettings) -> String {
    let message = settings.message.as_ref();
    let message = message.map(|name| format!(", {name} message"));
    let load = load_of(settings);
    format!("{}, {load}{}", metric.label, message.unwrap_or_default())
}
