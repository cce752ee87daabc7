//! `netping latency`: round trips one after the other, on one connection.

use std::{env, net::IpAddr};

use netping_protocol::target::Target;
use netping_report::steps::StepTable;

use super::Failed;
use crate::{
    args::{LatencyArgs, Repeat, UsageError},
    clock, engine,
    run::{Session, Verdict, trials},
};

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
    let table = StepTable::latency();

    let mut heading = None;
    let mut round = 0;
    loop {
        let next = clock::Deadline::after(args.every);
        for plan in &plans {
            if session.is_interrupted() {
                break;
            }
            let result = session.step(plan, |step| {
                let row = table.row(step);
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
