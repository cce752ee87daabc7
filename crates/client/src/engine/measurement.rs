//! The data of a finished step.

use std::{collections::BTreeMap, time::Duration};

use netping_measure::{
    aggregate::Totals,
    connect::PhaseTimes,
    cost::{Cost, HostEvents},
    error_kind::ErrorKind,
    fairness::Fairness,
    messages::Messages,
    sample::Sample,
    status::Status,
};
use netping_protocol::tls::Negotiated;
use netping_system::counters::HostCounters;

use crate::{engine::worker::WorkerReport, probe::metrics::Reading};

/// Shortest window, in seconds, whose cost is reported: twenty looks of a worker at its CPU time.
const SHORTEST_FOR_COST: f64 = 0.1;

/// The data of a finished step.
#[derive(Debug)]
pub struct Measurement {
    /// The samples of all workers.
    pub totals: Totals,
    /// Partial if the user ended it.
    pub status: Status,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// An automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// Start of the window, in nanoseconds since 1970, UTC.
    pub window_started_at: Option<u64>,
    /// Step of the time of day during the run, in nanoseconds; 0 if there was none.
    pub clock_step: i64,
    /// Resources used by client and server.
    pub cost: Cost,
    /// The reason why expected counters of the server could not be read.
    pub server_note: Option<String>,
    /// The server's process was not the same at the window's start and end.
    pub server_restarted: bool,
    /// The server's metrics are those of a process on this machine.
    pub server_shares_host: bool,
    /// Spread of requests over connections; `None` with fewer than two.
    pub fairness: Option<Fairness>,
    /// Connections opened in place of lost ones.
    pub reconnects: u64,
    /// Connections opened because the server had ended the previous one.
    pub ended_by_server: u64,
    /// Time to open connections within the window, by phase.
    pub phases: PhaseTimes,
    /// Messages of calls that stream; `None` without such.
    pub messages: Option<Messages>,
    /// Security of the connections; `None` in the clear.
    pub negotiated: Option<Negotiated>,
    /// Every success, warm-up included, if the plan asks for them.
    pub samples: Vec<Sample>,
    /// The first failure of each kind, for people.
    pub details: BTreeMap<ErrorKind, String>,
}

/// Returns the first failure of each kind over all workers.
pub fn failures(reports: Vec<WorkerReport>) -> BTreeMap<ErrorKind, String> {
    let mut details = BTreeMap::new();
    for mut report in reports {
        details.append(&mut report.details);
    }
    details
}

/// Returns the times to open connections over all workers.
pub fn phase_times(reports: &[WorkerReport]) -> PhaseTimes {
    let mut phases = PhaseTimes::default();
    for report in reports {
        phases.merge(&report.phases);
    }
    phases
}

/// Returns the messages of calls that stream over all workers.
pub fn messages(reports: &[WorkerReport]) -> Option<Messages> {
    let mut own = reports.iter().filter_map(|report| report.messages.as_ref());
    let mut sum = own.next()?.clone();
    own.for_each(|other| sum.merge(other));
    Some(sum)
}

/// Returns what happened on this machine between two readings of its counters.
pub fn host_events((start, end): (HostCounters, HostCounters)) -> HostEvents {
    let count = |of: fn(&HostCounters) -> Option<u64>| of(&end)?.checked_sub(of(&start)?);
    let time = |of: fn(&HostCounters) -> Option<Duration>| {
        let spent = of(&end)?.checked_sub(of(&start)?)?;
        Some(spent.as_secs_f64())
    };
    HostEvents {
        cores: end.cores,
        steal_seconds: time(|counters| counters.steal),
        throttled_seconds: time(|counters| counters.throttled),
        tcp_retransmits: count(|counters| counters.tcp_retransmits),
        listen_drops: count(|counters| counters.listen_drops),
        udp_drops: count(|counters| counters.udp_drops),
    }
}

/// Returns the cost of a step, given the server's counters at the window's start and end; and the
/// reason why expected counters are missing.
pub fn cost(
    reports: &[WorkerReport],
    totals: &Totals,
    counters: &Result<(Reading, Reading), String>,
    is_closed: bool,
) -> (Cost, Option<String>) {
    let server = match counters {
        Ok((start, end)) => start.demand_until(end, totals.arrived()),
        Err(note) => Err(note.clone()),
    };
    let note = server
        .as_ref()
        .err()
        .filter(|note| !note.is_empty())
        .cloned();
    if totals.window.seconds() < SHORTEST_FOR_COST {
        return (Cost::default(), note);
    }
    let cpu: Vec<f64> = reports
        .iter()
        .map(|report| report.thread.cpu.as_secs_f64())
        .collect();
    let handled = totals.arrived() + totals.accounting.failed();
    let cost = Cost {
        client_cpu_us_per_request: (handled > 0)
            .then(|| cpu.iter().sum::<f64>() * 1e6 / handled as f64),
        server: server.ok().flatten(),
        client_worker_cpu_seconds: cpu,
        client_worker_run_delay_seconds: reports
            .iter()
            .map(|report| report.thread.run_delay.as_secs_f64())
            .collect(),
        client_between_requests_seconds: is_closed.then(|| {
            let between = reports.iter().map(|report| report.between);
            between.sum::<Duration>().as_secs_f64()
        }),
        client_worker_cores: reports
            .iter()
            .map(|report| report.thread.cores.iter().copied().collect())
            .collect(),
        client_worker_moves: reports.iter().map(|report| report.thread.moves).collect(),
        ..Cost::default()
    };
    (cost, note)
}
