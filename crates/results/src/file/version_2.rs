//! Files of version 2: they do not say what their steps are trials of, and have bulk streams apart.

use std::collections::BTreeMap;

use netping_measure::{bulk::BulkRun, error_kind::ErrorKind};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    bulk::BulkSettings,
    connect::ChannelSecurity,
    run::{Kind, Pairing, Place, Run, SCHEMA_VERSION, Step},
    transfer::Transfer,
    warning::{SharedHost, Warning},
};

/// The version.
pub(super) const VERSION: u32 = 2;

/// The label of the second measurement of the first target of trials.
const AGAIN: &str = "A/A";

/// The parts of a file that later versions do not have.
#[derive(Deserialize)]
pub(super) struct OldParts {
    #[serde(default)]
    targets: Vec<String>,
    #[serde(default)]
    bulk: Vec<BulkStep>,
    #[serde(default)]
    overheads: Vec<IgnoredAny>,
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
pub(super) fn upgrade(run: &mut Run, old: OldParts) -> Result<(), String> {
    run.schema_version = SCHEMA_VERSION;
    run.kind = kind(run, &old);
    number_steps(&mut run.steps, &old.targets);
    run.pairings = match run.kind {
        Kind::Ladder => old
            .differences
            .iter()
            .filter_map(|own| ladder_pairing(&run.steps, own))
            .collect(),
        Kind::Proxy => first_of_each_load(&run.steps),
        _ if run.order_seed.is_some() => first_of_each_load(&run.steps),
        _ => Vec::new(),
    };
    add_bulk(run, old.bulk)
}

fn kind(run: &Run, old: &OldParts) -> Kind {
    let mut words = run.command_line.iter().skip(1);
    let command = words.find(|word| !word.starts_with('-'));
    let named = command.and_then(|word| serde_json::from_value(word.as_str().into()).ok());
    match named {
        _ if !old.differences.is_empty() => Kind::Ladder,
        _ if !old.overheads.is_empty() => Kind::Proxy,
        _ if !old.bulk.is_empty() => Kind::Bulk,
        Some(kind) => kind,
        None if command.is_some_and(|word| word.contains("://")) => Kind::Quick,
        None if run.steps.iter().any(|step| !step.connect.is_empty()) => Kind::Connect,
        None => Kind::Throughput,
    }
}

/// Numbers the measurements: those of the target that was given first before the others of the same
/// load. A trial that is there already is one of another measurement.
fn number_steps(steps: &mut [Step], targets: &[String]) {
    let mut order: Vec<usize> = (0..steps.len()).collect();
    // Stable, so that loads stay in the order in which they were measured.
    if !targets.is_empty() {
        order.sort_by_cached_key(|&at| {
            let first = steps.iter().position(|own| load(own) == load(&steps[at]));
            let place = targets.iter().position(|own| own == steps[at].name());
            (first, place.unwrap_or(usize::MAX))
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

/// Returns the load that targets have in common where they are compared.
fn load(step: &Step) -> (usize, Option<u64>) {
    let rate = step.settings.planned_rate;
    (step.settings.callers, rate.map(f64::to_bits))
}

/// Pairs every measurement with the first of its load.
fn first_of_each_load(steps: &[Step]) -> Vec<Pairing> {
    let mut measurements: BTreeMap<usize, &Step> = BTreeMap::new();
    for step in steps {
        measurements.entry(step.measurement).or_insert(step);
    }
    let pairing = |own: &&Step| {
        let mut others = measurements.values();
        let first = others.find(|other| load(other) == load(own))?;
        (first.measurement != own.measurement).then(|| Pairing {
            is_control: own.label.as_deref() == Some(AGAIN),
            ..Pairing::new(first.measurement, own.measurement)
        })
    };
    measurements.values().filter_map(pairing).collect()
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
        is_control: own.is_noise,
        ..Pairing::new(find(&own.base, base)?, find(&own.target, new)?)
    })
}

/// The most runs of a bulk stream that failed, in a file that was not changed.
const MOST_FAILED: u64 = 100_000;

/// Adds the runs of bulk streams as steps: those that failed come last, since their places are not
/// known.
fn add_bulk(run: &mut Run, bulk: Vec<BulkStep>) -> Result<(), String> {
    run.pairings.extend(Pairing::against_first(0..bulk.len()));
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
    }
    Ok(())
}

/// The longest transfer, in seconds: some 46 days.
const MOST_SECONDS: f64 = 4e6;
