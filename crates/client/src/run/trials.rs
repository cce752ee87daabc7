//! Repeated trials of several targets, interleaved, and what their comparison shows.

use netping_measure::{
    statistics::difference::{Difference, Finding},
    status::Status,
};
use netping_report::table::{Column, Table};
use netping_results::{
    metric::{self, Better},
    run::Step,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{error::StartError, plan::Plan, run::Runner};

const COLUMNS: [Column; 8] = [
    Column::text("target", 0),
    Column::number("callers", 0).spare(1),
    Column::text("measure", 0),
    Column::number("value", 0),
    Column::number("+-95%", 0).spare(2),
    Column::number("to first", 0),
    Column::number("95% interval", 0).spare(3),
    Column::text("shown", 0),
];

/// The number of trials, and the seed of their order.
#[derive(Debug, Clone, Copy)]
pub struct Trials {
    /// Trials of each target.
    pub count: u32,
    /// Seed of the order of targets within a trial.
    pub order_seed: u64,
}

/// Runs each group of plans, which differ only in their targets, with [`interleave`], and prints
/// how the targets compare.
///
/// # Errors
/// [`StartError`]; earlier steps are saved and printed.
pub fn run(runner: &mut Runner, trials: Trials, groups: &[Vec<Plan>]) -> Result<(), StartError> {
    let mut random = ChaCha8Rng::seed_from_u64(trials.order_seed);
    let pairs: usize = groups.iter().map(|group| group.len().max(1) - 1).sum();
    let comparisons = pairs * metric::TRIALS.len();
    let mut rows = Vec::new();
    for group in groups {
        if runner.is_interrupted() {
            break;
        }
        match interleave(runner, trials, group, &mut random, |_| None) {
            Ok(steps) => rows.extend(
                whole(steps)
                    .iter()
                    .flat_map(|steps| compare(group, steps, comparisons)),
            ),
            Err(error) => {
                runner.say(&Table::whole(&COLUMNS, &rows));
                return Err(error);
            }
        }
    }
    runner.say(&Table::whole(&COLUMNS, &rows));
    if rows.iter().any(|row| row[0].ends_with('*')) {
        runner.say("* requests failed on this target: its times are of those that did not");
    }
    runner.say(&format!(
        "{}{} trials of each, in random order; p50 and p99 of all of them together. A difference to the first target is \
         shown where its interval leaves out 0; with 95 % probability, all {} intervals hold: Welch's test on \
         logarithms, whole trials drawn anew for quantiles. 'could have seen': found in 80 % of such trials.",
        if runner.is_interrupted() { "fewer than " } else { "" },
        trials.count,
        comparisons
    ));
    Ok(())
}

/// Runs each plan of a group once per trial, and returns the steps of each plan. Each trial has a
/// random order of its own, so that drift of the machines favours no plan. It ends early at an
/// interrupt. `describe` returns the text to print right after a step.
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

/// Returns the rows of one group: each metric of each target.
fn compare(group: &[Plan], steps: &[Vec<Step>], comparisons: usize) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (number, (plan, own)) in group.iter().zip(steps).enumerate() {
        let failed = own.iter().any(|step| step.summary.unserved() > 0);
        for metric in metric::TRIALS {
            let estimate = metric.estimate(own);
            let difference = if number == 0 {
                None
            } else {
                metric.difference(&steps[0], own, comparisons)
            };
            let percent = |share: f64| format!("{:+.1}%", share * 100.0);
            let cell = |of: &dyn Fn(Difference) -> String| difference.map(of).unwrap_or_default();
            rows.push(vec![
                format!("{}{}", plan.target.url, if failed { " *" } else { "" }),
                plan.load.callers.to_string(),
                metric.title.to_owned(),
                metric.cell(estimate.map(|estimate| estimate.mean)),
                metric.cell(estimate.and_then(|estimate| estimate.half_width)),
                cell(&|difference| percent(difference.relative)),
                cell(&|difference| interval(difference.interval, percent)),
                cell(&|difference| shown(difference, metric.better == Better::Higher)),
            ]);
        }
    }
    rows
}

/// Returns the ends of an interval, each as `show` has it.
pub(crate) fn interval([low, high]: [f64; 2], show: fn(f64) -> String) -> String {
    format!("{}..{}", show(low), show(high))
}

/// Returns the finding of a comparison; where none is shown, the smallest difference that could
/// have been.
pub(crate) fn shown(difference: Difference, more_is_better: bool) -> String {
    match difference.finding(more_is_better) {
        Finding::Better => "better".to_owned(),
        Finding::Worse => "worse".to_owned(),
        Finding::NoDifference => format!(
            "no difference shown (could have seen {:.1}%)",
            difference.detectable * 100.0
        ),
    }
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
