//! Trials of several targets: a table for each, and how it compares with the first.

use netping_results::{
    comparison::Compared,
    estimate::estimate,
    format::{plural, thousands},
    metric::{self, Metric},
    run::{Measurement, Run},
};

use crate::{
    finding::{change, change_interval, hold_together, interval, missing, shown, value},
    table::{Column, Table},
};

const COLUMNS: [Column; 6] = [
    Column::text("measure", 0),
    Column::number("value", 0),
    Column::number("95% interval", 0).spare(1),
    Column::number("to first", 0),
    Column::number("95% interval", 0).spare(2),
    Column::text("shown", 0),
];

/// Those of a target that is not compared with another.
const ALONE: usize = 3;

/// Returns a table for each measurement, and how to read them.
pub(super) fn text(run: &Run) -> String {
    let compared = run.compared();
    let mut parts = Vec::new();
    for measurement in run.measurements() {
        let mut pairs = compared.iter();
        let pair = pairs.find(|own| own.new.number == measurement.number);
        let columns = &COLUMNS[..if pair.is_some() { COLUMNS.len() } else { ALONE }];
        let rows: Vec<Vec<String>> = metric::TRIALS
            .iter()
            .map(|metric| row(metric, &measurement, pair))
            .collect();
        parts.push(heading(&measurement));
        parts.push(Table::whole(columns, &rows));
        if measurement.unserved() > 0 {
            parts.push(
                "requests failed on this target: its times are of those that did not".to_owned(),
            );
        }
        parts.extend(missing(metric::TRIALS, &measurement));
    }
    let connections = |own: &Measurement<'_>| own.settings().connections;
    if compared
        .iter()
        .any(|own| connections(&own.base) != connections(&own.new))
    {
        parts.push(
            "The targets differ in connections, which may be what the differences show; --connections sets them alike."
                .to_owned(),
        );
    }
    parts.push(legend(run, &compared));
    parts.join("\n")
}

/// Returns the line above a target's table.
fn heading(measurement: &Measurement<'_>) -> String {
    let (step, settings) = (measurement.first(), measurement.settings());
    let name = match &step.label {
        Some(label) => format!("{}  {label}", step.target),
        None => step.target.clone(),
    };
    let rate = settings
        .planned_rate
        .map(|rate| format!("{} req/s planned, ", thousands(rate)));
    format!(
        "{name}  {}{} on {}",
        rate.unwrap_or_default(),
        plural(settings.callers as u64, "caller"),
        plural(settings.connections as u64, "connection")
    )
}

fn row(
    metric: &'static Metric,
    measurement: &Measurement<'_>,
    pair: Option<&Compared<'_>>,
) -> Vec<String> {
    let own = estimate(metric, measurement);
    let mut row = vec![
        metric.title.to_owned(),
        value(metric, own),
        interval(metric, own),
    ];
    if let Some(pair) = pair {
        row.extend(pair.by(metric).map_or_else(Default::default, |by| {
            [change(by), change_interval(by), shown(by)]
        }));
    }
    row
}

/// Explains the tables.
fn legend(run: &Run, compared: &[Compared<'_>]) -> String {
    let trials = run.measurements().iter().map(|own| own.trials.len()).max();
    let mut sentences = vec![format!(
        "{} of each, in random order. A value is the mean of the trials on a logarithmic scale, each counting once.",
        plural(trials.unwrap_or(0) as u64, "trial")
    )];
    if !compared.is_empty() {
        let hold = hold_together(run.family().claims);
        sentences.push(format!(
            "Differences to the first target are taken within each trial. One is shown where its interval leaves out 0; {hold} \
             (Student's t-test on logarithms). 'could have seen': found in 80 % of such trials."
        ));
    }
    if run.looks > 1 {
        let looks = run.looks;
        sentences.push(format!(
            "The intervals are widened for the {looks} times at which the trials could end."
        ));
    }
    if compared.iter().any(|own| own.is_control) {
        sentences.push(
            "A/A, the control: the first target again; no difference that is smaller than theirs is shown."
                .to_owned(),
        );
    }
    if let Some(margin) = run.margin {
        let percent = margin * 100.0;
        sentences.push(format!(
            "'equivalent': the same to within {percent}%, by two one-sided tests."
        ));
    }
    sentences.join(" ")
}
