//! Flags of the commands that measure requests in trials.

use clap::Args;
use netping_results::metric::RATE;

use super::{
    in_step::InStepArgs,
    output::{Options, OutputArgs},
    request::RequestArgs,
    trials::{ComparisonArgs, TrialArgs, Trials},
};
use crate::error::require;

/// Flags of the commands that measure requests in trials.
#[derive(Debug, Clone, Args)]
pub struct SharedArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub trials: TrialArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Those flags, and those of the commands that compare targets in step with other clients.
#[derive(Debug, Clone, Args)]
pub struct ComparedArgs {
    #[command(flatten)]
    comparison: ComparisonArgs,
    #[command(flatten)]
    pub in_step: InStepArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

impl ComparedArgs {
    /// Returns the options of the run.
    pub fn options(&self) -> anyhow::Result<Options> {
        Ok(Options {
            clock: self.in_step.clock(&self.shared.request)?,
            ..self.shared.output.comparing()?
        })
    }

    /// Returns the trials of each step, with this number of targets; fails if there is nothing to compare
    /// that a flag needs.
    pub fn trials(&self, targets: usize) -> anyhow::Result<Trials> {
        let trials = self.comparison.of(self.shared.trials.trials(), targets)?;
        require(
            !self.shared.output.has_changes() || (targets > 1 && trials.count > 1),
            "--fail-if with a change, such as 'p50>+10%', compares trials of several targets: name a second one, and \
             give --trials 5 or more, or --until",
        )?;
        require(
            !(trials.comparison.by_turns && self.shared.output.is_on(&RATE)),
            "--by-turns measures times: each target has a part of the callers' time, so its rate says nothing; leave out \
             --by-turns, or the condition on the rate",
        )?;
        Ok(trials)
    }
}
