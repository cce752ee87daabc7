//! Flags of `netping latency`.

use std::{num::NonZeroU64, str::FromStr, time::Duration};

use clap::Args;
use humantime::parse_duration;
use netping_client::plan::{Extent, Plan, Warmup};
use netping_protocol::target::Target;

use crate::{
    args::{
        in_step::InStepArgs,
        output::ComparisonArgs,
        range::count,
        shared::SharedArgs,
        time::{positive, warmup},
    },
    error::{PlanError, UsageError},
    run::{options::Options, trials::Trials},
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
    #[arg(
        long,
        default_value = "1",
        value_name = "N|forever",
        conflicts_with_all = ["trials", "until"]
    )]
    pub repeat: Repeat,
    /// Time from the start of one measurement to the start of the next
    #[arg(long, default_value = "10s", value_parser = parse_duration, value_name = "TIME", requires = "repeat")]
    pub every: Duration,
    /// Measure each address that a name resolves to, except the one in $POD_IP
    #[arg(long)]
    pub all_addresses: bool,
    #[command(flatten)]
    comparison: ComparisonArgs,
    #[command(flatten)]
    in_step: InStepArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

impl LatencyArgs {
    /// Returns a plan for each of these targets.
    pub fn plans(&self, targets: &[Target]) -> Result<Vec<Plan>, PlanError> {
        self.shared.request.check(targets)?;
        let mut plans = self.shared.request.plans(targets)?;
        for plan in &mut plans {
            plan.execution.warmup = self.warmup;
            plan.execution.extent = self
                .duration
                .map_or(Extent::Requests(self.samples.get()), Extent::Time);
            self.in_step.apply(&mut plan.execution)?;
        }
        Ok(plans)
    }

    /// Returns the options of the run.
    pub fn options(&self) -> Result<Options, PlanError> {
        self.in_step.options(&self.shared)
    }

    /// Returns the trials of so many targets.
    pub fn trials(&self, targets: usize) -> Result<Trials, UsageError> {
        self.comparison.of(self.shared.trials.trials(), targets)
    }
}

/// The number of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// A fixed number.
    Times(u64),
    /// Until interrupted.
    Forever,
}

impl FromStr for Repeat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "forever" => Ok(Self::Forever),
            Ok(times @ 1..) => Ok(Self::Times(times)),
            _ => Err("neither a number from 1 on nor 'forever'".to_owned()),
        }
    }
}
