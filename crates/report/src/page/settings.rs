//! Every setting and the numbers of each measurement, the machine, and the command line.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use netping_measure::{error_kind::ErrorKind, status::Status};
use netping_results::{
    connect::ChannelSecurity,
    estimate::estimate,
    format::{share, thousands},
    metric::{self, Metric, Unit},
    run::{Measurement, Part, PartStep, Run, Step},
};
use serde::Serialize;
use serde_json::Value;

use super::unit::counted;
use crate::finding::{interval, value};

/// Names and values, as the file has them.
type Settings = BTreeMap<String, String>;

/// Settings and results: titles and values.
struct Row {
    settings: Settings,
    results: Vec<(String, String)>,
}

/// Returns the settings and the environment of each run.
pub(super) fn section(runs: &[Run]) -> Markup {
    html! {
        @for (at, run) in runs.iter().enumerate() {
            section."details" {
                h2 { "Settings and environment" @if runs.len() > 1 { " of run " (at + 1) } }
                h3 { "Command line" }
                pre."wide" { code { (command_line(&run.command_line)) } }
                (rows("Measurements", &measurements(run, false)))
                (rows("Clients", &clients(run)))
                (rows("Bulk streams", &measurements(run, true)))
                h3 { "Environment" }
                (list(&environment(run)))
            }
        }
    }
}

/// Renders differing settings and results as a table, and common settings as a list.
fn rows(title: &str, rows: &[Row]) -> Markup {
    let Some(first) = rows.first() else {
        return html! {};
    };
    let same = |name: &str| {
        rows.iter()
            .all(|row| row.settings.get(name) == first.settings.get(name))
    };
    let names = rows.iter().flat_map(|row| row.settings.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let (common, different): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| same(name));
    let shared: Settings = common
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), first.settings.get(*name)?.clone())))
        .collect();
    let table = html! {
        div."wide" {
            table {
                thead {
                    tr {
                        @for name in &different { th scope="col" { (name.replace('_', " ")) } }
                        @for (name, _) in &first.results { th."num" scope="col" { (name) } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for name in &different { td { (row.settings.get(*name).map_or("-", String::as_str)) } }
                            @for (_, value) in &row.results { td."num" { (value) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        h3 { (title) }
        details {
            summary {
                (counted(rows.len() as f64, "rows"))
                @if !different.is_empty() { ", different in " (different.join(", ").replace('_', " ")) }
            }
            (table)
        }
        @if !shared.is_empty() {
            details {
                summary { "Settings" @if rows.len() > 1 { " of all" } }
                (list(&shared))
            }
        }
    }
}

fn list(settings: &Settings) -> Markup {
    html! {
        dl."settings" {
            @for (name, value) in settings { div { dt { (name.replace('_', " ")) } dd { (value) } } }
        }
    }
}

/// Returns the settings and the results of measurements of requests, or of those of bulk streams.
fn measurements(run: &Run, is_bulk: bool) -> Vec<Row> {
    let mut metrics = if is_bulk { metric::BULK } else { metric::PAGE }.to_vec();
    if !is_bulk {
        metrics.extend(metric::of_streams(&run.steps));
    }
    let all = run.measurements().into_iter();
    all.filter(|own| own.settings().bulk.is_some() == is_bulk)
        .map(|own| Row {
            settings: settings_of(&own),
            results: metrics
                .iter()
                .map(|metric| (heading(metric), cell(metric, &own)))
                .chain(accounts(&own))
                .collect(),
        })
        .collect()
}

fn settings_of(own: &Measurement<'_>) -> Settings {
    let (first, status) = (own.first(), own.trials.iter().map(|step| step.status));
    let mut settings = fields(&first.settings);
    settings.insert("trials".to_owned(), own.trials.len().to_string());
    settings.insert("target".to_owned(), first.target.clone());
    settings.extend(first.label.clone().map(|label| ("label".to_owned(), label)));
    let status = Status::of_all(status).name();
    settings.insert("status".to_owned(), status.to_owned());
    settings.extend(security(first.security.as_ref()));
    settings
}

/// Returns the estimate of a metric, and its interval where it has one.
fn cell(metric: &Metric, own: &Measurement<'_>) -> String {
    let estimate = estimate(metric, own);
    let mut cell = value(metric, estimate);
    if estimate.is_some_and(|own| own.interval.is_some()) {
        cell.extend([" (", &interval(metric, estimate), ")"]);
    }
    cell
}

/// Returns what became of the requests of all trials.
fn accounts(own: &Measurement<'_>) -> [(String, String); 5] {
    let sum = |of: fn(&Step) -> u64| {
        let sum: u64 = own.trials.iter().map(|step| of(step)).sum();
        thousands(sum as f64)
    };
    let mut kinds: BTreeMap<ErrorKind, u64> = BTreeMap::new();
    for step in &own.trials {
        for (kind, count) in &step.summary.accounting.errors {
            *kinds.entry(*kind).or_default() += count;
        }
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{kind} {}", thousands(*count as f64)))
        .collect();
    let failed = if kinds.is_empty() {
        "0".to_owned()
    } else {
        kinds.join(", ")
    };
    [
        ("ok", sum(|step| step.summary.accounting.ok)),
        ("failed", failed),
        ("no reply", sum(|step| step.summary.accounting.in_flight)),
        ("not sent", sum(|step| step.summary.accounting.not_sent)),
        ("reconnects", sum(|step| step.reconnects)),
    ]
    .map(|(title, cell)| (title.to_owned(), cell))
}

/// Returns a metric's title with its unit.
fn heading(metric: &Metric) -> String {
    match metric.unit {
        Unit::Nanos | Unit::CpuMicros => format!("{} µs", metric.label),
        _ => metric.title.to_owned(),
    }
}

/// Returns what each client of a merged run contributed to each step.
fn clients(run: &Run) -> Vec<Row> {
    let row = |part: &Part, at: usize, step: &PartStep| {
        let time = |metric: &Metric| {
            let times = step.response_time.as_ref();
            times.map_or_else(|| "-".to_owned(), |times| metric.cell_of_times(times))
        };
        let offset = part.clock.as_ref().and_then(|clock| clock.offset.as_ref());
        let offset = offset.map(|offset| offset.offset_ns as f64 / 1e3);
        let results = [
            ("req/s", thousands(step.rate)),
            ("p50 µs", time(&metric::P50)),
            ("p99 µs", time(&metric::P99)),
            ("overlap", format!("{:.2} %", step.overlap * 100.0)),
            (
                "server's clock less its own µs",
                offset.map_or_else(|| "-".to_owned(), |offset| format!("{offset:.1}")),
            ),
        ];
        let results = results.map(|(title, cell)| (title.to_owned(), cell));
        let settings = [
            ("client".to_owned(), part.host.clone()),
            ("step".to_owned(), (at + 1).to_string()),
        ];
        Row {
            settings: settings.into(),
            results: results.to_vec(),
        }
    };
    let each = run.parts.iter().flat_map(|part| {
        let steps = part.steps.iter().enumerate();
        steps.map(move |(at, step)| row(part, at, step))
    });
    each.collect()
}

fn environment(run: &Run) -> Settings {
    let mut environment = fields(&run.environment);
    environment.insert("status".to_owned(), run.status.name().to_owned());
    environment.insert("started at".to_owned(), run.started_at.clone());
    let tool = &run.tool;
    environment.insert("tool".to_owned(), format!("{} {}", tool.name, tool.version));
    let commit = tool.commit.clone();
    environment.extend(commit.map(|commit| ("commit".to_owned(), commit)));
    environment.insert("command".to_owned(), run.kind.name().to_owned());
    environment.insert("looks".to_owned(), run.looks.to_string());
    let margin = run.margin.map(share);
    environment.extend(margin.map(|margin| ("margin".to_owned(), margin)));
    let seed = run.order_seed;
    environment.extend(seed.map(|seed| ("order seed".to_owned(), seed.to_string())));
    environment
}

fn security(security: Option<&ChannelSecurity>) -> Settings {
    let fields = security.map(fields).unwrap_or_default();
    fields
        .into_iter()
        .map(|(name, value)| (format!("security: {name}"), value))
        .collect()
}

/// Returns all fields of a part of the file; those of a nested object are listed with them.
fn fields(part: &impl Serialize) -> Settings {
    let mut found = Settings::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(part) else {
        return found;
    };
    for (name, value) in fields {
        match value {
            Value::Object(inner) => {
                found.extend(inner.into_iter().map(|(name, value)| (name, text(&value))));
            }
            value => {
                found.insert(name, text(&value));
            }
        }
    }
    found
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Array(all) if all.is_empty() => "-".to_owned(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The command line as a shell would take it.
fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    let quoted = |word: &String| match word {
        word if !word.is_empty() && word.chars().all(plain) => word.clone(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["netping", "tcp://h:1", "p99>2ms", "it's", ""].map(str::to_owned);
        assert_eq!(
            command_line(&words),
            r"netping tcp://h:1 'p99>2ms' 'it'\''s' ''"
        );
    }
}
