//! `netping latency`: round trips one after the other, on one connection.

use std::{env, net::IpAddr};

use netping_protocol::target::Target;
use netping_report::{
    sparkline::sparkline,
    table::{self, Column, Table},
};
use netping_results::{
    format::{micros, nanos_as_micros},
    run::Step,
};

use super::Failed;
use crate::{
    args::{LatencyArgs, Repeat, UsageError},
    clock, engine,
    run::{Session, Verdict, trials},
};

/// The quantiles that the table shows, in per cent, and how easily each is done without.
const SHOWN: [(f64, &str, u8); 8] = [
    (1.0, "p1", 1),
    (25.0, "p25", 5),
    (50.0, "p50", 0),
    (75.0, "p75", 6),
    (90.0, "p90", 0),
    (95.0, "p95", 4),
    (99.0, "p99", 0),
    (99.9, "p99.9", 0),
];

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &LatencyArgs) -> Result<Verdict, Failed> {
    let targets = if args.all_addresses {
        every_address(&args.targets)?
    } else {
        args.targets.clone()
    };
    let plans = args.plans(&targets)?;
    let mut session = Session::begin(&args.output)?;
    if let Err(error) = session.reach_all(&plans) {
        return Err(session.abandon(error));
    }
    if args.trials.trials > 1 {
        return Ok(trials::run(session, &args.trials, &[plans])?.finish());
    }
    let quantiles = SHOWN
        .iter()
        .map(|&(_, title, spare)| Column::number(title, 5).spare(spare));
    let others = [("max", 0), ("mean", 0), ("sd", 3)]
        .map(|(title, spare)| Column::number(title, 5).spare(spare));
    let tail = Column::text("p50..p99.9", 10).spare(2);
    let table = Table::new(quantiles.chain(others).chain([tail]).collect());

    let mut heading = None;
    let mut round = 0;
    loop {
        let next = clock::Deadline::after(args.every);
        for plan in &plans {
            if session.is_interrupted() {
                break;
            }
            let result = session.step(plan, |step| {
                let row = table.row(&row(step));
                // The target and the titles stand above the rows that they are for.
                if heading.as_ref() == Some(&step.target) {
                    return row;
                }
                heading = Some(step.target.clone());
                let count = step.summary.service_time.count;
                let what = match step.settings.payload_bytes {
                    0 => String::new(),
                    bytes => format!(" of {bytes} bytes"),
                };
                format!(
                    "{}  {count} round trips{what}, in us\n{}\n{row}",
                    step.target,
                    table.header()
                )
            });
            if let Err(error) = result {
                return Err(session.abandon(error));
            }
        }
        round += 1;
        if session.is_interrupted() || args.repeat == Repeat::Times(round) {
            return Ok(session.finish());
        }
        session.wait(next);
    }
}

fn row(step: &Step) -> Vec<String> {
    let time = &step.summary.service_time;
    let optional =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| micros(value / 1e3));
    let quantiles = SHOWN
        .iter()
        .map(|&(percent, ..)| nanos_as_micros(time.quantile(percent)));
    let tail = sparkline(&step.histograms.service_time, table::is_unicode());
    let others = [
        nanos_as_micros(time.max),
        optional(time.mean),
        optional(time.sd),
        tail,
    ];
    quantiles.chain(others).collect()
}

/// Each address of each target's name as a target of its own, less this pod's.
fn every_address(targets: &[Target]) -> Result<Vec<Target>, Failed> {
    let own: Option<IpAddr> = env::var("POD_IP")
        .ok()
        .and_then(|address| address.parse().ok());
    let mut all = Vec::new();
    for target in targets {
        for address in engine::resolve(target)? {
            let target = target.at(address.ip());
            if Some(address.ip()) != own && !all.contains(&target) {
                all.push(target);
            }
        }
    }
    if all.is_empty() {
        return Err(UsageError(
            "the names resolve to no address but this pod's ($POD_IP)".to_owned(),
        )
        .into());
    }
    Ok(all)
}
