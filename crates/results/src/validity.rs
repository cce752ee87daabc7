//! The checks that warn about a step's numbers.

use netping_measure::{cost::Cost, statistics::estimate::Moments, summary::Summary};

use crate::{
    bulk::BulkStep,
    run::step::{Step, StepSettings},
    warning::{MOST_DRIFT, Warning},
};

/// A worker that uses this share of its core has none to spare.
const FULL_CORE: f64 = 0.95;

/// A median lag beyond this many nanoseconds is more than the timer's.
const LATE: u64 = 1_000_000;

/// An open loop that achieves less than this share of its planned rate is behind.
const ACHIEVED: f64 = 0.99;

/// A rate that differs by more than this share, and by more than chance explains, is not steady.
const DRIFT: f64 = 0.1;

/// N and X * R may differ by this share.
const LITTLE: f64 = 0.02;

/// The facts that warnings are derived from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The settings.
    pub settings: &'a StepSettings,
    /// The numbers that describe the step.
    pub summary: &'a Summary,
    /// The resources that it used.
    pub cost: &'a Cost,
    /// Successes in each 100 ms of the window.
    pub slots: &'a [u64],
    /// True where an automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// True where the server is on the client's host.
    pub shared_host: bool,
    /// By how much the time of day was set meanwhile, in nanoseconds.
    pub clock_step: i64,
}

impl Facts<'_> {
    /// Returns every warning about a step; without any, it is valid.
    pub fn warnings(&self) -> Vec<Warning> {
        let checks = [
            client_bound,
            behind_schedule,
            not_steady,
            too_few_samples,
            errors,
            littles_law,
            shared_host,
            clock_step,
        ];
        checks.iter().filter_map(|check| check(self)).collect()
    }
}

fn client_bound(facts: &Facts<'_>) -> Option<Warning> {
    // A worker that polls all the time always uses its whole core.
    if facts.settings.busy_poll {
        return None;
    }
    // An interrupted warm-up leaves no window.
    if facts.summary.seconds <= 0.0 {
        return None;
    }
    let workers = facts.cost.client_worker_cpu_seconds.iter();
    let busiest = workers.copied().fold(0.0, f64::max);
    let busiest_worker = busiest / facts.summary.seconds;
    (busiest_worker >= FULL_CORE).then_some(Warning::ClientBound { busiest_worker })
}

fn behind_schedule(facts: &Facts<'_>) -> Option<Warning> {
    let planned = facts.settings.planned_rate?;
    let lag_p50 = facts.summary.lag.quantile(50.0);
    let not_sent = facts.summary.accounting.not_sent;
    // Against what was scheduled: random arrivals are not exactly as many as planned.
    let scheduled = (facts.summary.scheduled as f64 / facts.summary.seconds).min(planned);
    let achieved = if scheduled > 0.0 {
        facts.summary.rate / scheduled
    } else {
        1.0
    };
    let late = lag_p50.is_some_and(|lag| lag > LATE);
    (late || not_sent > 0 || achieved < ACHIEVED).then_some(Warning::BehindSchedule {
        lag_p50,
        not_sent,
        achieved,
    })
}

fn not_steady(facts: &Facts<'_>) -> Option<Warning> {
    let warmup_failed = facts.warmup_failed;
    let drift = drift(facts.slots);
    (drift.is_some() || warmup_failed).then(|| Warning::NotSteady {
        drift: drift.unwrap_or(0.0),
        warmup_failed,
    })
}

/// Returns the difference of the last third of the slots from the first, if it is more than chance
/// explains.
fn drift(slots: &[u64]) -> Option<f64> {
    let third = slots.len() / 3;
    if third < 3 {
        return None;
    }
    let moments = |slots: &[u64]| {
        let counts: Vec<f64> = slots.iter().map(|&count| count as f64).collect();
        let moments = Moments::of(&counts)?;
        Some((moments.mean, moments.variance?))
    };
    let first = moments(&slots[..third])?;
    let last = moments(&slots[slots.len() - third..])?;
    let difference = last.0 - first.0;
    let chance = 3.0 * ((first.1 + last.1) / third as f64).sqrt();
    let drift = (difference / first.0.max(f64::MIN_POSITIVE)).min(MOST_DRIFT);
    (difference.abs() > chance && drift.abs() > DRIFT).then_some(drift)
}

fn too_few_samples(facts: &Facts<'_>) -> Option<Warning> {
    let time = &facts.summary.response_time;
    time.quantile(99.0)
        .is_none()
        .then_some(Warning::TooFewSamples {
            samples: time.count,
        })
}

fn errors(facts: &Facts<'_>) -> Option<Warning> {
    let share = facts.summary.accounting.error_rate();
    (share > 0.0).then_some(Warning::Errors { share })
}

/// Little's law: the mean number in a system is the rate of arrivals times the mean time there
/// (Little 1961).
fn littles_law(facts: &Facts<'_>) -> Option<Warning> {
    // With failures, callers also pause; in an open loop N is not given but follows.
    if facts.settings.planned_rate.is_some() || facts.summary.accounting.failed() > 0 {
        return None;
    }
    // Between two connections a caller closes the first, which belongs to no request.
    if facts.settings.requests_per_connection.is_some() {
        return None;
    }
    let callers = facts.settings.callers as f64;
    let in_system = facts.summary.in_system()?;
    ((in_system / callers - 1.0).abs() > LITTLE)
        .then_some(Warning::LittlesLaw { callers, in_system })
}

fn shared_host(facts: &Facts<'_>) -> Option<Warning> {
    facts.shared_host.then_some(Warning::SharedHost)
}

fn clock_step(facts: &Facts<'_>) -> Option<Warning> {
    (facts.clock_step != 0).then_some(Warning::ClockStep {
        nanoseconds: facts.clock_step,
    })
}

/// The warnings about steps and bulk streams, each kind once.
#[derive(Debug)]
pub struct Warnings<'a> {
    /// The number of results.
    pub results: usize,
    /// The first warning of each kind, and the number of results that have one of its kind.
    pub kinds: Vec<(&'a Warning, usize)>,
}

impl<'a> Warnings<'a> {
    /// Collects the warnings about all of these.
    pub fn of(steps: &'a [Step], bulk: &'a [BulkStep]) -> Self {
        let all: Vec<&[Warning]> = steps
            .iter()
            .map(|step| &step.warnings[..])
            .chain(bulk.iter().map(|step| &step.warnings[..]))
            .collect();
        let mut kinds: Vec<(&Warning, usize)> = Vec::new();
        for warning in all.iter().copied().flatten() {
            let same = |other: &Warning| other.name() == warning.name();
            if !kinds.iter().any(|(other, _)| same(other)) {
                let concerned = all.iter().filter(|own| own.iter().any(same)).count();
                kinds.push((warning, concerned));
            }
        }
        Self {
            results: all.len(),
            kinds,
        }
    }

    /// Returns true if there are results and no warnings.
    pub fn is_valid(&self) -> bool {
        self.results > 0 && self.kinds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_more_than_chance_and_never_beyond_telling() {
        assert_eq!(drift(&[100; 30]), None);
        assert_eq!(drift(&[100; 8]), None);
        let rising: Vec<u64> = (0..30)
            .map(|slot| if slot < 15 { 100 } else { 150 })
            .collect();
        assert!((drift(&rising).unwrap() - 0.5).abs() < 1e-9);
        let from_nothing: Vec<u64> = (0..30).map(|slot| if slot < 15 { 0 } else { 50 }).collect();
        assert_eq!(drift(&from_nothing), Some(MOST_DRIFT));
    }
}
