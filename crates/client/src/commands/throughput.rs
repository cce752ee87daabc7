//! `netping throughput`: many callers at once.

use netping_report::{
    Step,
    format::{nanos_as_micros, optional, thousands},
    table::{Column, Table},
};

use super::Failed;
use crate::{
    args::ThroughputArgs,
    session::{Session, Verdict},
};

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &ThroughputArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    let mut session = Session::begin(&args.output)?;
    let table = Table::new(vec![
        Column::number("callers", 7),
        Column::number("conns", 5),
        Column::number("req/s", 9),
        Column::number("p50 us", 6),
        Column::number("p99 us", 6),
        Column::number("p99.9 us", 8),
        Column::number("max us", 7),
        Column::number("cli us", 6),
        Column::number("srv us", 6),
        Column::number("failed", 6),
    ]);
    let mut heading = None;
    for plan in &plans {
        if session.is_interrupted() {
            break;
        }
        let result = session.step(plan, |step| {
            let row = table.row(&row(step));
            if heading.as_ref() == Some(&step.target) {
                return row;
            }
            heading = Some(step.target.clone());
            let title = format!("{}  {} bytes, closed loop", step.target, step.settings.payload_bytes);
            format!("{title}\n{}\n{row}", table.header())
        });
        if let Err(error) = result {
            return Err(session.abandon(error));
        }
    }
    Ok(session.finish())
}

fn row(step: &Step) -> Vec<String> {
    let summary = &step.summary;
    let time = &summary.response_time;
    vec![
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        thousands(summary.rate),
        nanos_as_micros(time.quantile(50.0)),
        nanos_as_micros(time.quantile(99.0)),
        nanos_as_micros(time.quantile(99.9)),
        nanos_as_micros(time.max),
        optional(step.cost.client_cpu_us_per_request),
        optional(step.cost.server_cpu_us_per_request),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}
