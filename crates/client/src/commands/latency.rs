//! `netping latency`: sequential round trips on one connection.

use std::{env, net::IpAddr};

use netping_protocol::target::Target;
use netping_report::{
    sparkline::sparkline,
    table::{self, Column, Table},
};
use netping_results::{
    file::histogram::decode,
    format::{micros, nanos_as_micros},
    run::Step,
};

use crate::{
    args::{LatencyArgs, Repeat},
    clock,
    error::{Failed, UsageError, Verdict},
    plan::Plan,
    resolve::resolve,
    run::{self, Runner, trials},
};

/// Quantiles of the table, in percent, and the order in which narrow terminals leave them out.
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

pub fn run(args: &LatencyArgs) -> Result<Verdict, Failed> {
    let targets = if args.all_addresses {
        every_address(&args.targets)?
    } else {
        args.targets.clone()
    };
    let plans = args.plans(&targets)?;
    let trials = args.shared.trials.trials();
    run::run(args.shared.output.options()?, |runner| {
        runner.reach_all(&plans)?;
        if trials.count > 1 {
            Ok(trials::run(runner, trials, &[plans])?)
        } else {
            repeat(runner, args, &plans)
        }
    })
}

fn repeat(runner: &mut Runner, args: &LatencyArgs, plans: &[Plan]) -> Result<(), Failed> {
    let quantiles = SHOWN
        .iter()
        .map(|&(_, title, spare)| Column::number(title, 5).spare(spare));
    let others = [("max", 0), ("mean", 0), ("sd", 3)]
        .map(|(title, spare)| Column::number(title, 5).spare(spare));
    let tail = Column::text("p50..p99.9", 10).spare(2);
    let table = Table::new(quantiles.chain(others).chain([tail]).collect());
    let mut heading = None;
    let mut describe = |step: &Step| {
        let row = table.row(&row(step));
        // The heading stands above the rows of its target.
        if heading.as_ref() == Some(&step.target) {
            return Some(row);
        }
        heading = Some(step.target.clone());
        let count = step.summary.service_time.count;
        let what = match step.settings.payload_bytes {
            0 => String::new(),
            bytes => format!(" of {bytes} bytes"),
        };
        Some(format!(
            "{}  {count} round trips{what}, in us\n{}\n{row}",
            step.target,
            table.header()
        ))
    };
    let mut round = 0;
    loop {
        let next = clock::Deadline::after(args.every);
        for plan in plans {
            if runner.is_interrupted() {
                break;
            }
            runner.measure(plan, &mut describe)?;
        }
        round += 1;
        if runner.is_interrupted() || args.repeat == Repeat::Times(round) {
            return Ok(());
        }
        runner.wait(next);
    }
}

fn row(step: &Step) -> Vec<String> {
    let time = &step.summary.service_time;
    let optional =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| micros(value / 1e3));
    let quantiles = SHOWN
        .iter()
        .map(|&(percent, ..)| nanos_as_micros(time.quantile(percent)));
    let tail =
        decode(&step.histograms.service_time).map(|times| sparkline(&times, table::is_unicode()));
    let others = [
        nanos_as_micros(time.max),
        optional(time.mean),
        optional(time.sd),
        tail.unwrap_or_default(),
    ];
    quantiles.chain(others).collect()
}

/// Returns each address of each target's name as a target of its own, except this pod's.
fn every_address(targets: &[Target]) -> Result<Vec<Target>, Failed> {
    let own: Option<IpAddr> = env::var("POD_IP")
        .ok()
        .and_then(|address| address.parse().ok());
    let mut all = Vec::new();
    for target in targets {
        for address in resolve(target)? {
            let target = target.at(address.ip());
            if Some(address.ip()) != own && !all.contains(&target) {
                all.push(target);
            }
        }
    }
    if all.is_empty() {
        return Err(UsageError(
            "the names resolve only to this pod's address ($POD_IP)".to_owned(),
        )
        .into());
    }
    Ok(all)
}
