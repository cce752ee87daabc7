//! Flags about trials.

use clap::{Args, ValueEnum};
use netping_client::plan::Plan;

use super::{share::share_in_percent, until::Until};
use crate::error::require;

/// The trials of each target, and what their comparison is to show.
#[derive(Debug, Clone, Copy)]
pub struct Trials {
    /// Trials of each target; the most, with `until`.
    pub count: u32,
    /// True where the callers of a trial call all targets by turns, instead of one target in each window.
    pub by_turns: bool,
    /// Seed of the order of targets within a trial; `None`: a random one.
    pub order_seed: Option<u64>,
    /// Flags about their comparison.
    pub comparison: ComparisonArgs,
}

impl Trials {
    /// Returns true if there are several, or so many targets of the only one are to have a random order.
    pub fn have_order(&self, targets: usize) -> bool {
        self.count > 1 || (targets > 1 && self.order_seed.is_some())
    }

    /// Returns the number of times that the trials may end.
    pub fn looks(&self) -> usize {
        self.comparison
            .until
            .map_or(1, |_| Until::looks(self.count))
    }

    /// Returns the number of windows of a group that may be measured again: half as many as there are. By turns,
    /// all targets of a trial have one window.
    /// Clients that measure in step cannot agree on one more. A single trial is what the user asked for.
    pub fn repeats(&self, group: &[Plan]) -> u32 {
        let mut plans = group.iter();
        let is_in_step = plans.any(|plan| plan.execution.in_step);
        if is_in_step || self.count == 1 {
            return 0;
        }
        let windows = if self.by_turns { 1 } else { group.len() as u32 };
        self.count.saturating_mul(windows) / 2
    }
}

/// Flags about repetition.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trials")]
pub struct TrialArgs {
    /// Measure everything N times, the targets in random order each time, and compare the targets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    trials: Option<u32>,
    /// Seed of the random order, to have the same one again [default: random; in the JSON]
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,
}

impl TrialArgs {
    /// Returns true if a flag gives their number.
    pub fn is_given(&self) -> bool {
        self.trials.is_some()
    }

    /// Returns true if so many targets have an order that another process cannot know.
    pub fn has_unknown_order(&self, targets: usize) -> bool {
        targets > 1 && self.trials.is_some_and(|trials| trials > 1) && self.order_seed.is_none()
    }

    /// Returns trials whose comparison shows no more than differences; `count` is the default.
    pub fn trials(&self, count: u32) -> Trials {
        Trials {
            count: self.trials.unwrap_or(count),
            by_turns: false,
            order_seed: self.order_seed,
            comparison: ComparisonArgs::default(),
        }
    }
}

/// The unit in which the targets of a trial alternate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Alternate {
    /// Every caller calls the targets by turns, in random order: small differences of times show sooner,
    /// but rates cannot be compared
    Requests,
    /// Each target has a window of its own, in random order
    Windows,
}

/// Flags about the comparison of targets.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Trials")]
pub struct ComparisonArgs {
    /// Measure the first target twice, as if it were two: a difference that is no larger than theirs
    /// is not shown
    #[arg(long)]
    pub aa: bool,
    /// What alternates between the targets of a trial [default: requests; of throughput: windows]
    #[arg(long, value_name = "requests|windows", value_enum)]
    pub alternate: Option<Alternate>,
    /// Say where targets are equivalent: the same to within this share (two one-sided tests)
    #[arg(long, value_name = "SHARE%", value_parser = share_in_percent)]
    pub equivalent: Option<f64>,
    /// Repeat until the interval of a metric is this narrow for every target: 'p99 +-5%'
    #[arg(long, value_name = "METRIC +-SHARE%", conflicts_with_all = ["trials", "start_at"])]
    pub until: Option<Until>,
    /// Most trials with --until
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(3..), requires = "until")]
    max_trials: u32,
}

impl ComparisonArgs {
    /// Returns `trials` with what these flags ask for, where the command alternates like this if no flag says
    /// it; fails if there is nothing to compare.
    pub fn of(
        &self,
        trials: Trials,
        targets: usize,
        alternate: Alternate,
    ) -> anyhow::Result<Trials> {
        let count = self.until.map_or(trials.count, |_| self.max_trials);
        require(
            count > 1 || (!self.aa && self.equivalent.is_none()),
            "--aa and --equivalent compare trials: give --trials 3 or more, or --until",
        )?;
        let are_compared = count > 1 && (targets > 1 || self.aa);
        require(
            self.alternate.is_none() || are_compared,
            "--alternate is about trials of several targets: name a second one or give --aa, and give --trials 5 or more, \
             or --until",
        )?;
        require(
            targets > 1 || self.aa || self.equivalent.is_none(),
            "--equivalent compares targets: give a second one",
        )?;
        let alternate = self.alternate.unwrap_or(alternate);
        Ok(Trials {
            count,
            by_turns: are_compared && alternate == Alternate::Requests,
            comparison: *self,
            ..trials
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_targets_in_several_trials_have_an_order() {
        let of = |trials, order_seed| TrialArgs { trials, order_seed };
        assert!(of(Some(3), None).has_unknown_order(2));
        assert!(!of(Some(3), None).has_unknown_order(1));
        assert!(!of(Some(1), None).has_unknown_order(2));
        assert!(!of(None, None).has_unknown_order(2));
        assert!(!of(Some(3), Some(7)).has_unknown_order(2));
    }
}
