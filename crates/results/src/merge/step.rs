//! One step of several clients, added up.

use std::{collections::BTreeMap, mem};

use netping_measure::{
    accounting::Accounting,
    bulk::BulkRun,
    connect::ConnectPhase,
    cost::Cost,
    fairness::{Fairness, PerConnection},
    messages::HeldBack,
    path::PathAccount,
    statistics::precision::Precision,
    status::Status,
    summary::Summary,
    times::{Histograms, Time},
};

use super::{MergeError, MergeRules, cost::cost, error::refuse_unlike, window::Common};
use crate::{
    anatomy::AnatomySummary,
    burst::BurstSettings,
    connect::ChannelSecurity,
    messages::MessageSummary,
    probe::ProbeSummary,
    run::{Step, StepSettings},
    times::Times,
    warning::{
        CountersDisagree, Errors, PartsMissing, ServerShared, Severity, TooFewSamples, Warning,
    },
};

/// The parts of a step that take most of its memory, summed over the clients so far.
#[derive(Debug, Default)]
pub(super) struct StepSum {
    histograms: Histograms,
    connect: BTreeMap<ConnectPhase, Times>,
    messages: Option<MessageSummary>,
    anatomy: Option<AnatomySummary>,
}

impl StepSum {
    /// Takes these out of a client's step, and its seconds.
    pub(super) fn take(&mut self, step: &mut Step) {
        self.histograms.add(&mem::take(&mut step.histograms));
        for (phase, own) in mem::take(&mut step.connect) {
            let sum = self.connect.remove(&phase);
            let sum = Times::sum(sum.iter().chain([&own]));
            self.connect.insert(phase, sum);
        }
        self.messages = MessageSummary::sum(self.messages.iter().chain(&step.messages.take()));
        self.anatomy = AnatomySummary::sum(self.anatomy.iter().chain(&step.anatomy.take()));
        step.intervals = Vec::new();
    }
}

/// Adds up the `number`th step of clients that are given with the names of their files and the times
/// by which their clocks are behind, in nanoseconds; without its seconds, of which it returns which count.
pub(super) fn merge(
    number: usize,
    parts: &[(&str, &Step, i64)],
    sum: StepSum,
    rules: &MergeRules,
) -> Result<(Step, Common), MergeError> {
    let steps: Vec<&Step> = parts.iter().map(|(_, step, _)| *step).collect();
    let first = steps[0];
    let all = parts.iter().map(|(name, step, _)| (*name, step.asked()));
    refuse_unlike(&format!("step {number}: "), all)?;
    refuse_limiting(number, parts, &rules.allowed)?;
    let missing = missing(number, parts, rules.missing)?;
    let common = Common::of(number, parts, rules.min_overlap)?;
    let StepSum {
        histograms,
        connect,
        messages,
        anatomy,
    } = sum;
    let mut accounting = Accounting::default();
    for step in &steps {
        accounting += &step.summary.accounting;
    }
    let summary = Summary {
        scheduled: accounting.scheduled(),
        accounting,
        seconds: common.seconds,
        rate: common.rate,
        // Once the seconds are known; that of quantiles is not, as files lack the seconds' histograms.
        precision: Precision::default(),
        times: histograms.describe(),
    };
    let cost = cost(&steps, &summary, missing.is_none());
    let step = Step {
        target: first.target.clone(),
        label: first.label.clone(),
        measurement: first.measurement,
        trial: first.trial,
        status: Status::of_all(steps.iter().map(|step| step.status)),
        window_started_at: Some(common.start),
        settings: settings(&steps, missing.is_none()),
        security: security(&steps),
        connect,
        bulk: bulk(&steps),
        probe: ProbeSummary::sum(steps.iter().filter_map(|step| step.probe.as_deref()))
            .map(Box::new),
        messages,
        held_back: held_back(&steps),
        anatomy,
        fairness: fairness(&steps),
        path: path(&steps),
        warnings: warnings(&steps, &summary, &cost, missing),
        cost,
        set_aside: steps.iter().all(|step| step.set_aside),
        intervals: common.idle(),
        histograms,
        summary,
    };
    Ok((step, common))
}

/// Adds up the messages that were held back.
fn held_back(steps: &[&Step]) -> Option<HeldBack> {
    let all = steps.iter().filter_map(|step| step.held_back);
    all.reduce(|mut sum, own| {
        sum.add(own);
        sum
    })
}

/// Looks for the parts of a shared load that are not there; `None` if it is whole, or was not shared.
fn missing(
    number: usize,
    parts: &[(&str, &Step, i64)],
    allowed: usize,
) -> Result<Option<PartsMissing>, MergeError> {
    let Some(whole) = parts[0].1.settings.part else {
        return Ok(None);
    };
    let mut found: BTreeMap<usize, &str> = BTreeMap::new();
    for (name, step, _) in parts {
        let own = step.settings.part.map_or(0, |part| part.number);
        if let Some(first) = found.insert(own, name) {
            return Err(MergeError::SamePart {
                number: own,
                first: first.to_owned(),
                second: (*name).to_owned(),
            });
        }
    }
    let lost: Vec<usize> = (1..=whole.of)
        .filter(|own| !found.contains_key(own))
        .collect();
    let all = parts.iter().map(|(_, step, _)| &step.settings);
    let missing = PartsMissing {
        clients: whole.of,
        callers: whole
            .callers
            .saturating_sub(all.map(|own| own.callers).sum()),
        all_callers: whole.callers,
        missing: lost,
    };
    match missing.missing.len() {
        0 => Ok(None),
        count if count <= allowed => Ok(Some(missing)),
        _ => Err(MergeError::PartsMissing {
            step: number,
            missing,
        }),
    }
}

/// Refuses a client that was the limit itself, or late: the others' load does not make up for it.
fn refuse_limiting(
    number: usize,
    parts: &[(&str, &Step, i64)],
    allowed: &[String],
) -> Result<(), MergeError> {
    for (name, step, _) in parts {
        let mut warnings = step.warnings.iter();
        let limiting = warnings.find(|warning| {
            warning.is_of_client()
                && warning.severity() == Severity::Invalid
                && !allowed.iter().any(|own| own == warning.name())
        });
        if let Some(warning) = limiting {
            return Err(MergeError::Client {
                step: number,
                name: (*name).to_owned(),
                warning: Box::new(warning.clone()),
            });
        }
    }
    Ok(())
}

fn security(steps: &[&Step]) -> Option<ChannelSecurity> {
    let first = &steps[0].security;
    if steps.iter().all(|step| step.security == *first) {
        first.clone()
    } else {
        steps[0].unresumed()
    }
}

/// The settings of all clients together: callers, connections, workers, requests and planned rates
/// are added. The planned rate of a load that is there as a whole was given: a sum of its parts would be rounded.
fn settings(steps: &[&Step], is_whole: bool) -> StepSettings {
    let first = &steps[0].settings;
    let whole = first.part.filter(|_| is_whole);
    let all = || steps.iter().map(|step| &step.settings);
    let sum = |of: fn(&StepSettings) -> usize| all().map(of).fold(0, usize::saturating_add);
    let planned_rate: Option<f64> = all().map(|settings| settings.planned_rate).sum();
    let bursts: Option<Vec<BurstSettings>> = all().map(|settings| settings.bursts).collect();
    StepSettings {
        callers: sum(|settings| settings.callers),
        connections: sum(|settings| settings.connections),
        workers: sum(|settings| settings.workers),
        planned_rate: whole.and_then(|whole| whole.planned_rate).or(planned_rate),
        bursts: bursts.and_then(|all| all.into_iter().reduce(BurstSettings::together)),
        requests: all().map(|settings| settings.requests).sum(),
        seed: first
            .seed
            .filter(|_| all().all(|settings| settings.seed == first.seed)),
        warmup_seconds: all()
            .map(|settings| settings.warmup_seconds)
            .fold(0.0, f64::max),
        part: None,
        ..first.clone()
    }
}

/// Adds up the bytes and the rates of bulk streams, which lasted as long as the longest; `None` where a client has none.
fn bulk(steps: &[&Step]) -> Option<BulkRun> {
    let runs: Vec<BulkRun> = steps.iter().map(|step| step.bulk).collect::<Option<_>>()?;
    let gib: f64 = runs.iter().map(BulkRun::gib).sum();
    let per_gib = |of: fn(&BulkRun) -> Option<f64>| {
        let spent: Option<f64> = runs.iter().map(|run| Some(of(run)? * run.gib())).sum();
        spent.map(|spent| spent / gib)
    };
    Some(BulkRun {
        seconds: runs.iter().map(|run| run.seconds).fold(0.0, f64::max),
        first_byte_seconds: runs
            .iter()
            .map(|run| run.first_byte_seconds)
            .fold(0.0, f64::max),
        bytes: runs.iter().map(|run| run.bytes).sum(),
        message_bytes: runs.iter().filter_map(|run| run.message_bytes).max(),
        gib_per_second: runs.iter().map(|run| run.gib_per_second).sum(),
        client_cpu_seconds_per_gib: per_gib(|run| run.client_cpu_seconds_per_gib),
        // Each client saw the CPU time of the server for the bytes of all.
        server_cpu_seconds_per_gib: None,
        server_system_seconds_per_gib: None,
        server_softirq_seconds_per_gib: None,
        client_resident_bytes: runs
            .iter()
            .filter_map(|run| run.client_resident_bytes)
            .max(),
        server_resident_bytes: runs
            .iter()
            .filter_map(|run| run.server_resident_bytes)
            .max(),
    })
}

/// Returns the spread of requests over all clients' connections; `None` where a client does not
/// list its own.
fn fairness(steps: &[&Step]) -> Option<Fairness> {
    let listed: Option<Vec<Vec<PerConnection>>> = steps
        .iter()
        .map(|step| match &step.fairness {
            Some(fairness) => {
                Some(fairness.connections.clone()).filter(|connections| !connections.is_empty())
            }
            // There is nothing to spread over one.
            None => (step.settings.connections == 1).then(|| {
                let mean = step.summary.times[Time::Service].mean.unwrap_or(0.0);
                let requests = step.summary.accounting.ok;
                vec![PerConnection {
                    requests,
                    mean,
                    ..PerConnection::default()
                }]
            }),
        })
        .collect();
    Fairness::of(listed?.concat())
}

/// Adds up the accounts of connections; `None` where a client has none.
fn path(steps: &[&Step]) -> Option<PathAccount> {
    let all: Option<Vec<PathAccount>> = steps.iter().map(|step| step.path.clone()).collect();
    PathAccount::sum(all?)
}

/// Returns the clients' warnings, each once. Failures, too few samples, and requests of others, are known by the sum.
fn warnings(
    steps: &[&Step],
    summary: &Summary,
    cost: &Cost,
    missing: Option<PartsMissing>,
) -> Vec<Warning> {
    let enough = summary.times[Time::Response].quantile(99.0).is_some();
    let is_bulk = steps[0].settings.bulk.is_some();
    let counts = cost.server.as_ref().and_then(|server| server.requests);
    let mut warnings: Vec<Warning> = missing.into_iter().map(Warning::from).collect();
    for warning in steps.iter().flat_map(|step| &step.warnings) {
        let is_of_sum = match warning {
            Warning::TooFewSamples(_) => true,
            Warning::Errors(_) => !is_bulk,
            Warning::ServerShared(_) => counts.is_some(),
            _ => false,
        };
        if !is_of_sum && !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    if let Some(counts) = counts {
        warnings.extend(ServerShared::of_counts(&counts).map(Warning::from));
        warnings.extend(CountersDisagree::of_counts(&counts).map(Warning::from));
    }
    if is_bulk {
        return warnings;
    }
    warnings.extend(Errors::of_summary(summary).map(Warning::from));
    if !enough {
        let samples = summary.times[Time::Response].count;
        warnings.push(TooFewSamples { samples }.into());
    }
    warnings
}
