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
    args::{
        trials::Trials,
        until::{self, Until},
    },
    error::Verdict,
    run::Runner,
};

/// The label of the second measurement of the first target.
const AGAIN: &str = "A/A";

/// Returns a group of plans, with its first one twice if that is asked for.
fn group(trials: Trials, group: &[Plan]) -> Vec<Plan> {
    let mut group = group.to_vec();
    if trials.comparison.aa {
        let mut again = group[0].clone();
        again.target.label = Some(AGAIN.to_owned());
        group.insert(1, again);
    }
    group
}

/// Returns the pairings of the groups for which `is_compared` is true, in each of which all others are
/// compared with the first. The measurements of all groups are numbered from `first` on.
fn pairings(
    groups: &[Vec<Plan>],
    first: usize,
    is_compared: impl Fn(&[Plan]) -> bool,
) -> Vec<Pairing> {
    let mut pairings = Vec::new();
    let mut base = first;
    for group in groups {
        let numbers = base..base + group.len();
        base = numbers.end;
        if !is_compared(group) {
            continue;
        }
        let label = |number: usize| group[number - numbers.start].target.label.as_deref();
        pairings.extend(
            Pairing::against_first(numbers.clone()).map(|pairing| Pairing {
                is_control: label(pairing.new) == Some(AGAIN),
                ..pairing
            }),
        );
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
    run_comparing(runner, trials, groups, |_| true, describe)
}

/// As [`run`], but compares only the targets of those groups for which `is_compared` is true: of the
/// others, the values are shown and nothing is claimed.
///
/// # Errors
/// As [`run`].
pub fn run_comparing(
    runner: &mut Runner,
    trials: Trials,
    groups: &[Vec<Plan>],
    is_compared: impl Fn(&[Plan]) -> bool,
    describe: impl Fn(&Step) -> Option<String>,
) -> Result<(), StartError> {
    let groups: Vec<_> = groups.iter().map(|own| group(trials, own)).collect();
    if trials.comparison.until.is_none() {
        let plans = groups.iter().flatten();
        runner.console.progress.outline(plans, trials.count);
    }
    // A relay and the server behind it are one side, from the first trial on.
    for plan in groups.iter().flatten() {
        runner.complete(&mut plan.target.clone());
    }
    let mut first = runner.next_place().measurement;
    runner.design(trials.order_seed, pairings(&groups, first, is_compared));
    let run = &mut runner.store.run;
    (run.looks, run.margin) = (trials.looks(), trials.comparison.equivalent);
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
        runner.console.say(&text::tables(&runner.store.run));
    }
    outcome
}

/// Prints whether the trials of these measurements ended with the precision that was asked for.
fn tell_precision(runner: &mut Runner, trials: Trials, numbers: Range<usize>) {
    let Some(until) = trials.comparison.until else {
        return;
    };
    if is_met(runner, until, &numbers) {
        let own = runner.steps().iter();
        let count = own.filter(|step| step.measurement == numbers.start).count();
        runner.console.say(&format!("{until} after {count} trials"));
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
    let mut all = runner.store.run.measurements().into_iter().filter(is_own);
    all.all(|own| until.is_met(&own))
}

/// Runs each plan of a group once per trial, as measurements that are numbered from `first` on. Each
/// trial has a random order of its own, so that drift of the machines favours no plan. It ends early
/// at an interrupt, and where the values are known as well as was asked. What others disturbed is measured
/// again, as often as that may be.
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
    runner.allow_repeats(trials.repeats(group));
    for trial in 1..=trials.count {
        let is_enough = |until: Until| trial > until::FEWEST && is_met(runner, until, &numbers);
        if trials.comparison.until.is_some_and(is_enough) {
            break;
        }
        let begun = runner.steps().len();
        for at in shuffled(group.len(), random) {
            if runner.is_interrupted() {
                break;
            }
            let plan = group[at].of_trial(trial);
            let measurement = first + at;
            runner.explore(&plan, Place { measurement, trial }, &describe)?;
        }
        runner.judge_from(begun);
        if runner.is_interrupted() {
            break;
        }
    }
    runner.allow_repeats(0);
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
