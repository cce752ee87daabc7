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
    let closed = Table::new(vec![
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
    let open = Table::new(vec![
        Column::number("planned/s", 9),
        Column::number("req/s", 9),
        Column::number("service p50", 6),
        Column::number("p99 us", 6),
        Column::number("response p50", 6),
        Column::number("p99 us", 6),
        Column::number("max us", 7),
        Column::number("lag p50", 6),
        Column::number("p99 us", 6),
        Column::number("failed", 6),
    ]);
    let mut heading = None;
    for plan in &plans {
        if session.is_interrupted() {
            break;
        }
        let result = session.step(plan, |step| {
            let (table, row, arrivals) = match step.settings.planned_rate {
                None => (&closed, closed_row(step), "closed loop".to_owned()),
                Some(_) => (&open, open_row(step), format!("open loop, {} arrivals", step.settings.arrivals)),
            };
            let row = table.row(&row);
            // The target and the titles stand above the rows that they are for.
            if heading.as_ref() == Some(&step.target) {
                return row;
            }
            heading = Some(step.target.clone());
            let title = format!("{}  {} bytes, {arrivals}", step.target, step.settings.payload_bytes);
            format!("{title}\n{}\n{row}", table.header())
        });
        if let Err(error) = result {
            return Err(session.abandon(error));
        }
    }
    Ok(session.finish())
}

fn closed_row(step: &Step) -> Vec<String> {
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
        optional(step.cost.server_cpu_us_per_request()),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}

fn open_row(step: &Step) -> Vec<String> {
    let summary = &step.summary;
    vec![
        thousands(step.settings.planned_rate.unwrap_or_default()),
        thousands(summary.rate),
        nanos_as_micros(summary.service_time.quantile(50.0)),
        nanos_as_micros(summary.service_time.quantile(99.0)),
        nanos_as_micros(summary.response_time.quantile(50.0)),
        nanos_as_micros(summary.response_time.quantile(99.0)),
        nanos_as_micros(summary.response_time.max),
        nanos_as_micros(summary.lag.quantile(50.0)),
        nanos_as_micros(summary.lag.quantile(99.0)),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}
