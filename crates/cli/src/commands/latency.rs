//! `netping latency`: sequential round trips on one connection.

use std::{env, net::IpAddr, num::NonZeroU64, time::Duration};

use clap::Args;
use humantime::parse_duration;
use netping_client::{
    clock,
    plan::{Extent, Plan, Warmup, resolve},
};
use netping_protocol::target::Target;
use netping_report::text::Rows;
use netping_results::run::{Kind, Place};

use crate::{
    args::{
        range::{CountLimit, count, count_or},
        shared::ComparedArgs,
        time::{positive, warmup},
    },
    commands::measure,
    error::{Verdict, require},
    run::{Runner, trials},
};

/// Flags of `netping latency`.
#[derive(Debug, Clone, Args)]
pub struct LatencyArgs {
    /// Servers, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(required = true, value_name = "URL")]
    pub targets: Vec<Target>,
    /// Round trips to measure
    #[arg(short = 'n', long, alias = "requests", default_value = "10000", value_parser = count, value_name = "N")]
    samples: NonZeroU64,
    /// Measure for this long instead
    #[arg(short, long, value_parser = positive, value_name = "TIME", conflicts_with = "samples")]
    duration: Option<Duration>,
    /// Warm up for this long; these round trips do not count
    #[arg(long, default_value = "200ms", value_parser = warmup, value_name = "TIME|auto")]
    warmup: Warmup,
    /// Repeat the measurement N times, or 'forever'
    #[arg(long, default_value = "1", value_name = "N|forever", value_parser = count_or("forever"), conflicts_with_all = ["trials", "until"])]
    repeat: CountLimit,
    /// Time from the start of one measurement to the start of the next
    #[arg(long, default_value = "10s", value_parser = parse_duration, value_name = "TIME", requires = "repeat")]
    every: Duration,
    /// Measure each address that a name resolves to, except the one in $POD_IP
    #[arg(long)]
    all_addresses: bool,
    #[command(flatten)]
    compared: ComparedArgs,
}

impl LatencyArgs {
    /// Returns a plan for each of these targets.
    pub fn plans(&self, targets: &[Target]) -> anyhow::Result<Vec<Plan>> {
        let request = &self.compared.shared.request;
        request.check(targets)?;
        let mut plans = request.plans(targets)?;
        for plan in &mut plans {
            plan.execution.warmup = self.warmup;
            plan.execution.extent = self
                .duration
                .map_or(Extent::Requests(self.samples.get()), Extent::Time);
            self.compared.in_step.apply(&mut plan.execution)?;
        }
        Ok(plans)
    }
}

pub fn run(args: &LatencyArgs) -> anyhow::Result<Verdict> {
    let targets = if args.all_addresses {
        every_address(&args.targets)?
    } else {
        args.targets.clone()
    };
    let plans = args.plans(&targets)?;
    let trials = args.compared.trials(plans.len())?;
    measure(Kind::Latency, args.compared.options()?, |runner| {
        runner.call_all(&plans)?;
        if let Some(times) = args.repeat.0 {
            let times = u32::try_from(times.get()).unwrap_or(u32::MAX);
            runner.console.progress.outline(plans.iter(), times);
        }
        if trials.count > 1 {
            Ok(trials::run(runner, trials, &[plans], |_| None)?)
        } else {
            repeat(runner, args, &plans)
        }
    })
}

fn repeat(runner: &mut Runner, args: &LatencyArgs, plans: &[Plan]) -> anyhow::Result<()> {
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
        if runner.is_interrupted() || args.repeat.0.map(NonZeroU64::get) == Some(trial.into()) {
            break;
        }
        runner.wait(next);
    }
    Ok(())
}

/// Returns each address of each target's name as a target of its own, except this pod's.
fn every_address(targets: &[Target]) -> anyhow::Result<Vec<Target>> {
    let own = env::var("POD_IP").ok();
    let own: Option<IpAddr> = own.and_then(|address| address.parse().ok());
    let mut all = Vec::new();
    for target in targets {
        for address in resolve(target)? {
            let target = target.at(address.ip());
            if Some(address.ip()) != own && !all.contains(&target) {
                all.push(target);
            }
        }
    }
    require(
        !all.is_empty(),
        "the names resolve only to this pod's address ($POD_IP)",
    )?;
    Ok(all)
}
