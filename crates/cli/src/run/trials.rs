//! Repeated trials of several targets, interleaved.

use std::ops::Range;

use netping_client::{error::StartError, plan::Plan};
use netping_report::text;
use netping_results::run::{Measurement, Pairing, Place, Step};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{
    environment,
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
    /// Returns trials whose comparison shows no more than differences, in an order by this seed or by
    /// a random one.
    pub fn new(count: u32, order_seed: Option<u64>) -> Self {
        Self {
            count,
            order_seed: order_seed.unwrap_or_else(environment::random_seed),
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

/// Returns the pairings of groups in each of which all others are compared with the first. Their
/// measurements are numbered from `first` on.
fn pairings(groups: &[Vec<Plan>], first: usize) -> Vec<Pairing> {
    let mut pairings = Vec::new();
    let mut base = first;
    for group in groups {
        pairings.extend(group.iter().enumerate().skip(1).map(|(at, plan)| Pairing {
            base,
            new: base + at,
            is_control: plan.target.label.as_deref() == Some(AGAIN),
        }));
        base += group.len();
    }
    pairings
}

/// Runs each group of plans, which differ only in their targets, in trials, and prints how the
/// targets compare. `describe` returns the text to print right after a step.
///
/// # Errors
/// [`StartError`]; earlier steps are saved and printed.
pub fn run(
    runner: &mut Runner,
    trials: Trials,
    groups: &[Vec<Plan>],
    describe: impl Fn(&Step) -> Option<String>,
) -> Result<(), StartError> {
    let groups: Vec<_> = groups.iter().map(|group| trials.group(group)).collect();
    if trials.until.is_none() {
        let plans = groups.iter().flatten();
        runner.console.progress.outline(plans, trials.count);
    }
    let mut first = runner.next_place().measurement;
    runner.design(trials.order_seed, pairings(&groups, first));
    runner.compare(trials.looks(), trials.equivalent);
    let mut random = ChaCha8Rng::seed_from_u64(trials.order_seed);
    let mut outcome = Ok(());
    for group in &groups {
        outcome = interleave(runner, trials, group, first, &mut random, &describe);
        if outcome.is_err() || runner.is_interrupted() {
            break;
        }
        tell_precision(runner, trials, first..first + group.len());
        first += group.len();
    }
    if !runner.steps().is_empty() {
        runner.say(&text::tables(runner.run()));
    }
    outcome
}

/// Prints whether the trials of these measurements ended with the precision that was asked for.
fn tell_precision(runner: &mut Runner, trials: Trials, numbers: Range<usize>) {
    let Some(until) = trials.until else {
        return;
    };
    if is_met(runner, until, &numbers) {
        let own = runner.steps().iter();
        let count = own.filter(|step| step.measurement == numbers.start).count();
        runner.say(&format!("{until} after {count} trials"));
    } else {
        let count = trials.count;
        runner.fail(Verdict::Condition, &format!(
            "{until} was not reached in {count} trials: measure longer (-d), or allow more (--max-trials)"
        ));
    }
}

/// Returns true if all measurements with these numbers are known as well as was asked.
fn is_met(runner: &Runner, until: Until, numbers: &Range<usize>) -> bool {
    let is_own = |own: &Measurement<'_>| numbers.contains(&own.number);
    let mut all = runner.run().measurements().into_iter().filter(is_own);
    all.all(|own| until.is_met(&own))
}

/// Runs each plan of a group once per trial, as measurements that are numbered from `first` on. Each
/// trial has a random order of its own, so that drift of the machines favours no plan. It ends early
/// at an interrupt, and where the values are known as well as was asked.
///
/// # Errors
/// [`StartError`]; earlier steps are saved.
fn interleave(
    runner: &mut Runner,
    trials: Trials,
    group: &[Plan],
    first: usize,
    random: &mut ChaCha8Rng,
    describe: impl Fn(&Step) -> Option<String>,
) -> Result<(), StartError> {
    let numbers = first..first + group.len();
    for trial in 1..=trials.count {
        let is_enough = |until: Until| trial > until::FEWEST && is_met(runner, until, &numbers);
        if trials.until.is_some_and(is_enough) {
            break;
        }
        for at in shuffled(group.len(), random) {
            if runner.is_interrupted() {
                return Ok(());
            }
            let plan = group[at].of_trial(trial);
            let measurement = first + at;
            runner.measure(&plan, Place { measurement, trial }, &describe)?;
        }
    }
    Ok(())
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
