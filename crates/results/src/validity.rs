//! The checks that warn about a step's numbers.

use std::iter;

use netping_measure::{
    cost::Cost,
    counts::Counts,
    distribution::Distribution,
    statistics::{
        change_point::{Change, change},
        modes::modes,
    },
    summary::Summary,
    window::SLOT,
};

use crate::{
    bulk::BulkStep,
    run::{
        Run,
        step::{Step, StepSettings},
    },
    warning::{MOST_DRIFT, Severity, Warning},
};

/// A worker that uses this share of what it could get of its core is worth a note.
const BUSY: f64 = 0.7;

/// A 99th percentile of a part of the response time matters from this many nanoseconds, and from
/// this share of that of the response time.
const LATENESS: u64 = 500_000;
const LATENESS_SHARE: f64 = 0.1;

/// A cgroup's limit on CPU time matters from this share of the window on.
const THROTTLED: f64 = 0.01;

/// Replies that a stretch without any would have had: fewer may be chance.
const MISSED: f64 = 20.0;

/// A stall is longer than this many median response times.
const STALL: f64 = 10.0;

/// A server without a reply for this long at the end is gone, in slots.
const GONE: usize = 5;

/// A rate known to no more than this share is noisy.
const NOISE: f64 = 0.1;

/// A median lag beyond this many nanoseconds is more than the timer's.
const LATE: u64 = 1_000_000;

/// An open loop that achieves less than this share of its planned rate is behind.
const ACHIEVED: f64 = 0.99;

/// A rate that differs by more than this share, and by more than chance explains, is not steady.
const DRIFT: f64 = 0.1;

/// N and X * R may differ by this share.
const LITTLE: f64 = 0.02;

/// The subject of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The server: a client that limits it distorts the numbers.
    Server,
    /// Client and server together, either of which may use all of its CPUs.
    Both,
}

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
    /// Successes in each 100 ms after the window, up to the last of them.
    pub drain_slots: &'a [u64],
    /// Service times of successes.
    pub service_time: &'a Counts,
    /// The subject of the step.
    pub subject: Subject,
    /// True where an automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// True where the server is on the client's host.
    pub shared_host: bool,
    /// True where the server's process was started anew meanwhile.
    pub server_restarted: bool,
    /// By how much the time of day was set meanwhile, in nanoseconds.
    pub clock_step: i64,
}

impl Facts<'_> {
    /// Returns every warning about a step; without any, it is valid.
    pub fn warnings(&self) -> Vec<Warning> {
        let checks = [
            client_bound,
            client_starved,
            client_throttled,
            no_caller_free,
            behind_schedule,
            not_steady,
            stalled,
            server_gone,
            server_restarted,
            noisy,
            too_few_samples,
            errors,
            littles_law,
            bimodal,
            shared_host,
            clock_step,
        ];
        checks.iter().filter_map(|check| check(self)).collect()
    }
}

fn client_bound(facts: &Facts<'_>) -> Option<Warning> {
    // A worker that polls all the time always uses its whole core.
    if facts.settings.busy_poll || facts.subject == Subject::Both {
        return None;
    }
    // An interrupted warm-up leaves no window.
    if facts.summary.seconds <= 0.0 {
        return None;
    }
    let busiest_worker = busiest_worker(facts.cost, facts.summary.seconds);
    (busiest_worker >= BUSY).then_some(Warning::ClientBound { busiest_worker })
}

/// Returns the CPU time of the busiest client worker over a window of so many seconds, as a share of
/// what it could get.
pub(crate) fn busiest_worker(cost: &Cost, seconds: f64) -> f64 {
    // A thread that waits for its CPU cannot get all of it.
    let delays = cost.client_worker_run_delay_seconds.iter().copied();
    let delays = delays.chain(iter::repeat(0.0));
    let workers = cost.client_worker_cpu_seconds.iter().zip(delays);
    let share = |(cpu, delay): (&f64, f64)| cpu / (seconds - delay).max(*cpu);
    workers.map(share).fold(0.0, f64::max)
}

fn client_starved(facts: &Facts<'_>) -> Option<Warning> {
    let (late_p99, response_p99) = part(facts, &facts.summary.client_late)?;
    Some(Warning::ClientStarved {
        late_p99,
        response_p99,
    })
}

fn client_throttled(facts: &Facts<'_>) -> Option<Warning> {
    let seconds = facts.cost.client_host.throttled_seconds?;
    (seconds > facts.summary.seconds * THROTTLED).then_some(Warning::ClientThrottled { seconds })
}

fn no_caller_free(facts: &Facts<'_>) -> Option<Warning> {
    let (wait_p99, response_p99) = part(facts, &facts.summary.no_caller_free)?;
    Some(Warning::NoCallerFree {
        wait_p99,
        response_p99,
    })
}

/// Returns the 99th percentiles of a part of the response time and of the whole, where the part
/// matters.
fn part(facts: &Facts<'_>, part: &Distribution) -> Option<(u64, u64)> {
    let (part, whole) = (
        part.quantile(99.0)?,
        facts.summary.response_time.quantile(99.0)?,
    );
    (part > LATENESS && part as f64 > whole as f64 * LATENESS_SHARE).then_some((part, whole))
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
    // A stretch without any reply has a warning of its own.
    let is_gap = stalled(facts).or_else(|| server_gone(facts)).is_some();
    let drift = drift(facts.slots).filter(|_| !is_gap);
    (drift.is_some() || warmup_failed).then(|| Warning::NotSteady {
        drift: drift.map_or(0.0, |(drift, _)| drift),
        from: drift.map(|(_, change)| seconds(change.from)),
        to: drift.map(|(_, change)| seconds(change.to)),
        warmup_failed,
    })
}

/// Returns the stretch whose rate differs from the rest by more than chance explains, and by how
/// much.
fn drift(slots: &[u64]) -> Option<(f64, Change)> {
    let counts: Vec<f64> = slots.iter().map(|&count| count as f64).collect();
    let change = change(&counts)?;
    let difference = change.inside - change.outside;
    let drift = (difference / change.outside.max(f64::MIN_POSITIVE)).min(MOST_DRIFT);
    (drift.abs() > DRIFT).then_some((drift, change))
}

/// Looks for the longest stretch without a reply in which many were to be expected. One that
/// reaches into the drain counts if at least half of the callers had to wait for its end; one that
/// never ends is not a stall.
fn stalled(facts: &Facts<'_>) -> Option<Warning> {
    let (window, drain) = (facts.slots, facts.drain_slots);
    let all = [window, drain].concat();
    let (from, to) = longest_gap(&all)?;
    let waited: u64 = all[to..].iter().sum();
    if waited == 0 || from > window.len() + 1 {
        return None;
    }
    if to > window.len() && waited * 2 < facts.settings.callers as u64 {
        return None;
    }
    is_long(facts, window, to - from).then(|| Warning::Stalled {
        at: seconds(from),
        seconds: seconds(to - from),
    })
}

fn server_gone(facts: &Facts<'_>) -> Option<Warning> {
    if facts.drain_slots.iter().any(|&count| count > 0) {
        return None;
    }
    let since = facts.slots.iter().rposition(|&count| count > 0)? + 1;
    let length = facts.slots.len() - since;
    (length >= GONE && is_long(facts, facts.slots, length)).then(|| Warning::ServerGone {
        since: seconds(since),
    })
}

/// Returns true if so many slots without a reply are more than chance and response times explain.
fn is_long(facts: &Facts<'_>, window: &[u64], slots: usize) -> bool {
    let served = window.iter().filter(|count| **count > 0).count();
    let replies: u64 = window.iter().sum();
    let missed = replies as f64 / served.max(1) as f64 * slots as f64;
    let typical = facts.summary.service_time.quantile(50.0).unwrap_or(0) as f64 / 1e9;
    missed >= MISSED && seconds(slots) > STALL * typical
}

/// Returns the longest run of zeros.
fn longest_gap(slots: &[u64]) -> Option<(usize, usize)> {
    let (mut longest, mut from) = ((0, 0), 0);
    for (at, count) in slots.iter().enumerate() {
        if *count > 0 {
            from = at + 1;
        } else if at + 1 - from > longest.1 - longest.0 {
            longest = (from, at + 1);
        }
    }
    (longest.1 > longest.0).then_some(longest)
}

/// Returns the length of so many slots, in seconds.
fn seconds(slots: usize) -> f64 {
    slots as f64 * SLOT as f64 / 1e9
}

fn server_restarted(facts: &Facts<'_>) -> Option<Warning> {
    facts.server_restarted.then_some(Warning::ServerRestarted)
}

fn noisy(facts: &Facts<'_>) -> Option<Warning> {
    let half_width = facts.summary.precision.rate_half_width? / facts.summary.rate;
    (half_width > NOISE).then_some(Warning::Noisy { half_width })
}

fn too_few_samples(facts: &Facts<'_>) -> Option<Warning> {
    let time = &facts.summary.response_time;
    // Where all failed, that is the trouble.
    let is_told = facts.summary.unserved() > 0 && time.count == 0;
    (time.quantile(99.0).is_none() && !is_told).then_some(Warning::TooFewSamples {
        samples: time.count,
    })
}

fn errors(facts: &Facts<'_>) -> Option<Warning> {
    let share = facts.summary.accounting.error_rate();
    let time_share = facts.summary.time_lost();
    (share > 0.0).then_some(Warning::Errors { share, time_share })
}

/// Little's law: the mean number in a system is the rate of arrivals times the mean time there
/// (Little 1961).
fn littles_law(facts: &Facts<'_>) -> Option<Warning> {
    // In an open loop N is not given but follows.
    if facts.settings.planned_rate.is_some() {
        return None;
    }
    // Between two connections a caller closes the first, which belongs to no request.
    if facts.settings.requests_per_connection.is_some() {
        return None;
    }
    let callers = facts.settings.callers as f64;
    let in_system = facts.summary.in_system()?;
    let seconds = facts.summary.seconds;
    let between = facts.cost.client_between_requests_seconds;
    let between = between.map(|between| between / seconds);
    // Callers whose connection was lost also pause, and that is not the client's doing.
    let has_failures = facts.summary.accounting.failed() > 0;
    let is_missing = if has_failures {
        between? > callers * LITTLE
    } else {
        (in_system / callers - 1.0).abs() > LITTLE
    };
    is_missing.then_some(Warning::LittlesLaw {
        callers,
        in_system,
        between,
    })
}

/// One caller's requests wait for nobody else's: two levels are of the machine, not of the load.
fn bimodal(facts: &Facts<'_>) -> Option<Warning> {
    let is_alone = facts.settings.callers == 1 && facts.settings.planned_rate.is_none();
    if !(facts.shared_host && is_alone) {
        return None;
    }
    let modes = modes(facts.service_time)?;
    Some(Warning::Bimodal {
        low_p50: modes.low,
        high_p50: modes.high,
        high_share: modes.high_share,
    })
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
    /// The worst warning of each kind, and the number of results that have one of its kind.
    pub kinds: Vec<(&'a Warning, usize)>,
}

impl<'a> Warnings<'a> {
    /// Collects the warnings about a run. Of a ladder it leaves out what goes without saying: it shares
    /// the machine by intent, shows no p99, and survives a few disturbed windows.
    pub fn of_run(run: &'a Run) -> Self {
        let is_ladder = !run.differences.is_empty();
        let goes_without_saying = |warning: &Warning| {
            matches!(
                warning,
                Warning::SharedHost
                    | Warning::TooFewSamples { .. }
                    | Warning::LittlesLaw { .. }
                    | Warning::NotSteady { .. }
            )
        };
        let mut all = Self::of(&run.steps, &run.bulk);
        all.kinds
            .retain(|(warning, _)| !(is_ladder && goes_without_saying(warning)));
        all
    }

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
            match kinds.iter_mut().find(|(other, _)| same(other)) {
                Some((worst, _)) if warning.is_worse_than(worst) => *worst = warning,
                Some(_) => {}
                None => {
                    let concerned = all.iter().filter(|own| own.iter().any(same)).count();
                    kinds.push((warning, concerned));
                }
            }
        }
        Self {
            results: all.len(),
            kinds,
        }
    }

    /// Returns true if there are results and no warning that invalidates them.
    pub fn is_valid(&self) -> bool {
        self.results > 0 && self.invalidating().next().is_none()
    }

    /// Returns the warnings that invalidate the results.
    pub fn invalidating(&self) -> impl Iterator<Item = &'a Warning> {
        let kinds = self.kinds.iter().map(|(warning, _)| *warning);
        kinds.filter(|warning| warning.severity() == Severity::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// Returns the names of the warnings about 100 replies in each of these slots, of 1 ms each.
    fn warned(slots: &[u64], drain_slots: &[u64]) -> Vec<&'static str> {
        let step = fixtures::step(3, |_| vec![1_000_000; 1000]);
        let facts = Facts {
            settings: &step.settings,
            summary: &step.summary,
            cost: &step.cost,
            slots,
            drain_slots,
            service_time: &step.histograms.service_time,
            subject: Subject::Server,
            warmup_failed: false,
            shared_host: false,
            server_restarted: false,
            clock_step: 0,
        };
        let checks = [not_steady, stalled, server_gone];
        let found = checks.iter().filter_map(|check| check(&facts));
        found.map(|warning| warning.name()).collect()
    }

    #[test]
    fn the_worst_of_a_kind_speaks_for_it_and_decides() {
        let step = |busiest_worker: f64| {
            let mut step = fixtures::step(3, |_| vec![1_000_000; 1000]);
            step.warnings = vec![Warning::ClientBound { busiest_worker }];
            step
        };
        let steps = [0.75, 0.99, 0.8].map(step);
        let warnings = Warnings::of(&steps, &[]);
        let worst = Warning::ClientBound {
            busiest_worker: 0.99,
        };
        assert_eq!(warnings.kinds, [(&worst, 3)]);
        assert!(!warnings.is_valid());
        assert!(Warnings::of(&steps[..1], &[]).is_valid());
    }

    #[test]
    fn a_stall_is_seen_wherever_it_is() {
        let with = |from: usize, to: usize| -> Vec<u64> {
            (0..30)
                .map(|at| {
                    if (from..to).contains(&at) {
                        0
                    } else {
                        99 + at as u64 % 3
                    }
                })
                .collect()
        };
        let steady = with(0, 0);
        assert_eq!(warned(&steady, &[]), [""; 0]);
        assert_eq!(warned(&steady, &[8]), [""; 0]);
        for (from, to) in [(0, 2), (14, 16), (14, 15), (10, 25)] {
            assert_eq!(warned(&with(from, to), &[8]), ["STALLED"], "{from}..{to}");
        }
        // From the end of the window on: all eight callers wait.
        assert_eq!(warned(&steady, &[0, 0, 0, 8]), ["STALLED"]);
        assert_eq!(warned(&with(28, 30), &[0, 0, 0, 8]), ["STALLED"]);
        // One caller's reply was lost.
        assert_eq!(warned(&steady, &[7, 0, 0, 1]), [""; 0]);
        assert_eq!(warned(&with(15, 30), &[]), ["SERVER_GONE"]);
    }

    #[test]
    fn a_drift_is_more_than_chance_and_has_a_bound() {
        let drift = |slots: &[u64]| drift(slots).map(|(drift, _)| drift);
        assert_eq!(drift(&[100; 30]), None);
        assert_eq!(drift(&[100; 8]), None);
        let steps = |low: u64, high: u64| -> Vec<u64> {
            (0..30)
                .map(|slot| if slot < 15 { low } else { high } + slot % 3)
                .collect()
        };
        assert!((drift(&steps(100, 150)).unwrap() + 0.33).abs() < 0.02);
        assert_eq!(drift(&steps(100, 105)), None);
        let burst: Vec<u64> = (0..40)
            .map(|slot| u64::from((10..20).contains(&slot)) * (900 + slot))
            .collect();
        assert_eq!(drift(&burst), Some(MOST_DRIFT));
    }

    #[test]
    fn the_longest_gap_is_found_wherever_it_is() {
        assert_eq!(longest_gap(&[1, 0, 2, 0, 0]), Some((3, 5)));
        assert_eq!(longest_gap(&[0, 0, 3]), Some((0, 2)));
        assert_eq!(longest_gap(&[1, 2]), None);
        assert_eq!(longest_gap(&[]), None);
    }
}
