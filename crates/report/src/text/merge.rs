//! The results of several clients: what each contributed to every step, and the sum.

use netping_results::{
    format::{on_one_line, thousands},
    metric::{self, Metric},
    run::{Kind, Part, PartStep, Run, Step, clock::behind},
};

use super::bulk;
use crate::table::{Column, Layout, Table};

const TITLES: [&str; 12] = [
    "client", "callers", "conns", "req/s", "p50 us", "p99 us", "start ms", "overlap", "clock us",
    "cli us", "srv us", "failed",
];

const LEGEND: &str = "start: of a client's window, after that of the first; overlap: share of its window that all have in common; \
                      clock: the server's less the client's, from --clock-server. Starts are by the server's clock where \
                      all offsets are known.";

/// Returns the contribution of each client to each step, and the sum.
pub(super) fn text(run: &Run) -> String {
    let client = |part: &Part| {
        let requests: u64 = part.steps.iter().map(|step| step.requests).sum();
        let (host, started_at) = (on_one_line(&part.host), on_one_line(&part.started_at));
        let requests = thousands(requests as f64);
        format!("{host}  {requests} requests, from {started_at}")
    };
    let mut lines: Vec<String> = run.parts.iter().map(client).collect();
    if run.kind == Kind::Bulk {
        lines.push(bulk::text(run));
        return lines.join("\n");
    }
    if let Some(step) = run.steps.first() {
        let (target, clients) = (on_one_line(&step.target), run.parts.len());
        lines.push(format!("\n{target}  {clients} clients"));
    }
    lines.push(table(run, Table::whole));
    lines.push(LEGEND.to_owned());
    lines.join("\n")
}

/// Returns the rows of all clients and steps as a table.
pub(crate) fn table(run: &Run, layout: Layout) -> String {
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
            let own = part.steps.get(at);
            rows.extend(own.map(|step| contribution(part, step, after)));
        }
        rows.push(sum(step));
    }
    layout(&Column::named_rows(TITLES), &rows)
}

/// Returns the row of a client's contribution to a step; its window began `after` nanoseconds after
/// the first client's.
fn contribution(part: &Part, step: &PartStep, after: Option<u64>) -> Vec<String> {
    let time = |metric: &Metric| {
        let times = step.response_time.as_ref();
        times.map(|times| metric.cell_of_times(times))
    };
    let offset = part.clock.as_ref().and_then(|clock| clock.offset.as_ref());
    let offset = offset.map(|offset| {
        let (offset, uncertainty) = (offset.offset_ns as f64, offset.uncertainty_ns() as f64);
        format!("{:.1} +-{:.1}", offset / 1e3, uncertainty / 1e3)
    });
    let after = after.map(|after| format!("{:.3}", after as f64 / 1e6));
    let mut cells = vec![on_one_line(&part.host), String::new(), String::new()];
    cells.push(metric::RATE.show(step.rate));
    cells.extend([time(&metric::P50), time(&metric::P99), after].map(Option::unwrap_or_default));
    cells.push(format!("{:.2}%", step.overlap * 100.0));
    cells.push(offset.unwrap_or_default());
    cells.resize(TITLES.len(), String::new());
    cells
}

fn sum(step: &Step) -> Vec<String> {
    let cell = |metric: &Metric| metric.cell_of_step(step);
    vec![
        "all".to_owned(),
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        cell(&metric::RATE),
        cell(&metric::P50),
        cell(&metric::P99),
        String::new(),
        String::new(),
        String::new(),
        cell(&metric::CLIENT_CPU),
        cell(&metric::SERVER_CPU),
        cell(&metric::ERRORS),
    ]
}
