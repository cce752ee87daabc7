//! `netping merge`: the results of several clients of one run, added up.

use std::io::{self, Write};

use anyhow::Context;
use netping_report::table::Table;
use netping_results::{
    format::{nanos_as_micros, on_one_line, optional, thousands},
    merge::merge,
    run::{Run, Step},
};

use super::columns;
use crate::{
    args::MergeArgs,
    error::{Failed, Verdict, tell},
    run::{command_line::command_line, options::JsonTo, store::tool, validity},
};

const COLUMNS: &str = "callers|conns|req/s|p50 us|p99 us|cli us|srv us|failed";

pub fn run(args: &MergeArgs) -> Result<Verdict, Failed> {
    let mut clients = Vec::new();
    for file in args.files()? {
        clients.push((
            file.display().to_string(),
            Run::load(file).map_err(anyhow::Error::new)?,
        ));
    }
    let merged = merge(&clients, tool(), command_line()).map_err(anyhow::Error::new)?;
    let saved = match &args.json {
        JsonTo::File(path) => merged.save(path).map_err(anyhow::Error::new),
        JsonTo::Stdout => print_json(&merged),
    };
    if let Err(error) = saved {
        tell(&format!("error: {error:#}"));
        return Ok(Verdict::Unsaved);
    }
    // The file is written even if nobody reads this.
    let text = describe(&merged);
    let _ = match args.json {
        JsonTo::Stdout => writeln!(io::stderr(), "{text}"),
        JsonTo::File(_) => writeln!(io::stdout(), "{text}"),
    };
    Ok(Verdict::Success)
}

fn print_json(run: &Run) -> anyhow::Result<()> {
    let text = run.to_json()?;
    io::stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results to standard output")
}

/// Returns the contribution of each client, and the sum.
fn describe(run: &Run) -> String {
    let mut lines = Vec::new();
    for part in &run.parts {
        let requests: u64 = part.steps.iter().map(|step| step.requests).sum();
        let (host, started_at) = (on_one_line(&part.host), on_one_line(&part.started_at));
        lines.push(format!(
            "{host}  {} requests, from {started_at}",
            thousands(requests as f64)
        ));
    }
    let rows: Vec<_> = run.steps.iter().map(row).collect();
    if let Some(step) = run.steps.first() {
        lines.push(format!(
            "\n{}  {} clients",
            on_one_line(&step.target),
            run.parts.len()
        ));
    }
    lines.push(Table::whole(&columns(COLUMNS), &rows));
    lines.push(validity::describe(run));
    lines.join("\n")
}

fn row(step: &Step) -> Vec<String> {
    let (summary, time) = (&step.summary, &step.summary.response_time);
    vec![
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        thousands(summary.rate),
        nanos_as_micros(time.quantile(50.0)),
        nanos_as_micros(time.quantile(99.0)),
        optional(step.cost.client_cpu_us_per_request),
        optional(step.cost.server_cpu_us_per_request()),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}
