//! `netping latency`: sequential round trips on one connection.

pub mod args;

use std::{env, net::IpAddr};

use netping_client::{
    clock,
    plan::{Plan, resolve},
};
use netping_protocol::target::Target;
use netping_report::text::Rows;
use netping_results::run::{Kind, Place};

use self::args::{LatencyArgs, Repeat};
use crate::{
    error::{Failed, UsageError, Verdict},
    run::{self, Runner, trials},
};

pub fn run(args: &LatencyArgs) -> Result<Verdict, Failed> {
    let targets = if args.all_addresses {
        every_address(&args.targets)?
    } else {
        args.targets.clone()
    };
    let plans = args.plans(&targets)?;
    let trials = args.trials(plans.len())?;
    run::run(Kind::Latency, args.options()?, |runner| {
        runner.call_all(&plans)?;
        if let Repeat::Times(times) = args.repeat {
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            runner.console.progress.outline(plans.iter(), times);
        }
        if trials.count > 1 {
            Ok(trials::run(runner, trials, &[plans])?)
        } else {
            repeat(runner, args, &plans)
        }
    })
}

fn repeat(runner: &mut Runner, args: &LatencyArgs, plans: &[Plan]) -> Result<(), Failed> {
    let mut rows = Rows::new(Kind::Latency);
    for trial in 1.. {
        let next = clock::Deadline::after(args.every);
        for (measurement, plan) in plans.iter().enumerate() {
            if runner.is_interrupted() {
                break;
            }
            let place = Place { measurement, trial };
            runner.measure(plan, place, |step| Some(rows.show(step)))?;
        }
        if runner.is_interrupted() || args.repeat == Repeat::Times(trial.into()) {
            break;
        }
        runner.wait(next);
    }
    Ok(())
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
