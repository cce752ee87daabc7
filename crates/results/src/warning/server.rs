//! Warnings about the server: the numbers may be those of one of its threads, or of its flow control.

use netping_measure::{cost::ServerWorkers, times::Time};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};

/// One of the server's threads had no time to spare, while others had: its connections decide the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct UnevenServer {
    /// The threads that serve.
    pub workers: u64,
    /// The CPU time of the busiest, as a share of the window.
    pub busiest_worker: f64,
    /// The mean CPU time of all of them, as a share of the window.
    pub mean_worker: f64,
}

impl UnevenServer {
    /// A thread that uses this share of the window has no time to spare.
    const FULL: f64 = 0.9;

    /// Threads that have less than this share of what the busiest has could serve more.
    const EVEN: f64 = 0.75;
}

impl WarningKind for UnevenServer {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let ServerWorkers {
            count,
            busiest_seconds,
            cpu_seconds,
        } = facts.cost.server.as_ref()?.workers?;
        let seconds = facts.summary.seconds;
        let [busiest_worker, mean_worker] =
            [busiest_seconds, cpu_seconds / count as f64].map(|spent| spent / seconds);
        let is_uneven = busiest_worker >= Self::FULL && mean_worker < busiest_worker * Self::EVEN;
        (seconds > 0.0 && is_uneven).then_some(Self {
            workers: count,
            busiest_worker,
            mean_worker,
        })
    }

    fn tell(&self) -> Told {
        let [busiest, mean] = [self.busiest_worker, self.mean_worker].map(|share| share * 100.0);
        Told {
            severity: Severity::Note,
            extent: self.busiest_worker / self.mean_worker,
            sentence: format!(
                "the busiest of the server's {} threads was busy for {busiest:.0}% of the window, all of them for \
                 {mean:.0}% on average: connections are spread unevenly over them",
                self.workers
            ),
            remedy: &[
                ("use more connections", &["--connections"]),
                (
                    ", over QUIC from more client threads, each of which has 8 sockets",
                    &["--workers"],
                ),
            ],
        }
    }
}

/// The server's flow control kept messages from being sent: the numbers are those of a sender that waits for its peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct BlockedByPeer {
    /// The share of the messages' service time that was spent so.
    pub share: f64,
    /// Messages that were held back, as a share of all.
    pub messages: f64,
}

impl BlockedByPeer {
    /// The least share of the service time that is told.
    const TOLD: f64 = 0.05;
}

impl WarningKind for BlockedByPeer {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let (own, all) = (facts.held_back?, &facts.summary.times[Time::Service]);
        let count = all.count as f64;
        let share = own.total_ns as f64 / (all.mean? * count);
        (share >= Self::TOLD).then_some(Self {
            share,
            messages: own.requests as f64 / count,
        })
    }

    fn tell(&self) -> Told {
        let [share, messages] = [self.share, self.messages].map(|share| share * 100.0);
        Told {
            severity: Severity::Note,
            extent: self.share,
            sentence: format!(
                "the server's flow control, or its limit of streams, held back {messages:.0}% of the messages, for \
                 {share:.0}% of their total service time"
            ),
            remedy: &[
                ("give the server's streams larger windows", &[]),
                (
                    ", or spread the messages over more streams",
                    &["--streams-per-connection", "--connections"],
                ),
            ],
        }
    }
}
