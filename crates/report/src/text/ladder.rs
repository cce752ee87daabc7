//! The ladder: a table for each load, and what the differences show in words.

use netping_results::{
    comparison::{Compared, Comparison},
    estimate::estimate,
    format::{plural, signed},
    metric::{self, Metric},
    run::{Measurement, Run, StepSettings},
};

use crate::{
    finding::{half_width, hold_together, range, value},
    ladder::{FEWEST, in_words},
    table::{Column, Table, wrap},
};

/// Characters in a line, without a terminal.
const WIDTH: usize = 80;

/// Stands for a difference that is not shown, which is not the same as none.
const NOT_SHOWN: &str = "~";

/// Returns the tables of all loads, and what they show in words.
pub(super) fn text(run: &Run) -> String {
    let compared = run.compared();
    let mut blocks: Vec<(String, &Metric, Vec<Vec<String>>)> = Vec::new();
    for measurement in run.measurements() {
        let settings = measurement.settings();
        let (title, metric) = (title(settings), metric(settings));
        let row = row(metric, &measurement, &compared);
        match blocks.iter_mut().find(|(own, ..)| *own == title) {
            Some((.., rows)) => rows.push(row),
            None => blocks.push((title, metric, vec![row])),
        }
    }
    let tables = blocks
        .iter()
        .map(|(title, metric, rows)| format!("{title}\n{}", Table::whole(&columns(metric), rows)));
    let mut parts: Vec<String> = tables.collect();
    let words = in_words(&compared);
    let rounds = run.measurements().iter().map(|own| own.trials.len()).max();
    let rounds = plural(rounds.unwrap_or(0) as u64, "round");
    parts.push(if words.is_empty() {
        format!("{rounds}: too few to call anything a difference (it takes {FEWEST}).")
    } else {
        let legend = legend(run, &rounds, &compared);
        wrap(&format!("{}\n\n{legend}", words.join("\n")), WIDTH)
    });
    parts.join("\n\n")
}

/// Returns the name of a load.
fn title(settings: &StepSettings) -> String {
    let (callers, connections) = (settings.callers, settings.connections);
    let load = match callers {
        1 => "A round trip: one caller".to_owned(),
        _ if connections < callers => format!(
            "Sharing: {callers} callers on {connections} connections instead of one for each"
        ),
        _ => format!("The rate: {callers} callers, each on a connection of its own"),
    };
    if settings.message.is_some() {
        format!("{load}; {} bytes", settings.payload_bytes)
    } else {
        load
    }
}

/// Returns the metric by which rungs are compared under a load.
fn metric(settings: &StepSettings) -> &'static Metric {
    if settings.callers == 1 {
        &metric::P50
    } else {
        &metric::RATE
    }
}

fn columns(metric: &Metric) -> [Column; 8] {
    [
        Column::text("", 12),
        Column::number(metric.title, 8),
        Column::text("over", 10),
        Column::number(if is_rate(metric) { "x" } else { "+us" }, 6),
        Column::number("cli us", 6),
        Column::number("srv us", 6),
        Column::number("+-", 5),
        Column::text("95% interval", 12),
    ]
}

fn row(
    metric: &'static Metric,
    measurement: &Measurement<'_>,
    compared: &[Compared<'_>],
) -> Vec<String> {
    let own = estimate(metric, measurement);
    let cpu = |metric: &'static Metric| value(metric, estimate(metric, measurement));
    let pair = compared
        .iter()
        .find(|own| own.new.number == measurement.number);
    let by = pair.and_then(|pair| pair.by(metric));
    vec![
        measurement.name().to_owned(),
        value(metric, own),
        pair.map_or_else(String::new, |pair| pair.base.name().to_owned()),
        by.and_then(amount).unwrap_or_default(),
        cpu(&metric::CLIENT_CPU),
        cpu(&metric::SERVER_CPU),
        half_width(own),
        by.and_then(ends).unwrap_or_default(),
    ]
}

/// Returns a difference as its column has it: a ratio of rates, or microseconds added.
fn amount(by: &Comparison) -> Option<String> {
    Some(if by.is_shown() == Some(false) {
        NOT_SHOWN.to_owned()
    } else if is_rate(by.metric) {
        format!("{:.2}", 1.0 + by.change?)
    } else {
        signed(by.added()?.0 / 1e3)
    })
}

/// Returns the ends of a difference's interval as their column has them.
fn ends(by: &Comparison) -> Option<String> {
    Some(if is_rate(by.metric) {
        range(by.interval?, |end| format!("{:.2}", 1.0 + end))
    } else {
        range(by.added()?.1?, |end| signed(end / 1e3))
    })
}

fn is_rate(metric: &Metric) -> bool {
    metric == &metric::RATE
}

fn legend(run: &Run, rounds: &str, compared: &[Compared<'_>]) -> String {
    let control = compared.iter().find(|own| own.is_control);
    let noise = |metric: &Metric| {
        let mut controls = compared.iter().filter(|own| own.is_control);
        let change = controls.find_map(|own| own.by(metric)?.change);
        change.map_or_else(
            || "-".to_owned(),
            |own| format!("{:.1}%", own.abs() * 100.0),
        )
    };
    let again = control.map_or_else(String::new, |own| {
        format!(
            ", or '{}', a second server like the first, differs as much (p50 {}, rate {})",
            own.new.name(),
            noise(&metric::P50),
            noise(&metric::RATE)
        )
    });
    let hold = hold_together(run.family().claims);
    format!(
        "{rounds} in random order. A value is the mean of its rounds on a logarithmic scale; differences are those within rounds; \
         {hold}. {NOT_SHOWN}: no difference shown, as its interval allows for none\
         {again}. Rates are those of client and server together: 'cli us' and 'srv us', the CPU time of either per request, \
         show which of them limits one. '+-' is how far the 95% interval of the value reaches above it."
    )
}
