//! `netping merge`: the results of several clients of one run, added up.

pub mod args;

use std::io::{self, Write};

use anyhow::Context;
use netping_report::table::Table;
use netping_results::{
    format::{on_one_line, optional, thousands},
    merge::merge,
    metric::{self, Metric},
    run::{Part, Run, Step, clock::behind},
};

use self::args::MergeArgs;
use super::text::columns;
use crate::{
    error::{Failed, Verdict, tell},
    run::{command_line::command_line, options::JsonTo, store::tool, validity},
};

const COLUMNS: &str =
    "<client|callers|conns|req/s|p50 us|p99 us|start ms|overlap|clock us|cli us|srv us|failed";

const LEGEND: &str = "start: of a client's window, after that of the first; overlap: share of its window that all have in common; \
                      clock: the server's less the client's, from --clock-server. Starts are by the server's clock where \
                      all offsets are known.";

pub fn run(args: &MergeArgs) -> Result<Verdict, Failed> {
    let mut clients = Vec::new();
    for file in args.files()? {
        clients.push((
            file.display().to_string(),
            Run::load(file).map_err(anyhow::Error::new)?,
        ));
    }
    let merged =
        merge(&clients, &args.rules(), tool(), command_line()).map_err(anyhow::Error::new)?;
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

/// Returns the contribution of each client to each step, and the sum.
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
    if let Some(step) = run.steps.first() {
        lines.push(format!(
            "\n{}  {} clients",
            on_one_line(&step.target),
            run.parts.len()
        ));
    }
    let behind = behind(run.parts.iter().map(|part| part.clock.as_ref()));
    let mut rows = Vec::new();
    for (at, step) in run.steps.iter().enumerate() {
        let start = |(part, behind): (&Part, &i64)| {
            let own = part.steps.get(at)?.window_started_at?;
            Some(own.saturating_add_signed(*behind))
        };
        let starts: Vec<Option<u64>> = run.parts.iter().zip(&behind).map(start).collect();
        let first = starts.iter().flatten().min();
        for (part, start) in run.parts.iter().zip(&starts) {
            let after = start.zip(first).map(|(own, first)| own - first);
            rows.push(client(part, at, after));
        }
        rows.push(row(step));
    }
    lines.push(Table::whole(&columns(COLUMNS), &rows));
    lines.push(LEGEND.to_owned());
    lines.push(validity::describe(run));
    lines.join("\n")
}

/// Returns the row of a client's contribution to a step, whose window began so many nanoseconds after
/// the first client's.
fn client(part: &Part, at: usize, after: Option<u64>) -> Vec<String> {
    let mut row = vec![String::new(); COLUMNS.split('|').count()];
    row[0] = on_one_line(&part.host);
    let Some(step) = part.steps.get(at) else {
        return row;
    };
    row[3] = thousands(step.rate);
    let time = |metric: &Metric| {
        step.response_time
            .as_ref()
            .map(|time| metric.cell_of_times(time))
    };
    row[4] = time(&metric::P50).unwrap_or_default();
    row[5] = time(&metric::P99).unwrap_or_default();
    row[6] = after.map_or_else(String::new, |after| format!("{:.3}", after as f64 / 1e6));
    row[7] = format!("{:.2}%", step.overlap * 100.0);
    let offset = part.clock.as_ref().and_then(|clock| clock.offset.as_ref());
    row[8] = offset.map_or_else(String::new, |offset| {
        let (offset, uncertainty) = (offset.offset_ns as f64, offset.uncertainty_ns() as f64);
        format!("{:.1} +-{:.1}", offset / 1e3, uncertainty / 1e3)
    });
    row
}

fn row(step: &Step) -> Vec<String> {
    let (summary, time) = (&step.summary, &step.summary.response_time);
    let empty = String::new;
    vec![
        "all".to_owned(),
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        thousands(summary.rate),
        metric::P50.cell_of_times(time),
        metric::P99.cell_of_times(time),
        empty(),
        empty(),
        empty(),
        optional(step.cost.client_cpu_us_per_request),
        optional(step.cost.server_cpu_us_per_request()),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}
