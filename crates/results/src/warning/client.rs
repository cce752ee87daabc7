//! Warnings about the client: the numbers may be its own, not the server's.

use netping_measure::{cost::Cost, times::Time};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Subject, Told, WarningKind, arrivals::part, busiest_worker};
use crate::{balance::Shares, time_unit};

/// The client's own cores are full: the numbers are the client's, not the server's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ClientBound {
    /// The CPU time of the busiest worker, as a share of the window.
    pub busiest_worker: f64,
}

impl ClientBound {
    /// A worker that uses this share of what it could get of its core is worth a note.
    const BUSY: f64 = 0.7;

    /// A worker that uses this share of what it could get of its core decides the numbers.
    const FULL: f64 = 0.9;

    /// The thread of bulk streams that uses this share of its core has none to spare.
    const FULL_OF_BULK: f64 = 0.95;

    /// Looks for it in a transfer of bulk streams, which share one thread of the client.
    pub(crate) fn of_transfer(cost: &Cost, seconds: f64) -> Option<Self> {
        let busiest_worker = busiest_worker(cost, seconds);
        (busiest_worker >= Self::FULL_OF_BULK).then_some(Self { busiest_worker })
    }
}

impl WarningKind for ClientBound {
    const OF_CLIENT: bool = true;

    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        // A worker that polls all the time always uses its whole core.
        if facts.settings.busy_poll || facts.subject == Subject::Both {
            return None;
        }
        // An interrupted warm-up leaves no window.
        if facts.summary.seconds <= 0.0 {
            return None;
        }
        let busiest_worker = busiest_worker(facts.cost, facts.summary.seconds);
        (busiest_worker >= Self::BUSY).then_some(Self { busiest_worker })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::invalid_if(self.busiest_worker >= Self::FULL),
            extent: self.busiest_worker,
            sentence: format!(
                "the busiest client worker used {:.0}% of the CPU time it could get",
                self.busiest_worker * 100.0
            ),
            remedy: &[
                ("give the client more threads", &["--workers"]),
                (" or faster cores, or use several clients", &[]),
            ],
        }
    }
}

/// The client was late to send requests of an open loop though a caller was free, or late to do anything in
/// a closed loop: other programs, or the hypervisor, had its cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ClientStarved {
    /// The share of the window for which a worker of a closed loop waited for its CPU; absent in an open
    /// loop.
    #[serde(default)]
    pub waited: Option<f64>,
    /// The 99th percentile of that lateness, in nanoseconds; in a closed loop, of a thread that sleeps
    /// and wakes up.
    #[serde(rename = "late_p99_ns")]
    pub late_p99: u64,
    /// The 99th percentile of the response time, in nanoseconds.
    #[serde(rename = "response_p99_ns")]
    pub response_p99: u64,
}

impl ClientStarved {
    /// A worker that waits for its CPU for this share of the window is starved.
    const WAITED: f64 = 0.02;

    /// Returns the longest wait of a worker of a closed loop for its CPU, as a share of the window, if it
    /// is long and others had that CPU, for which it waited no longer than their CPU time: not the server, not
    /// another worker, and not the client's other threads, which had it for no longer than theirs. A virtual
    /// CPU that wakes up late makes a thread wait, too, though nobody has it.
    fn waited(facts: &Facts<'_>) -> Option<f64> {
        let cost = facts.cost;
        let mut balances = cost.balances.iter();
        let (own, client) = balances.find_map(|balance| Some((balance, balance.client?)))?;
        let is_shared = own.server.is_some() || own.has_server_among_others;
        if is_shared || cost.client_worker_cpu_seconds.len() > own.cpus.len() {
            return None;
        }
        let delays = cost.client_worker_run_delay_seconds.iter().copied();
        let workers: f64 = cost.client_worker_cpu_seconds.iter().sum();
        let other_threads = (client.cpu_seconds - workers).max(0.0);
        let foreign = Shares::of(own)?.foreign() * own.total_seconds;
        let waited = (delays.fold(0.0, f64::max) - other_threads).min(foreign);
        let waited = waited / facts.summary.seconds;
        (waited > Self::WAITED).then_some(waited)
    }
}

impl WarningKind for ClientStarved {
    const OF_CLIENT: bool = true;

    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let (waited, late) = if facts.settings.planned_rate.is_some() {
            (None, facts.summary.times[Time::ClientLate].quantile(99.0))
        } else {
            (
                Some(Self::waited(facts)?),
                facts.cost.client_hiccups?.p99_ns,
            )
        };
        let (late_p99, response_p99) = part(facts, late)?;
        Some(Self {
            waited,
            late_p99,
            response_p99,
        })
    }

    fn tell(&self) -> Told {
        let [late, response] =
            [self.late_p99, self.response_p99].map(|time| time_unit::time(time as f64));
        let sentence = match self.waited {
            None => format!(
                "the client sent requests {late} late at p99; the response time's p99 is {response}"
            ),
            Some(waited) => format!(
                "a client worker waited for its CPU for {:.1}% of the window, and a sleeping thread woke up {late} late at p99; the response time's p99 is {response}",
                waited * 100.0
            ),
        };
        Told {
            severity: Severity::Invalid,
            extent: self.late_p99 as f64,
            sentence,
            remedy: &[(
                "stop other programs on the client's host, or use a host with cores of its own",
                &[],
            )],
        }
    }
}

/// The limit on the CPU time of the client's cgroup stopped it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ClientThrottled {
    /// The time for which it did, over all cores, in seconds.
    pub seconds: f64,
}

impl ClientThrottled {
    /// The limit matters from this share of the window on.
    const SHARE: f64 = 0.01;
}

impl WarningKind for ClientThrottled {
    const OF_CLIENT: bool = true;

    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let seconds = facts.cost.client_host.throttled_seconds?;
        (seconds > facts.summary.seconds * Self::SHARE).then_some(Self { seconds })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Invalid,
            extent: self.seconds,
            sentence: format!(
                "a limit on CPU time stopped the client for {:.2} s",
                self.seconds
            ),
            remedy: &[(
                "raise the limit on the CPU time of the client's cgroup, or give the client fewer threads",
                &["--workers"],
            )],
        }
    }
}
