//! The warnings about a whole run, each kind once.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Severity, Warning,
    facts::{Rival, Trial},
};
use crate::{
    metric,
    run::{Kind, Run, Step},
};

/// A kind of warning, and the results that it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The worst of its kind.
    pub worst: Warning,
    /// True if others of its kind say something else.
    pub varies: bool,
    /// The places of the steps that it is about.
    pub steps: Vec<usize>,
}

/// The warnings about steps, each kind once.
#[derive(Debug)]
pub struct Warnings {
    /// The number of results.
    pub results: usize,
    /// The kinds, in the order in which they were found.
    pub kinds: Vec<Found>,
}

impl Warnings {
    /// Collects the warnings about a run, but for what goes without saying in a run of its kind.
    pub fn of_run(run: &Run) -> Self {
        let is_ladder = run.kind == Kind::Ladder;
        let mut all = Self::of(run);
        all.kinds
            .retain(|found| !is_ladder || found.worst.is_told_in_ladders());
        all
    }

    /// Collects all warnings about a run.
    pub fn of(run: &Run) -> Self {
        let mut all = Self {
            results: run.steps.len(),
            kinds: Vec::new(),
        };
        for (at, step) in run.steps.iter().enumerate() {
            for warning in &step.warnings {
                all.add(warning, at);
            }
        }
        for (at, warning) in Self::of_several_steps(run) {
            all.add(&warning, at);
        }
        all
    }

    /// Returns the warnings that no step shows by itself, each with the place of a step that it is about.
    /// Trials of a measurement are held against each other by the metrics on which claims are made.
    pub fn of_several_steps(run: &Run) -> Vec<(usize, Warning)> {
        let mut measurements: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, step) in run.steps.iter().enumerate() {
            measurements.entry(step.measurement).or_default().push(at);
        }
        let mut all = Vec::new();
        for places in measurements.into_values() {
            let metrics = run.compared_by(&run.steps[places[0]].settings);
            let trials: Vec<Trial> = places
                .iter()
                .map(|at| trial(&run.steps[*at], metrics))
                .collect();
            let found = Warning::of_trials(&trials);
            all.extend(found.into_iter().map(|(at, warning)| (places[at], warning)));
        }
        for places in held_against_each_other(run) {
            let rivals: Vec<Rival<'_>> = places.iter().map(|at| rival(&run.steps[*at])).collect();
            for warning in Warning::of_rivals(&rivals) {
                all.extend(places.iter().map(|at| (*at, warning.clone())));
            }
        }
        all
    }

    /// Adds a warning about the step at this place.
    fn add(&mut self, warning: &Warning, at: usize) {
        let mut kinds = self.kinds.iter_mut();
        let Some(found) = kinds.find(|found| found.worst.name() == warning.name()) else {
            return self.kinds.push(Found {
                worst: warning.clone(),
                varies: false,
                steps: vec![at],
            });
        };
        found.varies |= found.worst != *warning;
        if warning.is_worse_than(&found.worst) {
            found.worst = warning.clone();
        }
        // Clients that were merged may have a kind twice.
        if found.steps.last() != Some(&at) {
            found.steps.push(at);
        }
    }

    /// Returns true if there are results and no warning that invalidates them.
    pub fn is_valid(&self) -> bool {
        self.results > 0 && self.invalidating().is_empty()
    }

    /// Returns the names of the warnings that invalidate the results.
    pub fn invalidating(&self) -> Vec<&'static str> {
        let worst = self.kinds.iter().map(|found| &found.worst);
        let invalid = worst.filter(|worst| worst.severity() == Severity::Invalid);
        invalid.map(Warning::name).collect()
    }
}

/// Returns the places of the steps of requests that are held against each other, ordered by measurement:
/// each base with all that is compared with it; where nothing is compared, those under one load, which a
/// reader compares. Bulk streams are told apart by their streams.
fn held_against_each_other(run: &Run) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..run.steps.len()).collect();
    places.retain(|at| run.steps[*at].settings.bulk.is_none());
    places.sort_by_key(|at| run.steps[*at].measurement);
    if run.pairings.is_empty() {
        let mut loads: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for at in places {
            let own = &run.steps[at].settings;
            let load = (own.callers, own.planned_rate.map(f64::to_bits));
            loads.entry(load).or_default().push(at);
        }
        return loads.into_values().collect();
    }
    let mut compared: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for pair in &run.pairings {
        let group = compared.entry(pair.base).or_default();
        group.extend([pair.base, pair.new]);
    }
    let of = |group: &BTreeSet<usize>| {
        let mut own = places.clone();
        own.retain(|at| group.contains(&run.steps[*at].measurement));
        own
    };
    compared.values().map(of).collect()
}

/// Returns a step as one that is held against those of other targets.
fn rival(step: &Step) -> Rival<'_> {
    Rival {
        name: step.name(),
        connections: step.settings.connections,
    }
}

/// Returns a step as a trial that is held against the others of its measurement.
fn trial(step: &Step, metrics: metric::List) -> Trial {
    let values = metrics
        .iter()
        .filter(|metric| metric.is_claimed())
        .filter_map(|metric| Some((metric.name, metric.of_step(step)?)));
    Trial {
        number: step.trial,
        is_transferred: step.settings.bulk.as_ref().map(|_| step.bulk.is_some()),
        values: values.collect(),
    }
}
