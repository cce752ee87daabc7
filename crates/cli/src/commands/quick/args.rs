//! Flags of `netping URL...`.

use std::time::Duration;

use clap::Args;
use netping_client::plan::{Arrival, Extent, Plan, Warmup};
use netping_protocol::target::Target;

use crate::{
    args::{load::with_callers, output::OutputArgs, request::RequestArgs, time::positive},
    error::{PlanError, UsageError},
};

/// Flags of a command line without a command.
#[derive(Debug, Clone, Args)]
pub struct QuickArgs {
    /// Servers for a quick look, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(value_name = "URL", value_parser = target, required = true)]
    targets: Vec<Target>,
    /// Time for each server
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME")]
    duration: Duration,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The steps of a quick look: callers, and the warm-up's and the window's shares of its time.
const STEPS: [(u64, f64, f64); 2] = [(1, 0.05, 0.3), (64, 0.1, 0.55)];

impl QuickArgs {
    /// Returns the steps of each target.
    pub fn plans(&self) -> Result<Vec<Vec<Plan>>, PlanError> {
        self.request.check(&self.targets)?;
        let bases = self.request.plans(&self.targets)?;
        let steps = |base: &Plan| {
            let steps = STEPS.iter().map(|step| self.step(base.clone(), *step));
            steps.collect::<Result<_, _>>().map_err(PlanError::from)
        };
        bases.iter().map(steps).collect()
    }

    fn step(
        &self,
        base: Plan,
        (callers, warmup, window): (u64, f64, f64),
    ) -> Result<Plan, UsageError> {
        let mut plan = with_callers(base, callers, None, None)?;
        plan.load.arrival = Arrival::Closed;
        plan.execution.warmup = Warmup::Time(self.duration.mul_f64(warmup));
        plan.execution.extent = Extent::Time(self.duration.mul_f64(window));
        Ok(plan)
    }
}

/// Reads a target, which may be a misspelt command.
fn target(text: &str) -> Result<Target, String> {
    if text.contains("://") {
        return text.parse().map_err(|error| format!("{error}"));
    }
    Err(format!(
        "neither a command, which --help lists, nor a URL such as tcp://{}",
        if text.contains([':', '.']) && !text.contains('/') {
            text
        } else {
            "HOST:8004"
        }
    ))
}
