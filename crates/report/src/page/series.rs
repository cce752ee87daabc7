//! Steps that belong together and share a colour.

use std::collections::{BTreeMap, BTreeSet};

use netping_results::{
    format::thousands,
    run::{Run, Step},
};

use crate::page::unit::counted;

/// The steps of one target, or of one label, in one run. Those of one load have the same settings:
/// they are trials.
#[derive(Debug)]
pub(super) struct StepSeries<'a> {
    /// Its name in legends.
    pub(super) name: String,
    /// Its place in the palette.
    pub(super) colour: usize,
    pub(super) steps: Vec<&'a Step>,
}

/// Returns the series of all runs, those of the target that was given first before the others.
pub(super) fn step_series(runs: &[Run]) -> Vec<StepSeries<'_>> {
    let mut groups: Vec<StepSeries<'_>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let splits = splits(run);
        let mut known: BTreeMap<(Subject<'_>, Variant), usize> = BTreeMap::new();
        for step in run.steps_by_target() {
            let variant = variant(&splits, step);
            let place = *known.entry((subject(step), variant)).or_insert_with(|| {
                let name = of_run(runs, at, &(name(run, step) + &named(variant)));
                groups.push(StepSeries {
                    name,
                    colour: groups.len(),
                    steps: Vec::new(),
                });
                groups.len() - 1
            });
            groups[place].steps.push(step);
        }
    }
    groups
}

/// The target and the label of a series.
type Subject<'a> = (&'a str, Option<&'a str>);

fn subject(step: &Step) -> Subject<'_> {
    (&step.target, step.label.as_deref())
}

/// Callers and connections of a series, where others of its target and label have other ones under
/// the same load.
type Variant = (Option<usize>, Option<usize>);

/// Which settings vary under one load.
#[derive(Debug, Default, Clone, Copy)]
struct Split {
    callers: bool,
    connections: bool,
}

/// Returns the settings that distinguish a target's series, for closed loops and for open ones.
fn splits(run: &Run) -> BTreeMap<(Subject<'_>, bool), Split> {
    let mut callers: BTreeMap<(Subject<'_>, Option<u64>), BTreeSet<usize>> = BTreeMap::new();
    let mut connections: BTreeMap<(Subject<'_>, Option<u64>, usize), BTreeSet<usize>> =
        BTreeMap::new();
    for step in &run.steps {
        let (settings, rate) = (&step.settings, step.settings.planned_rate.map(f64::to_bits));
        callers
            .entry((subject(step), rate))
            .or_default()
            .insert(settings.callers);
        connections
            .entry((subject(step), rate, settings.callers))
            .or_default()
            .insert(settings.connections);
    }
    let mut splits: BTreeMap<(Subject<'_>, bool), Split> = BTreeMap::new();
    for ((subject, rate), values) in callers {
        // In a closed loop, callers are the load itself.
        splits.entry((subject, rate.is_some())).or_default().callers |=
            rate.is_some() && values.len() > 1;
    }
    for ((subject, rate, _), values) in connections {
        splits
            .entry((subject, rate.is_some()))
            .or_default()
            .connections |= values.len() > 1;
    }
    splits
}

fn variant(splits: &BTreeMap<(Subject<'_>, bool), Split>, step: &Step) -> Variant {
    let settings = &step.settings;
    let split = splits
        .get(&(subject(step), settings.planned_rate.is_some()))
        .copied()
        .unwrap_or_default();
    (
        split.callers.then_some(settings.callers),
        split.connections.then_some(settings.connections),
    )
}

/// Returns a variant's part of a name: `, 64 callers, 16 connections`.
fn named((callers, connections): Variant) -> String {
    [(callers, "callers"), (connections, "connections")]
        .into_iter()
        .filter_map(|(number, things)| Some(format!(", {}", counted(number? as f64, things))))
        .collect()
}

/// `name`, with the run that it is of where there are several.
pub(super) fn of_run(runs: &[Run], at: usize, name: &str) -> String {
    if runs.len() > 1 {
        format!("run {}: {name}", at + 1)
    } else {
        name.to_owned()
    }
}

/// Its label, with the target where the label has several; the target where it has none.
fn name(run: &Run, step: &Step) -> String {
    let Some(label) = &step.label else {
        return step.target.clone();
    };
    let alone = run
        .steps
        .iter()
        .filter(|other| other.label == step.label)
        .all(|other| other.target == step.target);
    if alone {
        label.clone()
    } else {
        format!("{label}, {}", step.target)
    }
}

impl<'a> StepSeries<'a> {
    /// The steps, trial for trial, of the load with the highest mean rate.
    pub(super) fn best(&self) -> Vec<&'a Step> {
        let mut loads: BTreeMap<(usize, Option<u64>, usize), Vec<&'a Step>> = BTreeMap::new();
        for step in &self.steps {
            loads.entry(step.settings.load()).or_default().push(step);
        }
        let mean = |steps: &[&Step]| {
            steps.iter().map(|step| step.summary.rate).sum::<f64>() / steps.len() as f64
        };
        loads
            .into_values()
            .max_by(|a, b| mean(a).total_cmp(&mean(b)))
            .unwrap_or_default()
    }
}

/// Returns a step's load in words: `64 callers`, `10,000 req/s planned`.
pub(super) fn load(step: &Step) -> String {
    match step.settings.planned_rate {
        Some(rate) => format!("{} req/s planned", thousands(rate)),
        None => counted(step.settings.callers as f64, "callers"),
    }
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures;

    use super::*;

    /// A step of these callers, connections and planned rate that reached `rate`.
    fn step(callers: usize, connections: usize, planned_rate: Option<f64>, rate: f64) -> Step {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.target = "t".to_owned();
        (step.settings.callers, step.settings.connections) = (callers, connections);
        (step.settings.planned_rate, step.summary.rate) = (planned_rate, rate);
        step
    }

    /// Each series' name, and the rates of its steps.
    fn found(steps: Vec<Step>) -> Vec<(String, Vec<u32>)> {
        let runs = [fixtures::run(steps)];
        let rates = |steps: &[&Step]| steps.iter().map(|step| step.summary.rate as u32).collect();
        step_series(&runs)
            .into_iter()
            .map(|group| (group.name, rates(&group.steps)))
            .collect()
    }

    #[test]
    fn other_connections_are_no_other_trial() {
        let steps = [
            (64, 1, 10.0),
            (64, 16, 20.0),
            (512, 1, 30.0),
            (512, 16, 40.0),
            (64, 16, 22.0),
        ];
        let steps = steps
            .map(|(callers, connections, rate)| step(callers, connections, None, rate))
            .to_vec();
        let expected = [
            ("t, 1 connection".to_owned(), vec![10, 30]),
            ("t, 16 connections".to_owned(), vec![20, 40, 22]),
        ];
        assert_eq!(found(steps), expected);
    }

    #[test]
    fn other_callers_at_one_rate_are_no_other_trial() {
        let mut steps = Vec::new();
        for (rate, callers) in [(1000.0, 16), (1000.0, 64), (2000.0, 16), (2000.0, 64)] {
            steps.push(step(callers, callers, Some(rate), rate + callers as f64));
        }
        // A single closed loop needs no such name.
        steps.push(step(16, 16, None, 5.0));
        let expected = [
            ("t, 16 callers".to_owned(), vec![1016, 2016]),
            ("t, 64 callers".to_owned(), vec![1064, 2064]),
            ("t".to_owned(), vec![5]),
        ];
        assert_eq!(found(steps), expected);
    }

    #[test]
    fn a_sweep_whose_callers_have_connections_of_their_own_is_one_series() {
        let steps = [1, 4, 16]
            .map(|callers| step(callers, callers, None, 7.0))
            .to_vec();
        assert_eq!(found(steps), [("t".to_owned(), vec![7, 7, 7])]);
    }

    #[test]
    fn the_best_are_trials_of_one_load() {
        let steps = [(16, 8, 10.0), (64, 8, 30.0), (64, 8, 34.0)]
            .map(|(callers, connections, rate)| step(callers, connections, None, rate));
        let runs = [fixtures::run(steps.to_vec())];
        let best: Vec<u32> = step_series(&runs)[0]
            .best()
            .iter()
            .map(|step| step.summary.rate as u32)
            .collect();
        assert_eq!(best, [30, 34]);
    }
}
