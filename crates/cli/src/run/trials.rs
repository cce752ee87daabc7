//! Repeated trials of several targets, interleaved.

use std::ops::Range;

use netping_client::{
    error::StartError,
    plan::{Plan, shuffled, together},
};
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
    environment,
    error::Verdict,
    run::Runner,
};

/// A group of plans that differ only in their targets, and those that are measured once more as controls.
#[derive(Debug, Clone)]
struct Group {
    plans: Vec<Plan>,
    /// For each plan, the place of the one that it is the control of.
    control_of: Vec<Option<usize>>,
}

impl Group {
    /// Returns a group with its first target twice if that is asked for. By turns, all are there twice: a
    /// target that is called twice as often as another is under another load.
    fn of(trials: Trials, plans: &[Plan]) -> Self {
        let mut group = Self {
            plans: Vec::new(),
            control_of: Vec::new(),
        };
        for (at, plan) in plans.iter().enumerate() {
            let place = group.plans.len();
            group.plans.push(plan.clone());
            group.control_of.push(None);
            if trials.comparison.aa && (at == 0 || trials.by_turns) {
                let mut again = plan.clone();
                again.target.label = Some(again_label(at));
                group.plans.push(again);
                group.control_of.push(Some(place));
            }
        }
        group
    }

    /// Returns what is compared: each control with its own, all others with the first. The measurements are
    /// numbered from `first` on.
    fn pairings(&self, first: usize) -> impl Iterator<Item = Pairing> {
        let others = self.control_of.iter().enumerate().skip(1);
        others.map(move |(at, control_of)| Pairing {
            is_control: control_of.is_some(),
            ..Pairing::new(first + control_of.unwrap_or(0), first + at)
        })
    }
}

/// Returns the label of a target that is measured once more: A/A of the first, B/B of the second.
fn again_label(at: usize) -> String {
    let letter = u8::try_from(at).map_or('?', |at| char::from(b'A' + at % 26));
    format!("{letter}/{letter}")
}

/// Runs each group of plans, which differ only in their targets, in trials. `describe` returns the text to
/// print right after a step.
///
/// # Errors
/// [`StartError`]; earlier steps are saved.
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
    let groups: Vec<_> = groups.iter().map(|own| Group::of(trials, own)).collect();
    let plans = || groups.iter().flat_map(|group| &group.plans);
    if trials.comparison.until.is_none() {
        runner.console.progress.outline(plans(), trials.count);
    }
    // A relay and the server behind it are one side, from the first trial on.
    for plan in plans() {
        runner.complete(&mut plan.target.clone());
    }
    let mut first = runner.next_place().measurement;
    let (mut pairings, mut number) = (Vec::new(), first);
    for group in &groups {
        if is_compared(&group.plans) {
            pairings.extend(group.pairings(number));
        }
        number += group.plans.len();
    }
    let order_seed = trials.order_seed.unwrap_or_else(environment::random_seed);
    runner.design(order_seed, pairings);
    let run = &mut runner.store.run;
    (run.looks, run.margin) = (trials.looks(), trials.comparison.equivalent);
    let mut random = ChaCha8Rng::seed_from_u64(order_seed);
    for Group { plans: group, .. } in &groups {
        interleave(runner, trials, group, first, &mut random, &describe)?;
        if runner.is_interrupted() {
            break;
        }
        tell_precision(runner, trials, first..first + group.len());
        first += group.len();
    }
    Ok(())
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
        if trials.by_turns {
            let place = Place {
                measurement: first,
                trial,
            };
            let plans: Vec<Plan> = group.iter().map(|plan| plan.of_trial(trial)).collect();
            runner.explore_together(&together(&plans, random.next_u64()), place)?;
        } else {
            for at in shuffled(group.len(), random) {
                if runner.is_interrupted() {
                    break;
                }
                let plan = group[at].of_trial(trial);
                let measurement = first + at;
                runner.explore(&plan, Place { measurement, trial }, &describe)?;
            }
        }
        runner.judge_from(begun);
        runner.plant();
        if runner.is_interrupted() {
            break;
        }
    }
    runner.allow_repeats(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use netping_client::{
        plan::{Destination, Trust},
        probe::metrics::ServerSource,
        transport::Kind,
    };
    use netping_protocol::secure::Connector;

    use super::*;
    use crate::args::trials::ComparisonArgs;

    #[test]
    fn by_turns_every_target_has_a_control_of_its_own() {
        let plan = |url: &str| {
            let clear = (Connector::Plain, Trust::default());
            let target = Destination::new(url.parse().unwrap(), ServerSource::Nowhere, clear);
            Plan::new(target, Kind::Line)
        };
        let plans = [plan("tcp://a:1"), plan("tcp://b:1"), plan("tcp://c:1")];
        let of = |aa, by_turns| {
            let mut comparison = ComparisonArgs::default();
            comparison.aa = aa;
            let trials = Trials {
                count: 5,
                by_turns,
                order_seed: None,
                comparison,
            };
            let repeats = trials.repeats(&plans);
            let group = Group::of(trials, &plans);
            let label = |plan: &Plan| plan.target.label.clone().unwrap_or_default();
            let labels: Vec<String> = group.plans.iter().map(label).collect();
            let pairs = group.pairings(10);
            let pairs: Vec<_> = pairs
                .map(|own| (own.base - 10, own.new - 10, own.is_control))
                .collect();
            (labels.join(" "), pairs, repeats)
        };
        // By turns, a window has all targets, and is measured again as a whole.
        assert_eq!(
            of(false, true),
            ("  ".to_owned(), vec![(0, 1, false), (0, 2, false)], 2)
        );
        assert_eq!(
            of(true, false),
            (
                " A/A  ".to_owned(),
                vec![(0, 1, true), (0, 2, false), (0, 3, false)],
                7
            )
        );
        assert_eq!(
            of(true, true),
            (
                " A/A  B/B  C/C".to_owned(),
                vec![
                    (0, 1, true),
                    (0, 2, false),
                    (2, 3, true),
                    (0, 4, false),
                    (4, 5, true)
                ],
                2
            )
        );
    }
}
