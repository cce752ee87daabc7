//! Warnings about times without a reply.

use netping_measure::{times::Time, window::SLOT};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};

/// Replies that a stretch without any would have had: fewer may be chance.
const MISSED: f64 = 20.0;

/// A stretch without a reply is long beyond this many median response times.
const LONG: f64 = 10.0;

/// For a while no reply came, though there were requests and replies come quickly otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Stalled {
    /// When that began, in seconds of the window.
    #[serde(rename = "at_seconds")]
    pub at: f64,
    /// Its length, in seconds.
    pub seconds: f64,
}

impl Stalled {
    /// A stall that ends in the drain counts if this share of the callers had to wait for its end.
    const WAITED: f64 = 0.5;
}

impl WarningKind for Stalled {
    /// Looks for the longest stretch without a reply in which many were to be expected. One that never
    /// ends is not a stall.
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let (window, drain) = (facts.slots, facts.drain_slots);
        let all = [window, drain].concat();
        let (from, to) = longest_gap(&all)?;
        let waited: u64 = all[to..].iter().sum();
        if waited == 0 || from > window.len() + 1 {
            return None;
        }
        if to > window.len() && (waited as f64) < facts.settings.callers as f64 * Self::WAITED {
            return None;
        }
        is_long(facts, to - from).then(|| Self {
            at: seconds(from),
            seconds: seconds(to - from),
        })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.seconds,
            sentence: format!(
                "no reply for {:.1} s, from {:.1} s on",
                self.seconds, self.at
            ),
            remedy: &[(
                "look for pauses of the server, its host or the network; the numbers have the stall in them",
                &[],
            )],
        }
    }
}

/// From some time on no reply came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ServerGone {
    /// That time, in seconds of the window.
    #[serde(rename = "since_seconds")]
    pub since: f64,
}

impl ServerGone {
    /// A server without a reply for this long at the end is gone, in slots.
    const GONE: usize = 5;
}

impl WarningKind for ServerGone {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        if facts.drain_slots.iter().any(|&count| count > 0) {
            return None;
        }
        let since = facts.slots.iter().rposition(|&count| count > 0)? + 1;
        let length = facts.slots.len() - since;
        (length >= Self::GONE && is_long(facts, length)).then(|| Self {
            since: seconds(since),
        })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Invalid,
            extent: -self.since,
            sentence: format!("no reply since {:.1} s", self.since),
            remedy: &[("start the server again, and find out why it stopped", &[])],
        }
    }
}

/// Returns true if this many slots without a reply are more than chance and response times explain.
fn is_long(facts: &Facts<'_>, slots: usize) -> bool {
    let served = facts.slots.iter().filter(|count| **count > 0).count();
    let replies: u64 = facts.slots.iter().sum();
    let missed = replies as f64 / served.max(1) as f64 * slots as f64;
    let typical = facts.summary.times[Time::Service]
        .quantile(50.0)
        .unwrap_or(0) as f64
        / 1e9;
    missed >= MISSED && seconds(slots) > LONG * typical
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

/// Returns the length of this many slots, in seconds.
pub(super) fn seconds(slots: usize) -> f64 {
    slots as f64 * SLOT as f64 / 1e9
}
