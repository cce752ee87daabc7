//! Flags of the commands that measure requests in trials.

use clap::Args;
use netping_results::metric::RATE;

use super::{
    anatomy::AnatomyArgs,
    in_step::InStepArgs,
    output::{Options, OutputArgs},
    request::RequestArgs,
    trials::{Alternate, ComparisonArgs, TrialArgs, Trials},
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
    pub anatomy: AnatomyArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

impl ComparedArgs {
    /// Returns true if the first target is measured twice.
    pub fn is_repeated(&self) -> bool {
        self.comparison.aa
    }

    /// Returns the options of the run.
    pub fn options(&self) -> anyhow::Result<Options> {
        Ok(Options {
            clock: self.in_step.clock(&self.shared.request)?,
            announcement: self.in_step.announcement(),
            ..self.shared.output.comparing()?
        })
    }

    /// Returns true if flags decide on the number of trials: `--trials`, `--until`, `--start-at`, or a condition that
    /// each step has to meet, for which a part of the samples may be too few.
    pub fn has_trials(&self) -> bool {
        self.shared.trials.is_given()
            || self.comparison.until.is_some()
            || self.in_step.is_given()
            || self.shared.output.has_conditions()
    }

    /// Returns the trials of each step, with this number of targets; `count` and `alternate` are the defaults. Fails
    /// if there is nothing to compare that a flag needs.
    pub fn trials(
        &self,
        targets: usize,
        count: u32,
        alternate: Alternate,
    ) -> anyhow::Result<Trials> {
        let trials = self.shared.trials.trials(count);
        let trials = self.comparison.of(trials, targets, alternate)?;
        require(
            !self.shared.output.has_changes() || (targets > 1 && trials.count > 1),
            "--fail-if with a change, such as 'p50>+10%', compares trials of several targets: name a second one, or \
             give --trials 5 or more, or --until",
        )?;
        require(
            !(trials.by_turns && self.shared.output.is_on(&RATE)),
            "where requests alternate, each target has a part of the callers' time, and its rate says nothing: give \
             --alternate windows, or leave out the condition on the rate",
        )?;
        Ok(trials)
    }
}
