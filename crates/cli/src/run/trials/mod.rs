//! Repeated trials of several targets, interleaved, and what their comparison shows.

mod table;

use netping_client::{error::StartError, plan::Plan};
use netping_measure::status::Status;
use netping_results::run::Step;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

pub(crate) use self::table::{MOST, Scale, interval, percent, shown};
pub use self::table::{groups_of, table_of};
use crate::{
    error::Verdict,
    run::{
        Runner,
        until::{self, Until},
    },
};

/// The label of the second measurement of the first target.
const AGAIN: &str = "A/A";

/// The trials of each target, and what their comparison is to show.
#[derive(Debug, Clone, Copy)]
pub struct Trials {
    /// Trials of each target; the most, with `until`.
    pub count: u32,
    /// Seed of the order of targets within a trial.
    pub order_seed: u64,
    /// The precision at which they end.
    pub until: Option<Until>,
    /// The first target is measured twice, as if it were two.
    pub aa: bool,
    /// The margin within which targets are to be called equivalent, as a share.
    pub equivalent: Option<f64>,
}

impl Trials {
    /// Returns so many trials, whose comparison shows no more than differences.
    pub fn new(count: u32, order_seed: u64) -> Self {
        Self {
            count,
            order_seed,
            until: None,
            aa: false,
            equivalent: None,
        }
    }

    /// Returns the number of times that the trials may end.
    fn looks(&self) -> usize {
        self.until.map_or(1, |_| Until::looks(self.count))
    }

    /// Returns the group with its first plan twice, if that is wanted.
    fn group(&self, group: &[Plan]) -> Vec<Plan> {
        let mut group = group.to_vec();
        if self.aa {
            let mut again = group[0].clone();
            again.target.label = Some(AGAIN.to_owned());
            group.insert(1, again);
        }
        group
    }
}

/// Runs each group of plans, which differ only in their targets, with [`interleave`], and prints
/// how the targets compare.
///
/// # Errors
/// [`StartError`]; earlier steps are saved and printed.
pub fn run(runner: &mut Runner, trials: Trials, groups: &[Vec<Plan>]) -> Result<(), StartError> {
    let groups: Vec<_> = groups.iter().map(|group| trials.group(group)).collect();
    if trials.until.is_none() {
        let plans = groups.iter().flatten();
        runner.console.progress.outline(plans, trials.count);
    }
    runner.name_targets(groups.iter().flatten());
    let mut random = ChaCha8Rng::seed_from_u64(trials.order_seed);
    let mut measured = Vec::new();
    let mut outcome = Ok(());
    for group in &groups {
        if runner.is_interrupted() {
            break;
        }
        match interleave(runner, trials, group, &mut random, |_| None) {
            Ok(steps) => {
                if let Some(steps) = whole(steps) {
                    tell_precision(runner, trials, &steps);
                    measured.push(steps);
                }
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    if !measured.is_empty() {
        // Groups that were not measured are among the comparisons, too.
        let pairs = groups.iter().map(|group| group.len() - 1).sum();
        runner.say(&table::table(&measured, pairs, trials));
    }
    outcome
}

/// Prints whether the trials ended with the precision that was asked for.
fn tell_precision(runner: &mut Runner, trials: Trials, steps: &[Vec<Step>]) {
    let Some(until) = trials.until else {
        return;
    };
    let count = steps[0].len();
    if until.is_met(steps, trials.count) {
        runner.say(&format!("{until} after {count} trials"));
    } else if !runner.is_interrupted() {
        runner.fail(Verdict::Condition, &format!(
            "{until} was not reached in {count} trials: measure longer (-d), or allow more (--max-trials)"
        ));
    }
}

/// Runs each plan of a group once per trial, and returns the steps of each plan. Each trial has a
/// random order of its own, so that drift of the machines favours no plan. It ends early at an
/// interrupt, and where the values are known as well as was asked. `describe` returns the text to
/// print right after a step.
///
/// # Errors
/// [`StartError`]; earlier steps are saved.
pub fn interleave(
    runner: &mut Runner,
    trials: Trials,
    group: &[Plan],
    random: &mut ChaCha8Rng,
    describe: impl Fn(&Step) -> Option<String>,
) -> Result<Vec<Vec<Step>>, StartError> {
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); group.len()];
    for trial in 1..=trials.count {
        let is_met = |until: Until| trial > until::FEWEST && until.is_met(&steps, trials.count);
        if trials.until.is_some_and(is_met) {
            break;
        }
        runner.begin_trial(trial, trials.order_seed);
        for place in shuffled(group.len(), random) {
            if runner.is_interrupted() {
                return Ok(steps);
            }
            let plan = group[place].of_trial(trial);
            steps[place].push(runner.measure(&plan, &describe)?.clone());
        }
    }
    Ok(steps)
}

/// The trials in which every target was measured to its end: an interruption may have cut the last
/// one short. `None`: there is no such trial.
pub fn whole(mut steps: Vec<Vec<Step>>) -> Option<Vec<Vec<Step>>> {
    let complete = |own: &Vec<Step>| {
        own.iter()
            .take_while(|step| step.status == Status::Complete)
            .count()
    };
    let trials = steps.iter().map(complete).min().unwrap_or(0);
    for own in &mut steps {
        own.truncate(trials);
    }
    (trials > 0).then_some(steps)
}

/// Returns the numbers below `count` in a random order (Fisher and Yates).
pub(crate) fn shuffled(count: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_comes_once_and_in_every_order() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let order = shuffled(3, &mut random);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            orders.insert(order);
        }
        assert_eq!(orders.len(), 6);
    }
}
