//! Trials of several targets: a table for each, and how it compares with the first.

use netping_results::{
    anatomy::AnatomySummary,
    comparison::Compared,
    estimate::estimate,
    format::{self, plural},
    metric::{self, Metric},
    run::{Measurement, Run},
};

use super::anatomy;
use crate::{
    finding::{
        FAILED_TIMES, change_cells, connections, hold_together, interval, marked, missing, pair_of,
        reading_of, value,
    },
    grouped,
    loads::most_trials,
    table::{Column, Table},
    verdict::is_valid,
    words::on_connections,
};

const COLUMNS: [Column; 6] = [
    Column::text("measure"),
    Column::number("value"),
    Column::number("95% interval").spare(1),
    Column::number("to first"),
    Column::number("95% interval").spare(2),
    Column::text("shown"),
];

/// Those of a target that is not compared with another.
const ALONE: usize = 3;

/// Returns a table for each measurement, and how to read them.
pub(super) fn text(run: &Run) -> String {
    let compared = run.compared();
    let mut parts = Vec::new();
    for measurement in run.measurements() {
        let pair = pair_of(&compared, &measurement);
        let columns = &COLUMNS[..if pair.is_some() { COLUMNS.len() } else { ALONE }];
        let row = |metric: &&'static Metric| {
            let own = estimate(metric, &measurement);
            let reading = reading_of(metric, [own]);
            let name = metric.title_in(reading);
            let mut row = vec![name, value(reading, own), interval(reading, own)];
            row.extend(
                pair.into_iter()
                    .flat_map(|pair| change_cells(pair.by(metric))),
            );
            row
        };
        let mut metrics = run.compared_by(measurement.settings()).to_vec();
        metrics.extend(metric::of_streams(measurement.trials.iter().copied()));
        let rows: Vec<_> = metrics.iter().map(row).collect();
        parts.push(heading(&measurement));
        parts.push(Table::whole(columns, &rows));
        let of_trials = measurement.trials.iter();
        let own = AnatomySummary::sum(of_trials.filter_map(|step| step.anatomy.as_ref()));
        parts.extend(own.map(|own| anatomy::block(&own, measurement.settings())));
        if measurement.unserved() > 0 {
            parts.push(format!("requests failed on this target: {FAILED_TIMES}"));
        }
        parts.extend(missing(&metrics, &measurement));
    }
    let targets = grouped(run.measurements().into_iter().map(|own| (own.name(), own)));
    let is_valid = is_valid(run);
    parts.extend(
        targets
            .iter()
            .filter_map(|(_, loads)| on_connections(loads))
            .map(|sentence| marked(sentence, is_valid)),
    );
    let is_unequal = |own: &Compared<'_>| !own.new.has_connections_like(&own.base);
    if compared.iter().any(is_unequal) {
        parts.push(
            "Targets whose connections differ are not ranked: the differences may be those of connections alone."
                .to_owned(),
        );
    }
    parts.push(legend(run, &compared));
    parts.join("\n")
}

/// Returns the line above a target's table.
fn heading(measurement: &Measurement<'_>) -> String {
    let (step, settings) = (measurement.first(), measurement.settings());
    let rate = settings.planned_rate;
    let rate = rate.map(|rate| format!("{} req/s planned, ", format::rate(rate)));
    format!(
        "{}  {}{} on {}",
        step.full_name(),
        rate.unwrap_or_default(),
        plural(settings.callers as u64, "caller"),
        connections(settings)
    )
}

/// Explains the tables.
fn legend(run: &Run, compared: &[Compared<'_>]) -> String {
    let mut sentences = vec![format!(
        "{} of each, in random order. A value is the mean of the trials on a logarithmic scale, each counting once.",
        plural(most_trials(run), "trial")
    )];
    if !compared.is_empty() {
        let hold = hold_together(run.family().claims);
        sentences.push(format!(
            "Differences to the first target are taken within each trial. One is shown where its interval leaves out 0; {hold} \
             ({}). 'could have seen': a difference that 80 % of such runs would show.",
            if run.is_sequential() { "Bayes factors of logarithms" } else { "Student's t-test on logarithms" },
        ));
    }
    if run.is_sequential() {
        sentences.push(
            "The intervals hold after every trial, so the run may end as soon as one is narrow enough."
                .to_owned(),
        );
    }
    if run.steps.iter().any(|step| step.settings.is_by_turns()) {
        sentences.push(
            "Callers called the targets in turn, in random order: the rates are not those of each target alone, and are not \
             compared."
                .to_owned(),
        );
    }
    if !compared.is_empty() && !metric::of_streams(&run.steps).is_empty() {
        sentences.push(
            "Messages are not compared here: 'netping compare' does that with two files, and 'netping ab' with --fail-if."
                .to_owned(),
        );
    }
    if compared.iter().any(|own| own.is_control) {
        sentences.push(
            "A/A is the first target measured again as a control, B/B the second, and so on; a difference that is no \
             larger than theirs is not shown."
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
