//! Warnings about a step's numbers, each with what to do about it.

use crate::{bulk::BulkStep, run::Step};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::run::StepSettings;
use netping_measure::{cost::Cost, summary::Summary};

/// A worker that uses this share of its core has none to spare.
const FULL_CORE: f64 = 0.95;

/// A median lag beyond this many nanoseconds is more than the timer's.
const LATE: u64 = 1_000_000;

/// An open loop that achieves less than this share of its planned rate is behind.
const ACHIEVED: f64 = 0.99;

/// A rate that differs by more than this share, and by more than chance explains, is not steady.
const DRIFT: f64 = 0.1;

/// The most that is told of a drift: a rate that begins with nothing has no share to tell.
const MOST_DRIFT: f64 = 10.0;

/// N and X * R may differ by this share.
const LITTLE: f64 = 0.02;

/// Why a number may mislead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Warning {
    /// The client's own cores are full: the numbers are the client's, not the server's.
    ClientBound {
        /// The CPU time of the busiest worker, as a share of the window.
        busiest_worker: f64,
    },
    /// Requests of an open loop started later than they were due.
    BehindSchedule {
        /// The median lag, in nanoseconds.
        lag_p50: Option<u64>,
        /// Requests that were due but never sent.
        not_sent: u64,
        /// Verified replies as a share of what was planned.
        achieved: f64,
    },
    /// The rate was not level over the window.
    NotSteady {
        /// The rate of the window's last third against that of its first, less 1; at most 10.
        drift: f64,
        /// Whether an automatic warm-up found no steady rate in its time.
        #[serde(default)]
        warmup_failed: bool,
    },
    /// There are too few samples for the 99th percentile.
    TooFewSamples {
        /// How many there are.
        samples: u64,
    },
    /// There are too few runs of a bulk stream to tell how much they vary.
    FewRuns {
        /// How many there are.
        runs: u64,
    },
    /// Requests, or runs of a bulk stream, failed.
    Errors {
        /// The share of requests without a verified reply, or of runs in which not every byte arrived.
        share: f64,
    },
    /// The callers were not all in the server's hands all the time: N differs from X * R (Little's law).
    LittlesLaw {
        /// Callers (N).
        callers: f64,
        /// Rate times mean time (X * R).
        in_system: f64,
    },
    /// Client and server share a machine, and so its cores.
    SharedHost,
    /// The time of day was set while the step ran, so that timestamps from other sources do not fit.
    ClockStep {
        /// By how much, in nanoseconds.
        nanoseconds: i64,
    },
}

/// What doubts are about, beside the summary.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// What was asked for.
    pub settings: &'a StepSettings,
    /// What came of it.
    pub summary: &'a Summary,
    /// What it used.
    pub cost: &'a Cost,
    /// Successes in each 100 ms of the window.
    pub slots: &'a [u64],
    /// Whether an automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// Whether the server is on the client's host.
    pub shared_host: bool,
    /// By how much the time of day was set meanwhile, in nanoseconds.
    pub clock_step: i64,
}

impl Warning {
    /// Every doubt there is about a step; none: it is valid.
    pub fn about(facts: &Facts<'_>) -> Vec<Self> {
        let doubts = [
            client_bound,
            behind_schedule,
            not_steady,
            too_few_samples,
            errors,
            littles_law,
            shared_host,
            clock_step,
        ];
        doubts.iter().filter_map(|doubt| doubt(facts)).collect()
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => "CLIENT_BOUND",
            Self::BehindSchedule { .. } => "BEHIND_SCHEDULE",
            Self::NotSteady { .. } => "NOT_STEADY",
            Self::TooFewSamples { .. } => "TOO_FEW_SAMPLES",
            Self::FewRuns { .. } => "FEW_RUNS",
            Self::Errors { .. } => "ERRORS",
            Self::LittlesLaw { .. } => "LITTLES_LAW",
            Self::SharedHost => "SHARED_HOST",
            Self::ClockStep { .. } => "CLOCK_STEP",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::ClientBound { .. } => {
                "give the client more --workers (a bulk stream has one) or faster cores, or use several clients"
            }
            Self::BehindSchedule { .. } => {
                "if the server is not full, give more callers (-c) or --workers; otherwise this rate is too high for it"
            }
            Self::NotSteady { .. } => {
                "warm up longer (--warmup), measure longer (-d), and look for other load"
            }
            Self::TooFewSamples { .. } => "measure longer (-d, --requests or --samples)",
            Self::FewRuns { .. } => "measure more often (--runs)",
            Self::Errors { .. } => {
                "mend what fails first: failed requests cost less than served ones"
            }
            // More than there are: requests from before the window weigh in it.
            Self::LittlesLaw { callers, in_system } if in_system > callers => {
                "the server stalled at the window's edge, and the window is too short for that: measure longer (-d)"
            }
            Self::LittlesLaw { .. } => {
                "the client spent time of its own between requests: many callers need more --workers and more requests, a \
                 single one a quieter machine"
            }
            Self::SharedHost => {
                "compare targets with each other; for absolute numbers, put the client on another host"
            }
            Self::ClockStep { .. } => {
                "measure again without setting the clock; netping's own times are not affected"
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientBound { busiest_worker } => {
                write!(
                    f,
                    "the busiest client worker used {:.0}% of its core",
                    busiest_worker * 100.0
                )
            }
            Self::BehindSchedule {
                lag_p50,
                not_sent,
                achieved,
            } => {
                let lag = crate::format::nanos_as_micros(*lag_p50);
                let achieved = achieved * 100.0;
                write!(
                    f,
                    "{achieved:.1}% of the planned rate, median lag {lag} us, {not_sent} requests not sent"
                )
            }
            Self::NotSteady {
                drift,
                warmup_failed,
            } => {
                if *warmup_failed {
                    f.write_str("the warm-up found no steady rate; ")?;
                }
                let more = if *drift >= MOST_DRIFT { " or more" } else { "" };
                write!(
                    f,
                    "the last third of the window was {:+.1}%{more} in rate against the first",
                    drift * 100.0
                )
            }
            Self::TooFewSamples { samples } => write!(f, "{samples} samples are too few for p99"),
            Self::FewRuns { runs } => {
                write!(f, "{runs} runs are too few to tell how much they vary")
            }
            Self::Errors { share } => write!(
                f,
                "{} of the requests or runs failed",
                crate::format::share(*share)
            ),
            Self::LittlesLaw { callers, in_system } => {
                write!(f, "N = {callers} callers, but X * R = {in_system:.2}")
            }
            Self::SharedHost => f.write_str("client and server share this machine's cores"),
            Self::ClockStep { nanoseconds } => {
                write!(
                    f,
                    "the time of day was set by {:.3} ms meanwhile",
                    *nanoseconds as f64 / 1e6
                )
            }
        }
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
    let busiest = facts
        .cost
        .client_worker_cpu_seconds
        .iter()
        .copied()
        .fold(0.0, f64::max);
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

/// By how much the last third of the slots differs from the first, if that is more than chance explains.
fn drift(slots: &[u64]) -> Option<f64> {
    let third = slots.len() / 3;
    if third < 3 {
        return None;
    }
    let (first, last) = (
        moments(&slots[..third]),
        moments(&slots[slots.len() - third..]),
    );
    let difference = last.0 - first.0;
    let chance = 3.0 * ((first.1 + last.1) / third as f64).sqrt();
    let drift = (difference / first.0.max(f64::MIN_POSITIVE)).min(MOST_DRIFT);
    (difference.abs() > chance && drift.abs() > DRIFT).then_some(drift)
}

/// Mean and variance.
fn moments(counts: &[u64]) -> (f64, f64) {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / n;
    (
        mean,
        counts
            .iter()
            .map(|&count| (count as f64 - mean).powi(2))
            .sum::<f64>()
            / (n - 1.0),
    )
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

/// Little's law: the mean number in a system is the rate of arrivals times the mean time there (Little 1961).
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

/// The doubts about steps and bulk streams, each kind once.
#[derive(Debug)]
pub struct Warnings<'a> {
    /// How many results there are.
    pub results: usize,
    /// The first doubt of each kind, and how many results have one of its kind.
    pub kinds: Vec<(&'a Warning, usize)>,
}

impl<'a> Warnings<'a> {
    /// Those about all of these.
    pub fn of(steps: &'a [Step], bulk: &'a [BulkStep]) -> Self {
        let all: Vec<&[Warning]> = steps
            .iter()
            .map(|step| &step.doubts[..])
            .chain(bulk.iter().map(|step| &step.doubts[..]))
            .collect();
        let mut kinds: Vec<(&Warning, usize)> = Vec::new();
        for doubt in all.iter().copied().flatten() {
            if kinds.iter().all(|(other, _)| other.name() != doubt.name()) {
                let concerned = all
                    .iter()
                    .filter(|own| own.iter().any(|other| other.name() == doubt.name()))
                    .count();
                kinds.push((doubt, concerned));
            }
        }
        Self {
            results: all.len(),
            kinds,
        }
    }

    /// Whether there are results, and no doubt about them.
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
