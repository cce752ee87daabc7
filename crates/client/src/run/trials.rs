//! Repeated trials of several targets, interleaved, and what their comparison shows.

use netping_measure::{
    counts::Counts,
    statistics::{
        difference::{Difference, Finding},
        estimate::Estimate,
        side::Side,
    },
    status::Status,
};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{micros, thousands},
    run::Step,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{args::TrialArgs, commands::Failed, error::StartError, plan::Plan, run::Session};

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

/// What targets are compared by: the rate, and quantiles of the response time in per cent.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Rate,
    Response(f64),
}

const MEASURES: [Measure; 3] = [
    Measure::Rate,
    Measure::Response(50.0),
    Measure::Response(99.0),
];

impl Measure {
    fn name(self) -> String {
        match self {
            Self::Rate => "req/s".to_owned(),
            Self::Response(percent) => format!("p{percent} us"),
        }
    }

    /// Its value in each step that has one.
    fn of(self, steps: &[Step]) -> Vec<f64> {
        let value = |step: &Step| match self {
            Self::Rate => Some(step.summary.rate),
            Self::Response(percent) => step
                .summary
                .response_time
                .quantile(percent)
                .map(|time| time as f64 / 1e3),
        };
        steps.iter().filter_map(value).collect()
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Rate => thousands(value),
            Self::Response(_) => micros(value),
        }
    }

    /// What it comes to over all steps: the mean of rates, the quantile of all response times together. `None` where some
    /// step has too few samples for it: the others would be the luckier ones.
    fn over(self, steps: &[Step]) -> Option<Estimate> {
        let values = self.of(steps);
        if values.len() < steps.len() {
            return None;
        }
        match self {
            Self::Response(percent) if steps.len() > 1 => {
                let micros = |nanoseconds: f64| nanoseconds / 1e3;
                let Estimate { mean, half_width } =
                    Side::of_quantile(&counts(steps), percent)?.estimate();
                Some(Estimate {
                    mean: micros(mean),
                    half_width: half_width.map(micros),
                })
            }
            Self::Rate | Self::Response(_) => Estimate::of(&values),
        }
    }

    /// What the second target's steps show against the first's.
    fn difference(self, first: &[Step], second: &[Step]) -> Option<Difference> {
        match self {
            Self::Rate => Difference::of_means(&self.of(first), &self.of(second), MEASURES.len()),
            Self::Response(percent) => {
                // A quantile that some trials have too few samples for is none to compare.
                let complete = [first, second]
                    .iter()
                    .all(|steps| self.of(steps).len() == steps.len());
                let side = |steps| Side::of_quantile(&counts(steps), percent);
                Difference::between(side(first)?, side(second)?, MEASURES.len())
                    .filter(|_| complete)
            }
        }
    }
}

/// The response times of each step, as `(value, count)`.
fn counts(steps: &[Step]) -> Vec<&Counts> {
    steps
        .iter()
        .map(|step| &step.histograms.response_time)
        .collect()
}

/// Runs every group of plans, which differ in their targets only, as [`interleave`] does, and shows how the targets compare.
///
/// # Errors
/// [`Failed`]; what was measured before is saved.
pub fn run(
    mut session: Session,
    args: &TrialArgs,
    groups: &[Vec<Plan>],
) -> Result<Session, Failed> {
    let mut random = ChaCha8Rng::seed_from_u64(args.order_seed);
    let mut rows = Vec::new();
    for group in groups {
        if session.is_interrupted() {
            break;
        }
        match interleave(&mut session, args, group, &mut random, |_| None) {
            Ok(steps) => rows.extend(whole(steps).iter().flat_map(|steps| compare(group, steps))),
            Err(error) => {
                session.say(&Table::whole(&COLUMNS, &rows));
                return Err(session.abandon(error));
            }
        }
    }
    session.say(&Table::whole(&COLUMNS, &rows));
    if rows.iter().any(|row| row[0].ends_with('*')) {
        session.say("* requests failed on this target: its times are of those that did not");
    }
    session.say(&format!(
        "{}{} trials of each, in random order; p50 and p99 of all of them together. A difference to the first target is \
         shown where p < 0.05, adjusted for the {} measures compared: Welch's test for rates, whole trials drawn anew for \
         quantiles.",
        if session.is_interrupted() { "fewer than " } else { "" },
        args.trials,
        MEASURES.len()
    ));
    Ok(session)
}

/// Runs each plan of a group so often as `args` say, and gives each one's steps. In each trial the plans come in a random
/// order, so that what drifts on the machines does not favour one of them. It ends early when the user wants it to.
/// `describe` is what to show of a step at once.
///
/// # Errors
/// [`StartError`]; what was measured before is saved.
pub fn interleave(
    session: &mut Session,
    args: &TrialArgs,
    group: &[Plan],
    random: &mut ChaCha8Rng,
    describe: impl Fn(&Step) -> Option<String>,
) -> Result<Vec<Vec<Step>>, StartError> {
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); group.len()];
    for trial in 1..=args.trials {
        session.begin_trial(trial, args.order_seed);
        for place in shuffled(group.len(), random) {
            if session.is_interrupted() {
                return Ok(steps);
            }
            steps[place].push(session.measure(&group[place], &describe)?.clone());
        }
    }
    Ok(steps)
}

/// The trials in which every target was measured to its end: an interruption may have cut the last one short. `None`: there
/// is no such trial.
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

/// The rows of one group: each target, by each measure.
fn compare(group: &[Plan], steps: &[Vec<Step>]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (number, (plan, own)) in group.iter().zip(steps).enumerate() {
        let failed = own.iter().any(|step| step.summary.unserved() > 0);
        for measure in MEASURES {
            let estimate = measure.over(own);
            let difference = if number == 0 {
                None
            } else {
                measure.difference(&steps[0], own)
            };
            let show = |value: Option<f64>| {
                value.map_or_else(|| "-".to_owned(), |value| measure.show(value))
            };
            let percent = |share: f64| format!("{:+.1}%", share * 100.0);
            rows.push(vec![
                format!("{}{}", plan.target, if failed { " *" } else { "" }),
                plan.callers.to_string(),
                measure.name(),
                show(estimate.map(|estimate| estimate.mean)),
                show(estimate.and_then(|estimate| estimate.half_width)),
                difference
                    .map(|difference| percent(difference.relative))
                    .unwrap_or_default(),
                difference
                    .map(|difference| {
                        format!(
                            "{}..{}",
                            percent(difference.interval[0]),
                            percent(difference.interval[1])
                        )
                    })
                    .unwrap_or_default(),
                difference
                    .map(|difference| shown(difference, matches!(measure, Measure::Rate)))
                    .unwrap_or_default(),
            ]);
        }
    }
    rows
}

/// What a difference shows, in words.
pub(crate) fn shown(difference: Difference, more_is_better: bool) -> String {
    let word = match difference.finding(more_is_better) {
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::NoDifference => "no difference shown",
    };
    format!("{word} (p = {:.3})", difference.p_value)
}

/// The numbers below `count` in a random order (Fisher and Yates).
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
