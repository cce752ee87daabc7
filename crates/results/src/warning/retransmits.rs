//! The warning that lost packets explain a tail.

use netping_measure::{
    path::{PathAccount, PathFact},
    times::Time,
};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::{
    format::{plural, thousands},
    time_unit,
};

/// So many packets were lost, or sent again, that a quantile of the response time is that of requests that waited
/// for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Retransmits {
    /// Packets that the client sent again over TCP, or lost over QUIC.
    pub packets: u64,
    /// The most of one connection.
    pub most: u64,
    /// All connections.
    pub connections: u64,
    /// Requests of the window.
    pub requests: u64,
    /// The quantile that they explain, in per cent.
    pub percent: f64,
    /// Its response time, in nanoseconds.
    #[serde(rename = "time_ns")]
    pub time: u64,
    /// The least time without an acknowledgement after which TCP sends again, in nanoseconds; absent over QUIC.
    #[serde(default, rename = "timeout_ns")]
    pub timeout: Option<u64>,
}

/// The quantiles that are looked at, in per cent: the one that more requests lie beyond comes first.
const QUANTILES: [f64; 2] = [99.0, 99.9];

impl Retransmits {
    /// Looks for it in the account of a step's connections, of which each had so many requests out at a time.
    fn of_path(facts: &Facts<'_>, path: &PathAccount) -> Option<Self> {
        let lost = path.lost()?;
        let response = &facts.summary.times[Time::Response];
        // A packet holds up at least one request, and all that are out on a connection that is shared.
        let shared = facts.outstanding / path.connections as f64;
        let delayed = lost.sum as f64 * shared.max(1.0);
        // It takes at least a round trip to learn that it is lost.
        let learned = path.facts.get(&PathFact::SmoothedRttNs);
        let least = response.quantile(50.0)? + learned.map_or(0, |rtt| rtt.min);
        let moved = |percent: &f64| {
            let beyond = (100.0 - percent) * response.count as f64 / 100.0;
            let time = response.quantile(*percent)?;
            (delayed >= beyond && time >= least).then_some((*percent, time))
        };
        let (percent, time) = QUANTILES.iter().find_map(moved)?;
        let timeout = path.facts.get(&PathFact::RetransmissionTimeoutNs);
        Some(Self {
            packets: lost.sum,
            most: lost.max,
            connections: path.connections,
            requests: response.count,
            percent,
            time,
            timeout: timeout.map(|own| own.min),
        })
    }
}

impl WarningKind for Retransmits {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let path = facts.path.filter(|path| path.connections > 0)?;
        Self::of_path(facts, path).filter(|own| own.packets > 0)
    }

    fn tell(&self) -> Told {
        let packets = plural(self.packets, "packet");
        let were = if self.packets == 1 { "was" } else { "were" };
        let what = if self.timeout.is_some() {
            "sent again"
        } else {
            "lost"
        };
        let most = match self.connections {
            1 => String::new(),
            _ => format!(
                " (at most {} on one connection)",
                thousands(self.most as f64)
            ),
        };
        let requests = thousands(self.requests as f64);
        let (percent, time) = (self.percent, time_unit::time(self.time as f64));
        let mut sentence = format!(
            "{packets} {were} {what}{most} in {requests} requests: enough to make p{percent} ({time})"
        );
        if let Some(timeout) = self.timeout {
            let timeout = time_unit::time(timeout as f64);
            sentence.extend([
                "; one with nothing sent behind it waits for at least ",
                &timeout,
            ]);
        }
        Told {
            severity: Severity::Note,
            extent: self.packets as f64 / self.requests.max(1) as f64,
            sentence,
            remedy: &[
                (
                    "look for the loss on the path before the server: a full queue, a policer, a bad link",
                    &["ip -s link", "nstat"],
                ),
                ("; without it, the tail is another", &[]),
            ],
        }
    }
}
