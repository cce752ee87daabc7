//! Measurements that belong together and share a colour, and names that tell measurements apart.

use std::collections::{BTreeMap, BTreeSet};

use netping_results::run::{Measurement, Run, StepSettings};

use super::unit::counted;
use crate::{distinct, grouped, loads};

/// The measurements of requests to one target, or of one label, in one run.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// Its name in legends.
    pub(super) name: String,
    /// Its place in the palette.
    pub(super) colour: usize,
    /// Its measurements, in the order of their numbers.
    pub(super) measurements: Vec<Measurement<'a>>,
}

/// Returns the groups of all runs, those of the target that was given first before the others.
pub(super) fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    let mut named = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let mut measurements = run.measurements();
        measurements.retain(|own| own.settings().bulk.is_none());
        let varying = varying(&measurements);
        for own in measurements {
            let settings = own.settings().in_words();
            let mut name = own.name().to_owned();
            for word in settings.split(", ") {
                if varying.contains(&(subject(&own), word.to_owned())) {
                    name.extend([", ", word]);
                }
            }
            named.push((of_run(runs, at, &name), own));
        }
    }
    let groups = grouped(named.into_iter()).into_iter().enumerate();
    let group = |(colour, (name, measurements))| Group {
        name,
        colour,
        measurements,
    };
    groups.map(group).collect()
}

/// A target, and whether its loop is open.
type TargetLoop<'a> = (&'a str, bool);

fn subject<'a>(own: &Measurement<'a>) -> TargetLoop<'a> {
    (own.name(), own.settings().planned_rate.is_some())
}

/// Returns the settings that vary under one load of a target, in words: they name groups.
fn varying<'a>(measurements: &[Measurement<'a>]) -> BTreeSet<(TargetLoop<'a>, String)> {
    let load = |own: &'_ Measurement<'a>| (subject(own), own.settings().load_in_words());
    let loads = grouped(measurements.iter().map(|own| (load(own), own)));
    let words = loads.into_iter().flat_map(|((subject, _), own)| {
        let words = without_shared(&named_by(&own, StepSettings::in_words));
        let words = words.into_values().flatten();
        words.map(move |word| (subject, word))
    });
    words.collect()
}

/// `name`, with the run that it is of where there are several.
pub(super) fn of_run(runs: &[Run], at: usize, name: &str) -> String {
    if runs.len() > 1 {
        format!("run {}: {name}", at + 1)
    } else {
        name.to_owned()
    }
}

impl Group<'_> {
    /// Returns the name of one of its measurements.
    pub(super) fn name_of(&self, own: &Measurement<'_>) -> String {
        format!("{}, {}", self.name, own.settings().load_in_words())
    }
}

/// The measurement with the highest rate of a group.
pub(super) struct Fullest<'a> {
    pub(super) measurement: Measurement<'a>,
    /// The name of the group, and the load, unless all of several have the same.
    pub(super) name: String,
    pub(super) colour: usize,
}

/// Returns the fullest measurement of each group.
pub(super) fn fullest(runs: &[Run]) -> Vec<Fullest<'_>> {
    let groups = groups(runs);
    let best = groups.iter().filter_map(|group| {
        let measurement = loads::fullest(&group.measurements)?.clone();
        Some(Fullest {
            name: group.name_of(&measurement),
            colour: group.colour,
            measurement,
        })
    });
    let mut best: Vec<Fullest<'_>> = best.collect();
    let loads = best
        .iter()
        .map(|own| own.measurement.settings().load_in_words());
    if best.len() > 1 && distinct(loads).len() == 1 {
        for (own, group) in best.iter_mut().zip(&groups) {
            own.name.clone_from(&group.name);
        }
    }
    best
}

/// Returns the words that tell each of these measurements from the others, by its number: its name
/// and its load, and more of its settings where these do not, without what all have in common.
pub(super) fn apart(all: &[&Measurement<'_>]) -> Names {
    let levels: [fn(&StepSettings) -> String; 3] = [
        StepSettings::load_in_words,
        load_in_more_words,
        StepSettings::in_words,
    ];
    let levels = levels.map(|level| named_by(all, level));
    let mut names = levels[2].clone();
    for (number, words) in &mut names {
        let is_alone = |level: &&Names| {
            let own = level.values().filter(|own| **own == level[number]);
            own.count() == 1
        };
        if let Some(level) = levels.iter().find(is_alone) {
            words.clone_from(&level[number]);
        }
    }
    let mut apart = without_shared(&names);
    for (number, words) in &mut apart {
        if words.is_empty() {
            words.extend(names[number].first().cloned());
        }
    }
    apart
}

/// The words of each measurement's name, by its number.
type Names = BTreeMap<usize, Vec<String>>;

fn named_by(all: &[&Measurement<'_>], level: fn(&StepSettings) -> String) -> Names {
    let words = |own: &&Measurement<'_>| {
        let mut words = vec![own.names()];
        words.extend(level(own.settings()).split(", ").map(str::to_owned));
        (own.number, words)
    };
    all.iter().map(words).collect()
}

/// Returns the words that not all have.
fn without_shared(names: &Names) -> Names {
    let is_shared = |word: &String| names.values().all(|own| own.contains(word));
    let mut apart = names.clone();
    for words in apart.values_mut() {
        words.retain(|word| !is_shared(word));
    }
    apart
}

/// Returns the load, its connections and its message.
fn load_in_more_words(settings: &StepSettings) -> String {
    let connections = counted(settings.connections as f64, "connections");
    let message = settings.message.as_ref();
    let message = message.map_or_else(String::new, |name| format!(", message {name}"));
    format!("{}, {connections}{message}", settings.load_in_words())
}

#[cfg(test)]
mod tests {
    use netping_results::{estimate::estimate, fixtures, metric, run::Step};

    use super::*;

    /// A step of these callers, connections and planned rate that reached `rate`.
    fn step(callers: usize, connections: usize, planned_rate: Option<f64>, rate: f64) -> Step {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.target = "t".to_owned();
        (step.settings.callers, step.settings.connections) = (callers, connections);
        (step.settings.planned_rate, step.summary.rate) = (planned_rate, rate);
        step
    }

    /// Each group's name, and the rates of its measurements.
    fn found(steps: Vec<Step>) -> Vec<(String, Vec<u32>)> {
        let runs = [fixtures::run(steps)];
        let rate = |own: &Measurement<'_>| estimate(&metric::RATE, own).unwrap().value.round();
        let rates = |group: &Group<'_>| {
            let all = group.measurements.iter();
            all.map(|own| rate(own) as u32).collect()
        };
        groups(&runs)
            .into_iter()
            .map(|group| (group.name.clone(), rates(&group)))
            .collect()
    }

    #[test]
    fn other_connections_are_no_other_trial() {
        let steps = [
            (64, 1, 10.0),
            (64, 16, 20.0),
            (512, 1, 30.0),
            (512, 16, 40.0),
            (64, 16, 80.0),
        ];
        let steps = steps
            .map(|(callers, connections, rate)| step(callers, connections, None, rate))
            .to_vec();
        let expected = [
            ("t, 1 connection".to_owned(), vec![10, 30]),
            ("t, 16 connections".to_owned(), vec![40, 40]),
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
            ("t, 16 callers, 16 connections".to_owned(), vec![1016, 2016]),
            ("t, 64 callers, 64 connections".to_owned(), vec![1064, 2064]),
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
    fn the_best_is_the_measurement_with_the_highest_rate() {
        let steps = [(16, 8, 33.0), (64, 8, 30.0), (64, 8, 40.0)]
            .map(|(callers, connections, rate)| step(callers, connections, None, rate));
        let runs = [fixtures::run(steps.to_vec())];
        assert_eq!(fullest(&runs)[0].measurement.settings().callers, 64);
    }

    #[test]
    fn names_have_what_differs_and_no_more() {
        let names = |steps: Vec<Step>| {
            let run = fixtures::run(steps);
            let all = run.measurements();
            let names = apart(&all.iter().collect::<Vec<_>>());
            names.values().map(|words| words.join(", ")).collect()
        };
        let of = |target: &str, callers, connections| Step {
            target: target.to_owned(),
            ..step(callers, connections, None, 1.0)
        };
        let all: Vec<String> = names(vec![of("a", 8, 8), of("b", 8, 8)]);
        assert_eq!(all, ["a", "b"]);
        let all: Vec<String> = names(vec![of("a", 8, 8), of("a", 64, 64)]);
        assert_eq!(all, ["8 callers", "64 callers"]);
        let all: Vec<String> = names(vec![of("a", 8, 8), of("a", 8, 1), of("b", 8, 8)]);
        assert_eq!(all, ["a, 8 connections", "a, 1 connection", "b"]);
        assert_eq!(names(vec![of("a", 8, 8)]), ["a".to_owned()]);
    }
}
