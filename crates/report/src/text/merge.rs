//! The results of several clients: what each contributed to every step, and the sum.

use netping_results::{
    format::{on_one_line, thousands},
    metric::{self, Metric},
    run::{Part, Run, Step, clock::behind},
};

use crate::table::{Column, Table};

const COLUMNS: [Column; 12] = [
    Column::text("client", 0),
    Column::number("callers", 0),
    Column::number("conns", 0),
    Column::number("req/s", 0),
    Column::number("p50 us", 0),
    Column::number("p99 us", 0),
    Column::number("start ms", 0),
    Column::number("overlap", 0),
    Column::number("clock us", 0),
    Column::number("cli us", 0),
    Column::number("srv us", 0),
    Column::number("failed", 0),
];

const LEGEND: &str = "start: of a client's window, after that of the first; overlap: share of its window that all have in common; \
                      clock: the server's less the client's, from --clock-server. Starts are by the server's clock where \
                      all offsets are known.";

/// Returns the contribution of each client to each step, and the sum.
pub(super) fn text(run: &Run) -> String {
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
        rows.push(sum(step));
    }
    lines.push(Table::whole(&COLUMNS, &rows));
    lines.push(LEGEND.to_owned());
    lines.join("\n")
}

/// Returns the row of a client's contribution to a step, whose window began so many nanoseconds after
/// the first client's.
fn client(part: &Part, at: usize, after: Option<u64>) -> Vec<String> {
    let mut row = vec![String::new(); COLUMNS.len()];
    row[0] = on_one_line(&part.host);
    let Some(step) = part.steps.get(at) else {
        return row;
    };
    row[3] = metric::RATE.show(step.rate);
    let time = |metric: &Metric| {
        let time = step.response_time.as_ref();
        time.map(|time| metric.cell_of_times(time))
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

fn sum(step: &Step) -> Vec<String> {
    let cell = |metric: &Metric| metric.cell_of_step(step);
    let empty = String::new;
    vec![
        "all".to_owned(),
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        cell(&metric::RATE),
        cell(&metric::P50),
        cell(&metric::P99),
        empty(),
        empty(),
        empty(),
        cell(&metric::CLIENT_CPU),
        cell(&metric::SERVER_CPU),
        cell(&metric::ERRORS),
    ]
}
