//! Runs of one trial each as the trials of one run: clients on several hosts measure them one after the other.

use std::collections::{BTreeMap, HashSet};

use super::{Pairing, Run, Step};

/// A reason why runs are not trials of the same measurements: the number of the first that is not, from 0 on, and what
/// it lacks or has besides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NotATrial {
    /// The number of the run.
    pub number: usize,
    what: String,
}

/// Values that may differ between trials: their numbers, and the addresses of targets that have names.
const PER_TRIAL: [&str; 2] = ["trial", "target"];

impl Run {
    /// Returns the runs as the trials of one, in their order; `None` without runs. Targets are compared as the first run
    /// compares them, or else with the first target under the same load. The clients whose results were added up are not
    /// told apart.
    ///
    /// # Errors
    /// [`NotATrial`] where one did not measure each of the same things once.
    pub fn of_trials(runs: Vec<Self>) -> Result<Option<Self>, NotATrial> {
        let mut runs = runs.into_iter().enumerate();
        let Some((_, mut whole)) = runs.next() else {
            return Ok(None);
        };
        let first = measured(&whole.steps).map_err(|what| NotATrial { number: 0, what })?;
        let mut known: HashSet<u64> = seeds(&whole.steps).collect();
        for (number, run) in runs {
            let own = measured(&run.steps);
            let own = own.map_err(|what| NotATrial { number, what })?;
            let odd = own.iter().find(|of| !first.contains(of));
            let lacking = || first.iter().find(|of| !own.contains(of));
            if let Some((_, what)) = odd.or_else(lacking) {
                let has = if odd.is_some() { "" } else { "not " };
                let what = format!("it has {has}{what}, unlike the first");
                return Err(NotATrial { number, what });
            }
            for step in &run.steps {
                let mut base = whole.steps.iter().take(first.len());
                let base = base.find(|base| base.measurement == step.measurement);
                if let Some(diff) = base.and_then(|base| step.unlike(base, &PER_TRIAL)) {
                    let what = format!(
                        "{} is {} in it, and {} in the first",
                        diff.what, diff.new, diff.base
                    );
                    return Err(NotATrial { number, what });
                }
            }
            let own: HashSet<u64> = seeds(&run.steps).collect();
            if !known.is_disjoint(&own) {
                let what = "its requests came at the random times of an earlier trial: give each a --seed of its own";
                let what = what.to_owned();
                return Err(NotATrial { number, what });
            }
            known.extend(own);
            let trial = number as u32 + 1;
            let steps = run.steps.into_iter().map(|step| Step { trial, ..step });
            whole.steps.extend(steps);
        }
        for step in whole.steps.iter_mut().take(first.len()) {
            step.trial = 1;
        }
        if whole.pairings.is_empty() {
            whole.pairings = pairings(&mut whole.steps[..first.len()]);
        }
        if let Some(part) = whole.parts.first() {
            whole.command_line.clone_from(&part.command_line);
        }
        // The seeds were those of each trial.
        whole.order_seed = whole.order_seed.or(Some(0));
        whole.parts.clear();
        Ok(Some(whole))
    }
}

/// Returns the seeds of random arrivals.
fn seeds(steps: &[Step]) -> impl Iterator<Item = u64> {
    steps.iter().filter_map(|step| step.settings.seed)
}

/// Returns the numbers of all measurements, and the name of each one's target.
///
/// # Errors
/// A sentence if one was measured several times.
fn measured(steps: &[Step]) -> Result<Vec<(usize, String)>, String> {
    let mut found = BTreeMap::new();
    for step in steps {
        if found
            .insert(step.measurement, step.name().to_owned())
            .is_some()
        {
            return Err(format!(
                "it has trials of its own of {}: each is to be a run of one",
                step.name()
            ));
        }
    }
    Ok(found.into_iter().collect())
}

/// Compares the targets with the first under each load. Every target has the loads in one order.
fn pairings(steps: &mut [Step]) -> Vec<Pairing> {
    steps.sort_by_key(|step| step.measurement);
    let Some(first) = steps.first().map(Step::name) else {
        return Vec::new();
    };
    let load = |step: &Step| (step.settings.load_in_words(), step.settings.callers);
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    let bases: Vec<&Step> = steps.iter().filter(|step| step.name() == first).collect();
    let others = steps.iter().filter(|step| step.name() != first);
    let pairs = others.filter_map(|step| {
        let at = loads.entry(step.name()).or_default();
        let base = bases.get(*at)?;
        *at += 1;
        (load(base) == load(step)).then(|| Pairing::new(base.measurement, step.measurement))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// A run that measures these targets once, under a load of so many callers.
    fn run(targets: &[&str], callers: usize) -> Run {
        let step = |(measurement, target): (usize, &&str)| {
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            step.measurement = measurement;
            step.label = Some((*target).to_owned());
            step.settings.callers = callers;
            step
        };
        fixtures::run(targets.iter().enumerate().map(step).collect())
    }

    #[test]
    fn trials_have_random_arrivals_of_their_own() {
        let trials = |seeds: [Option<u64>; 3]| {
            let runs = seeds.map(|seed| {
                let mut run = run(&["a", "b"], 8);
                for step in &mut run.steps {
                    step.settings.seed = seed;
                }
                run
            });
            Run::of_trials(runs.into()).map_err(|fault| fault.number)
        };
        assert!(trials([None; 3]).is_ok());
        assert!(trials([1, 2, 3].map(Some)).is_ok());
        assert_eq!(trials([1, 2, 1].map(Some)).err(), Some(2));
    }

    #[test]
    fn runs_of_one_trial_become_the_trials_of_one() {
        let mut second = run(&["a", "b"], 8);
        // The order within a trial is random.
        second.steps.reverse();
        let whole = Run::of_trials(vec![run(&["a", "b"], 8), second]);
        let whole = whole.unwrap().unwrap();
        let trials: Vec<_> = whole.measurements();
        let trials: Vec<Vec<u32>> = trials
            .iter()
            .map(|own| own.trials.iter().map(|step| step.trial).collect())
            .collect();
        assert_eq!(trials, [[1, 2], [1, 2]]);
        assert_eq!(whole.pairings, [Pairing::new(0, 1)]);
        assert!(whole.order_seed.is_some() && whole.parts.is_empty());
        assert!(Run::of_trials(Vec::new()).unwrap().is_none());
    }

    #[test]
    fn targets_are_compared_under_the_load_that_they_share() {
        let sweep = |loads: &[(&str, usize)]| {
            let step = |(measurement, (target, connections)): (usize, &(&str, usize))| {
                let mut step = run(&[target], 64).steps.remove(0);
                (step.measurement, step.settings.connections) = (measurement, *connections);
                step
            };
            fixtures::run(loads.iter().enumerate().map(step).collect())
        };
        let pairings = |run: Run| Run::of_trials(vec![run]).unwrap().unwrap().pairings;
        let mut two = sweep(&[("a", 1), ("b", 1), ("c", 1), ("a", 8), ("b", 8), ("c", 8)]);
        let expected = [(0, 1), (0, 2), (3, 4), (3, 5)].map(|(base, new)| Pairing::new(base, new));
        assert_eq!(pairings(two.clone()), expected);
        two.steps.reverse();
        assert_eq!(pairings(two.clone()), expected);
        // One target after the other, each under both loads.
        let by_target = sweep(&[("a", 1), ("a", 8), ("b", 1), ("b", 8)]);
        let expected = [(0, 2), (1, 3)].map(|(base, new)| Pairing::new(base, new));
        assert_eq!(pairings(by_target), expected);
        let mut unlike = sweep(&[("a", 1), ("b", 1)]);
        unlike.steps[1].settings.callers = 65;
        assert!(pairings(unlike).is_empty());
        // One target under several loads is compared with nothing.
        assert!(pairings(sweep(&[("a", 1), ("a", 8)])).is_empty());
        // What the runs compare themselves stays.
        two.pairings = vec![Pairing::new(1, 2)];
        assert_eq!(pairings(two.clone()), two.pairings);
    }

    #[test]
    fn other_measurements_are_no_trials() {
        let fault = |other: Run| {
            let fault = Run::of_trials(vec![run(&["a", "b"], 8), other]).unwrap_err();
            (fault.number, fault.to_string())
        };
        let (number, what) = fault(run(&["a", "c"], 8));
        assert!(
            number == 1 && what.starts_with("it has c, unlike"),
            "{what}"
        );
        let (_, what) = fault(run(&["a"], 8));
        assert!(what.starts_with("it has not b, unlike"), "{what}");
        let (_, what) = fault(run(&["a", "b"], 9));
        assert_eq!(what, "callers is 9 in it, and 8 in the first");
        let mut longer = run(&["a", "b"], 8);
        longer.steps[1].settings.duration_seconds = Some(60.0);
        assert!(fault(longer).1.starts_with("duration_seconds is "));
        let mut twice = run(&["a", "b"], 8);
        twice.steps[1].measurement = 0;
        assert!(fault(twice).1.contains("trials of its own"));
    }
}
