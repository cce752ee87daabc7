//! `netping connect`: a new connection for each sample, timed part by part.

use netping_measure::{connect::ConnectPhase, distribution::Distribution};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{micros, nanos_as_micros, optional, thousands},
    run::Step,
};

use crate::{
    args::ConnectArgs,
    error::{Failed, Verdict},
    run,
};

const COLUMNS: [Column; 8] = [
    Column::text("us", 0),
    Column::number("p50", 0),
    Column::number("p90", 0).spare(1),
    Column::number("p99", 0),
    Column::number("p99.9", 0),
    Column::number("max", 0),
    Column::number("mean", 0).spare(2),
    Column::number("sd", 0).spare(3),
];

pub fn run(args: &ConnectArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    run::run(args.output.options()?, |runner| {
        for plan in &plans {
            if runner.is_interrupted() {
                break;
            }
            runner.measure(plan, |step| Some(describe(step)))?;
        }
        Ok(())
    })
}

/// Returns a table with a row for each part of opening a connection.
fn describe(step: &Step) -> String {
    let rows: Vec<_> = ConnectPhase::ALL
        .into_iter()
        .filter_map(|phase| Some(row(phase, &step.connect.get(&phase)?.time)))
        .collect();
    let opened = step
        .connect
        .get(&ConnectPhase::Total)
        .map_or(0, |total| total.time.count);
    format!(
        "{}  {} connections, {} at a time, {}/s, CPU us per connection: client {}, server {}\n{}",
        step.target,
        thousands(opened as f64),
        step.settings.callers,
        thousands(step.summary.rate),
        optional(step.cost.client_cpu_us_per_request),
        optional(step.cost.server_cpu_us_per_request()),
        Table::whole(&COLUMNS, &rows)
    )
}

fn row(phase: ConnectPhase, time: &Distribution) -> Vec<String> {
    let shown =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| micros(value / 1e3));
    let quantiles = [50.0, 90.0, 99.0, 99.9].map(|percent| nanos_as_micros(time.quantile(percent)));
    let others = [nanos_as_micros(time.max), shown(time.mean), shown(time.sd)];
    [phase.name().to_owned()]
        .into_iter()
        .chain(quantiles)
        .chain(others)
        .collect()
}
