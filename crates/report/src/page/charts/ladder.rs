//! The ladder: the value of each rung under each load.

use netping_results::{
    format::plural,
    metric::{self, Metric},
    run::{Kind, Run, StepSettings},
};

use super::bar;
use crate::page::{
    chart::{Chart, Form, Panel, Series},
    series::of_run,
    unit::Unit,
};

const NOTE: &str = "From the plainest server up. A bar is the mean of the rounds with its 95 % interval, with a dot for each round. \
                    Client and servers share a machine: compare rungs, not machines.";

/// Returns the chart of the rungs, if there are ladders.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let mut panels: Vec<Panel> = Vec::new();
    let ladders = runs.iter().enumerate();
    for (at, run) in ladders.filter(|(_, run)| run.kind == Kind::Ladder) {
        let mut names: Vec<&str> = Vec::new();
        for own in run.measurements() {
            let colour = names.iter().position(|name| *name == own.name());
            let colour = colour.unwrap_or_else(|| {
                names.push(own.name());
                names.len() - 1
            });
            let settings = own.settings();
            let metric = metric_of(settings);
            let name = of_run(runs, at, own.name());
            let row = Series::new(name, colour, bar(metric, &own, settings.callers));
            let title = title(settings);
            if let Some(panel) = panels.iter_mut().find(|panel| panel.title == title) {
                panel.series.push(row);
            } else {
                let unit = Unit::Of(metric.unit);
                panels.push(Panel::new(&title, unit, Form::Rows, vec![row]));
            }
        }
    }
    let chart = Chart::new(["ladder", "Ladder", NOTE], "callers", panels);
    chart.into_iter().collect()
}

/// Returns the metric that a rung is measured by: a round trip takes as long as it takes, and many
/// callers fill a server.
fn metric_of(settings: &StepSettings) -> &'static Metric {
    if settings.callers == 1 {
        &metric::P50
    } else {
        &metric::RATE
    }
}

/// Returns the title of the panel with all rungs under one load.
fn title(settings: &StepSettings) -> String {
    let (metric, callers) = (metric_of(settings), settings.callers);
    let mut title = format!("{}, {}", metric.label, plural(callers as u64, "caller"));
    if settings.connections < callers {
        let connections = plural(settings.connections as u64, "connection");
        title.extend([" on ", connections.as_str()]);
    }
    if let Some(message) = &settings.message {
        title.extend([", ", message.as_str(), " message"]);
    }
    title
}
