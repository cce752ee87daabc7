//! The data of a finished step.

use std::time::Duration;

use netping_measure::{
    accounting::Accounting,
    aggregate::Totals,
    cost::{Cost, HostEvents, RequestCounts, ServerDemand},
    path::PathAccount,
    status::Status,
};
use netping_system::counters::HostCounters;

use crate::{engine::worker::WorkerReport, plan::Plan, probe::metrics::Reading};

/// Shortest window, in seconds, whose cost is reported: twenty looks of a worker at its CPU time.
const SHORTEST_FOR_COST: f64 = 0.1;

/// The data of a finished step.
#[derive(Debug)]
pub struct Measured {
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
    /// The reason why expected counters of the server could not be read.
    pub server_note: Option<String>,
    /// The server's process was not the same at the window's start and end.
    pub server_restarted: bool,
    /// The server's metrics are those of a process on this machine.
    pub server_shares_host: bool,
    /// The account of its connections; `None` if it is not known.
    pub path: Option<PathAccount>,
    /// The reports of all workers; their cost is that of the step.
    pub report: WorkerReport,
}

/// Returns what happened on this machine between two readings of its counters.
pub fn host_events(start: &HostCounters, end: &HostCounters) -> HostEvents {
    let count = |of: fn(&HostCounters) -> Option<u64>| of(end)?.checked_sub(of(start)?);
    let time = |of: fn(&HostCounters) -> Option<Duration>| {
        let spent = of(end)?.checked_sub(of(start)?)?;
        Some(spent.as_secs_f64())
    };
    HostEvents {
        cores: end.cores,
        steal_seconds: time(|counters| counters.steal),
        softirq_seconds: time(|counters| counters.softirq),
        throttled_seconds: time(|counters| counters.throttled),
        tcp_retransmits: count(|counters| counters.tcp_retransmits),
        listen_drops: count(|counters| counters.listen_drops),
        udp_drops: count(|counters| counters.udp_drops),
    }
}

/// Returns both sides' counts of the requests between two readings of the server's counters; `None` where
/// its count need not be what was sent: of the user's own requests, or through a proxy.
pub fn counted_requests(
    plan: &Plan,
    [start, end]: [&Reading; 2],
    accounting: &Accounting,
) -> Option<RequestCounts> {
    if plan.load.kind.is_prepared() || plan.target.behind_proxy {
        return None;
    }
    // The server may have answered those that failed, and each caller's at either reading.
    let failed = accounting.failed() + accounting.in_flight + accounting.outside_errors;
    let counts = start.requests_until(end, plan.load.callers as u64 + failed)?;
    Some(RequestCounts {
        has_other_clients: plan.execution.in_step,
        ..counts
    })
}

/// Completes the cost of a step, of whose workers, wake-ups and machine `cost` is. In a closed loop,
/// the callers spent `between` nanoseconds between their requests.
pub fn complete(
    cost: Cost,
    totals: &Totals,
    between: Option<u64>,
    server: Option<ServerDemand>,
) -> Cost {
    let (client_hiccups, client_host) = (cost.client_hiccups, cost.client_host);
    if totals.window.seconds() < SHORTEST_FOR_COST {
        return Cost {
            client_hiccups,
            client_host,
            ..Cost::default()
        };
    }
    Cost {
        client_cpu_us_per_request: cost.worker_cpu_us(totals.accounting.handled()),
        client_between_requests_seconds: between.map(|spent| spent as f64 / 1e9),
        server,
        ..cost
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netping_measure::{
        accounting::Accounting, aggregate::Aggregate, error_kind::ErrorKind, sample::LoopKind,
        window::Window,
    };
    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{
        plan::{Destination, Trust},
        probe::metrics::ServerSource,
        transport::Kind,
    };

    /// Completes the cost of a worker that used a second of CPU time in a window of this length.
    fn completed(milliseconds: u64) -> Cost {
        let end = milliseconds * 1_000_000;
        let mut totals = Aggregate::new(LoopKind::Closed).finish(Window { start: 0, end });
        totals.accounting = Accounting {
            ok: 5,
            late: 1,
            early: 2,
            errors: BTreeMap::from([(ErrorKind::Http(503), 4)]),
            ..Accounting::default()
        };
        let cost = Cost {
            client_worker_cpu_seconds: vec![1.0],
            ..Cost::default()
        };
        complete(cost, &totals, Some(500_000_000), None)
    }

    #[test]
    fn the_clients_cost_is_of_all_requests_that_ended_in_the_window() {
        let cost = completed(100);
        assert_eq!(cost.client_cpu_us_per_request, Some(100_000.0));
        assert_eq!(cost.client_between_requests_seconds, Some(0.5));
        assert_eq!(completed(99), Cost::default());
    }

    #[test]
    fn requests_are_compared_where_the_server_counts_what_is_sent() {
        let at = |requests: u64, replies| {
            let text = format!("netping_requests_total {requests}");
            Reading::within_an_hour(&text, [replies, replies]).unwrap()
        };
        let (start, end) = (at(100, 40), at(1100, 990));
        let accounting = Accounting {
            ok: 950,
            errors: BTreeMap::from([(ErrorKind::Timeout, 3)]),
            in_flight: 5,
            outside_errors: 7,
            ..Accounting::default()
        };
        let clear = (Connector::Plain, Trust::default());
        let url = "tcp://h:1".parse().unwrap();
        let mut plan = Plan::new(
            Destination::new(url, ServerSource::Nowhere, clear),
            Kind::Line,
        );
        plan.load.callers = 16;
        let counted = |plan: &Plan| counted_requests(plan, [&start, &end], &accounting);
        let expected = RequestCounts {
            server: 1000,
            client: 950,
            unsure: 16 + 3 + 5 + 7,
            has_other_clients: false,
        };
        assert_eq!(counted(&plan), Some(expected));
        plan.execution.in_step = true;
        assert!(counted(&plan).unwrap().has_other_clients);
        plan.target.behind_proxy = true;
        assert_eq!(counted(&plan), None);
        plan.target.behind_proxy = false;
        plan.load.kind = Kind::GrpcCall;
        assert_eq!(counted(&plan), None);
    }

    #[test]
    fn events_of_a_machine_are_those_between_two_readings() {
        let counters = |number| HostCounters {
            steal: Some(Duration::from_secs(number)),
            tcp_retransmits: Some(10 * number),
            ..HostCounters::default()
        };
        let events = host_events(&counters(1), &counters(3));
        assert_eq!(events.steal_seconds, Some(2.0));
        assert_eq!((events.tcp_retransmits, events.udp_drops), (Some(20), None));
        assert_eq!(
            host_events(&counters(3), &counters(1)).tcp_retransmits,
            None
        );
    }
}
