//! Files of version 2: they do not say what their steps are trials of, and have bulk streams apart.

use std::collections::BTreeMap;

use netping_measure::{bulk::BulkRun, error_kind::ErrorKind};
use serde::Deserialize;

use crate::{
    bulk::BulkSettings,
    connect::ChannelSecurity,
    run::{Kind, Pairing, Place, Run, SCHEMA_VERSION, Step, StepSettings},
    transfer::Transfer,
    warning::{SharedHost, Warning},
};

/// The version.
pub(super) const VERSION: u32 = 2;

/// The label of the second measurement of the first target of trials.
const AGAIN: &str = "A/A";

/// The parts of a file that later versions do not have.
#[derive(Deserialize)]
pub(super) struct Rest {
    #[serde(default)]
    targets: Vec<String>,
    #[serde(default)]
    bulk: Vec<BulkStep>,
    #[serde(default)]
    overheads: Vec<Overhead>,
    #[serde(default)]
    differences: Vec<RoundDifference>,
}

#[derive(Deserialize)]
struct BulkStep {
    target: String,
    settings: BulkSettings,
    runs: Vec<BulkRun>,
    errors: BTreeMap<ErrorKind, u64>,
    security: Option<ChannelSecurity>,
    warnings: Vec<Warning>,
}

#[derive(Deserialize)]
struct Overhead {}

#[derive(Deserialize)]
struct RoundDifference {
    target: String,
    base: String,
    callers: usize,
    connections: [usize; 2],
    message: Option<String>,
    #[serde(default)]
    is_noise: bool,
}

/// Fills in what a run is: its kind, the measurement of each step, and which are compared.
pub(super) fn upgrade(run: &mut Run, rest: Rest) -> Result<(), String> {
    run.schema_version = SCHEMA_VERSION;
    run.kind = kind(run, &rest);
    number_steps(&mut run.steps, &rest.targets);
    run.pairings = match run.kind {
        Kind::Ladder => rest
            .differences
            .iter()
            .filter_map(|own| ladder_pairing(&run.steps, own))
            .collect(),
        Kind::Proxy => first_of_each_load(&run.steps),
        _ if run.order_seed.is_some() => first_of_each_load(&run.steps),
        _ => Vec::new(),
    };
    add_bulk(run, rest.bulk)
}

fn kind(run: &Run, rest: &Rest) -> Kind {
    let words = run.command_line.iter().skip(1);
    let command = words
        .map(String::as_str)
        .find(|word| !word.starts_with('-'));
    match command {
        _ if !rest.differences.is_empty() => Kind::Ladder,
        _ if !rest.overheads.is_empty() => Kind::Proxy,
        _ if !rest.bulk.is_empty() => Kind::Bulk,
        Some("ladder") => Kind::Ladder,
        Some("latency") => Kind::Latency,
        Some("connect") => Kind::Connect,
        Some("bulk") => Kind::Bulk,
        Some("proxy") => Kind::Proxy,
        Some(word) if word.contains("://") => Kind::Quick,
        _ if run.steps.iter().any(|step| !step.connect.is_empty()) => Kind::Connect,
        _ => Kind::Throughput,
    }
}

/// Numbers the measurements: those of the target that was given first before the others of the same
/// load. A trial that is there already is one of another measurement.
fn number_steps(steps: &mut [Step], targets: &[String]) {
    let place = |name: &str| targets.iter().position(|own| own == name);
    let mut order: Vec<usize> = (0..steps.len()).collect();
    // Stable, so that loads stay in the order in which they were measured.
    let mut loads: Vec<Load> = Vec::new();
    for step in steps.iter() {
        let load = Load::of(step);
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    if !targets.is_empty() {
        order.sort_by_key(|&at| {
            let load = Load::of(&steps[at]);
            let load = loads.iter().position(|own| *own == load);
            (load, place(steps[at].name()).unwrap_or(usize::MAX))
        });
    }
    let mut known: Vec<(usize, Vec<u32>)> = Vec::new();
    for at in order {
        let step = &steps[at];
        let is_same = |(first, trials): &(usize, Vec<u32>)| {
            is_like(&steps[*first], step) && !trials.contains(&step.trial)
        };
        let number = known.iter().position(is_same);
        let number = number.unwrap_or_else(|| {
            known.push((at, Vec::new()));
            known.len() - 1
        });
        known[number].1.push(step.trial);
        steps[at].measurement = number;
    }
}

/// Returns true for steps of one measurement. A label stands for its target, which may move from
/// trial to trial.
fn is_like(a: &Step, b: &Step) -> bool {
    a.label == b.label
        && (a.label.is_some() || a.target == b.target)
        && a.settings.in_words() == b.settings.in_words()
}

/// What is asked of several targets alike, which are then compared.
#[derive(Debug, PartialEq)]
struct Load(usize, Option<u64>);

impl Load {
    fn of(step: &Step) -> Self {
        let settings: &StepSettings = &step.settings;
        Self(settings.callers, settings.planned_rate.map(f64::to_bits))
    }
}

/// Pairs every measurement with the first of its load.
fn first_of_each_load(steps: &[Step]) -> Vec<Pairing> {
    let mut measurements: Vec<&Step> = Vec::new();
    for step in steps {
        if !measurements
            .iter()
            .any(|own| own.measurement == step.measurement)
        {
            measurements.push(step);
        }
    }
    measurements.sort_by_key(|own| own.measurement);
    let mut pairings = Vec::new();
    for own in &measurements {
        let mut others = measurements.iter();
        let first = others.find(|other| Load::of(other) == Load::of(own));
        if let Some(first) = first.filter(|first| first.measurement != own.measurement) {
            pairings.push(Pairing {
                base: first.measurement,
                new: own.measurement,
                is_control: own.label.as_deref() == Some(AGAIN),
            });
        }
    }
    pairings
}

fn ladder_pairing(steps: &[Step], own: &RoundDifference) -> Option<Pairing> {
    let find = |name: &str, connections: usize| {
        let is_it = |step: &&Step| {
            let settings = &step.settings;
            step.name() == name
                && (settings.callers, settings.connections) == (own.callers, connections)
                && settings.message == own.message
        };
        Some(steps.iter().find(is_it)?.measurement)
    };
    let [new, base] = own.connections;
    Some(Pairing {
        base: find(&own.base, base)?,
        new: find(&own.target, new)?,
        is_control: own.is_noise,
    })
}

/// The most runs of a bulk stream that failed, in a file that was not changed.
const MOST_FAILED: u64 = 100_000;

/// Adds the runs of bulk streams as steps: those that failed come last, since their places are not
/// known.
fn add_bulk(run: &mut Run, bulk: Vec<BulkStep>) -> Result<(), String> {
    for (measurement, own) in bulk.into_iter().enumerate() {
        let failed = own
            .errors
            .values()
            .try_fold(0, |sum: u64, count| sum.checked_add(*count));
        if failed.is_none_or(|failed| failed > MOST_FAILED) {
            return Err("too many 'errors' of a bulk stream".to_owned());
        }
        let failures = own
            .errors
            .iter()
            .flat_map(|(kind, count)| (0..*count).map(|_| Err(*kind)));
        let outcomes = own.runs.into_iter().map(Ok).chain(failures);
        for (trial, outcome) in (1..).zip(outcomes) {
            let seconds = outcome.map_or(0.0, |run: BulkRun| run.seconds);
            if !(0.0..=MOST_SECONDS).contains(&seconds) {
                return Err(format!("a bulk stream of {seconds} seconds"));
            }
            let transfer = Transfer {
                outcome,
                seconds,
                started_at: None,
            };
            let place = Place { measurement, trial };
            let mut step = transfer.step(own.target.clone(), own.settings.clone(), place);
            step.security.clone_from(&own.security);
            step.warn_of_transfer(own.warnings.contains(&SharedHost.into()));
            run.steps.push(step);
        }
        if measurement > 0 {
            run.pairings.push(Pairing {
                base: 0,
                new: measurement,
                is_control: false,
            });
        }
    }
    Ok(())
}

/// The longest transfer, in seconds: some 46 days.
const MOST_SECONDS: f64 = 4e6;
