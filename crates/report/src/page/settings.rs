//! Every setting and the numbers of each measurement, the machine, and the command line.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use netping_measure::{accounting::Accounting, status::Status};
use netping_results::{
    estimate::estimate,
    format::{share, thousands},
    metric::{self, Metric, Unit},
    run::{Kind, Measurement, Run},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{table, unit::counted};
use crate::{
    fields::fields,
    finding::{or_dash, value_with_interval},
    in_shell,
    table::{Column, Table},
    text::contributions,
};

/// Names and values, as the file has them.
type Settings = BTreeMap<String, String>;

/// Returns the settings and the environment of each run.
pub(super) fn section(runs: &[Run]) -> Markup {
    html! {
        @for (at, run) in runs.iter().enumerate() {
            details."details" {
                summary { "Settings, all numbers and the environment" @if runs.len() > 1 { " of run " (at + 1) } }
                h3 { "Command line" }
                pre."scroll" { code { (in_shell(&run.command_line)) } }
                (measurements("Measurements", run, false))
                @if !run.parts.is_empty() && run.kind != Kind::Bulk {
                    h3 { "Clients" }
                    pre."scroll" tabindex="0" { (contributions(run, Table::plain)) }
                }
                (measurements("Bulk streams", run, true))
                h3 { "Environment" }
                (list(&environment(run)))
            }
        }
    }
}

/// Renders the measurements of requests or of bulk streams: their results and those settings that
/// differ as a table, and common settings as a list.
fn measurements(title: &str, run: &Run, is_bulk: bool) -> Markup {
    let mut all = run.measurements();
    all.retain(|own| own.settings().bulk.is_some() == is_bulk);
    let settings: Vec<Settings> = all.iter().map(settings_of).collect();
    let Some(first) = settings.first() else {
        return html! {};
    };
    let mut shared = first.clone();
    shared.retain(|name, value| settings.iter().all(|own| own.get(name) == Some(value)));
    let names = settings.iter().flat_map(BTreeMap::keys);
    let different: BTreeSet<&String> = names.filter(|name| !shared.contains_key(*name)).collect();
    let mut metrics = if is_bulk { metric::BULK } else { metric::PAGE }.to_vec();
    metrics.extend(if is_bulk {
        metric::of_probes(&run.steps)
    } else {
        metric::of_streams(&run.steps)
    });
    let varied: Vec<String> = different
        .iter()
        .map(|name| name.replace('_', " "))
        .collect();
    let mut columns: Vec<Column> = varied
        .iter()
        .cloned()
        .map(|title| Column::text("").titled(title))
        .collect();
    columns.extend(
        metrics
            .iter()
            .map(|metric| Column::number("").titled(heading(metric))),
    );
    columns.extend(ACCOUNTS.map(Column::number));
    let row = |(own, settings): (&Measurement<'_>, &Settings)| {
        let settings = different
            .iter()
            .map(|name| or_dash(settings.get(*name).cloned()));
        let results = metrics
            .iter()
            .map(|metric| value_with_interval(metric, estimate(metric, own)));
        settings.chain(results).chain(accounts(own)).collect()
    };
    let rows: Vec<Vec<String>> = all.iter().zip(&settings).map(row).collect();
    html! {
        h3 { (title) }
        details {
            summary {
                (counted(rows.len() as f64, "rows"))
                @if !varied.is_empty() { ", different in " (varied.join(", ")) }
            }
            (table::render(&columns, &rows))
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

fn settings_of(own: &Measurement<'_>) -> Settings {
    let (first, status) = (own.first(), own.trials.iter().map(|step| step.status));
    let mut settings = texts(&first.settings);
    settings.extend(texts(&json!({
        "trials": own.trials.len(),
        "target": first.target,
        "status": Status::of_all(status).name(),
    })));
    settings.extend(first.label.clone().map(|label| ("label".to_owned(), label)));
    let security = first.security.as_ref().map(texts).unwrap_or_default();
    let security = security.into_iter();
    settings.extend(security.map(|(name, value)| (format!("security: {name}"), value)));
    settings
}

/// Titles of the columns about the outcomes of requests.
const ACCOUNTS: [&str; 5] = ["ok", "failed by kind", "no reply", "not sent", "reconnects"];

/// Returns the [`ACCOUNTS`] of all trials.
fn accounts(own: &Measurement<'_>) -> [String; 5] {
    let mut sum = Accounting::default();
    for step in &own.trials {
        sum += &step.summary.accounting;
    }
    let count = |count: u64| thousands(count as f64);
    let kinds = sum.errors.iter();
    let kinds: Vec<String> = kinds
        .map(|(kind, own)| format!("{kind} {}", count(*own)))
        .collect();
    let failed = if kinds.is_empty() {
        "0".to_owned()
    } else {
        kinds.join(", ")
    };
    let [ok, no_reply, not_sent] = [sum.ok, sum.in_flight, sum.not_sent].map(count);
    [ok, failed, no_reply, not_sent, count(sum.reconnects)]
}

/// Returns a metric's title with its unit.
fn heading(metric: &Metric) -> String {
    match metric.unit {
        Unit::Nanos | Unit::CpuMicros => format!("{} µs", metric.label),
        _ => metric.title.to_owned(),
    }
}

fn environment(run: &Run) -> Settings {
    let tool = &run.tool;
    let mut environment = texts(&run.environment);
    environment.extend(texts(&json!({
        "status": run.status.name(),
        "started at": run.started_at,
        "tool": format!("{} {}", tool.name, tool.version),
        "commit": tool.commit,
        "command": run.kind.name(),
        "looks": run.looks,
        "margin": run.margin.map(share),
        "order seed": run.order_seed,
    })));
    environment
}

/// Returns the fields of a part of the file as texts.
fn texts(part: &impl Serialize) -> Settings {
    let fields = fields(part).into_iter();
    fields.map(|(name, value)| (name, text(&value))).collect()
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
