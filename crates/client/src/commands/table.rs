//! A run from a file, as the tables that its command printed.

use netping_measure::status::Status;
use netping_report::{
    ladder::in_words,
    table::{Column, Table, wrap},
};
use netping_results::{
    format::on_one_line,
    metric,
    run::{Run, Step},
};

use super::{bulk, columns, connect, throughput::Rows};
use crate::run::validity;

/// The columns of measurements that have trials: those before the metrics.
const LOAD: &str = "<target|callers|conns|planned/s|trials";

/// Returns the tables of a run, and what can be said of their validity.
pub fn table(mut run: Run) -> String {
    for step in &mut run.steps {
        step.target = on_one_line(&step.target);
        step.label = step.label.as_deref().map(on_one_line);
        step.settings.arrivals = on_one_line(&step.settings.arrivals);
    }
    for bulk in &mut run.bulk {
        bulk.target = on_one_line(&bulk.target);
    }
    let run = &run;
    let mut parts = Vec::new();
    if !run.bulk.is_empty() {
        parts.push(bulk::table(&run.bulk));
    }
    if run.steps.iter().any(|step| step.trial > 1) {
        parts.push(trials(&run.steps));
    } else {
        let mut rows = Rows::new();
        parts.extend(run.steps.iter().map(|step| {
            if step.settings.requests_per_connection == Some(1) && !step.connect.is_empty() {
                connect::describe(step)
            } else {
                rows.show(step)
            }
        }));
    }
    let differences: Vec<_> = run.differences.iter().collect();
    parts.extend(in_words(&differences).iter().map(|line| on_one_line(line)));
    if run.status == Status::Partial {
        parts.push("PARTIAL: it was interrupted, or is still going on".to_owned());
    }
    parts.push(validity::describe(run));
    wrap(&parts.join("\n"), usize::MAX)
}

/// Returns a row for each measurement: the trials of one target with one load.
fn trials(steps: &[Step]) -> String {
    let mut groups: Vec<Vec<&Step>> = Vec::new();
    for step in steps {
        match groups.iter_mut().find(|group| load(group[0]) == load(step)) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    let metrics = || metric::TRIALS.iter();
    let titles =
        metrics().flat_map(|metric| [Column::number(metric.title, 0), Column::number("+-", 0)]);
    let all: Vec<Column> = columns(LOAD).into_iter().chain(titles).collect();
    let row = |group: &Vec<&Step>| {
        let values = metrics().flat_map(|metric| {
            let estimate = metric.estimate(group);
            let half = estimate.and_then(|estimate| estimate.half_width);
            [
                metric.cell(estimate.map(|estimate| estimate.mean)),
                metric.cell(half),
            ]
        });
        let mut cells = load(group[0]);
        cells.push(group.len().to_string());
        cells.extend(values);
        cells
    };
    let rows: Vec<_> = groups.iter().map(row).collect();
    Table::whole(&all, &rows)
}

/// Returns what a measurement's trials have in common.
fn load(step: &Step) -> Vec<String> {
    let settings = &step.settings;
    vec![
        step.name().to_owned(),
        settings.callers.to_string(),
        settings.connections.to_string(),
        metric::RATE.cell(settings.planned_rate),
    ]
}
