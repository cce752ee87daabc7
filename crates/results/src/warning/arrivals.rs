//! Warnings about requests that did not leave as planned.

use netping_measure::{distribution::Distribution, times::Time};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::format::{nanos_as_micros, plural, thousands};

/// A 99th percentile of a part of the response time matters from this many nanoseconds, and from
/// this share of that of the response time.
const LATENESS: u64 = 500_000;
const LATENESS_SHARE: f64 = 0.1;

/// Returns the 99th percentiles of a part of the response time and of the whole, where the part
/// matters.
pub(super) fn part(facts: &Facts<'_>, part: &Distribution) -> Option<(u64, u64)> {
    let part = part.quantile(99.0)?;
    let whole = facts.summary.times[Time::Response].quantile(99.0)?;
    (part > LATENESS && part as f64 > whole as f64 * LATENESS_SHARE).then_some((part, whole))
}

/// Requests of an open loop waited because every caller was busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct NoCallerFree {
    /// The 99th percentile of that wait, in nanoseconds.
    #[serde(rename = "wait_p99_ns")]
    pub wait_p99: u64,
    /// The 99th percentile of the response time, in nanoseconds.
    #[serde(rename = "response_p99_ns")]
    pub response_p99: u64,
}

impl WarningKind for NoCallerFree {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let (wait_p99, response_p99) = part(facts, &facts.summary.times[Time::NoCallerFree])?;
        Some(Self {
            wait_p99,
            response_p99,
        })
    }

    fn tell(&self) -> Told {
        let (wait, response) = (Some(self.wait_p99), Some(self.response_p99));
        let wait_us = nanos_as_micros(wait);
        let mut sentence = format!("requests waited {wait_us} us at p99 for a free caller");
        // Of requests that were never sent, the response time is only a lower bound.
        if wait < response {
            let response_us = nanos_as_micros(response);
            sentence.extend([", in response times of ", &response_us, " us"]);
        }
        Told {
            severity: Severity::Note,
            extent: self.wait_p99 as f64,
            sentence,
            remedy: &[
                ("give more callers", &["-c"]),
                (", unless users wait in the same way", &[]),
            ],
        }
    }
}

/// Requests of an open loop started later than they were due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct BehindSchedule {
    /// The median lag, in nanoseconds.
    #[serde(rename = "lag_p50_ns")]
    pub lag_p50: Option<u64>,
    /// Requests that were due but never sent.
    pub not_sent: u64,
    /// Verified replies as a share of what was planned.
    pub achieved: f64,
}

impl BehindSchedule {
    /// A median lag beyond this many nanoseconds is more than the timer's.
    const LATE: u64 = 1_000_000;

    /// An open loop that achieves less than this share of its planned rate is behind.
    const ACHIEVED: f64 = 0.99;
}

impl WarningKind for BehindSchedule {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let planned = facts.settings.planned_rate?;
        let lag_p50 = facts.summary.times[Time::Lag].quantile(50.0);
        let not_sent = facts.summary.accounting.not_sent;
        // Against what was scheduled: random arrivals are not exactly as many as planned.
        let scheduled = (facts.summary.scheduled as f64 / facts.summary.seconds).min(planned);
        let achieved = if scheduled > 0.0 {
            facts.summary.rate / scheduled
        } else {
            1.0
        };
        let late = lag_p50.is_some_and(|lag| lag > Self::LATE);
        (late || not_sent > 0 || achieved < Self::ACHIEVED).then_some(Self {
            lag_p50,
            not_sent,
            achieved,
        })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Invalid,
            extent: -self.achieved,
            sentence: format!(
                "{:.1}% of the planned rate, median lag {} us, {} requests not sent",
                self.achieved * 100.0,
                nanos_as_micros(self.lag_p50),
                thousands(self.not_sent as f64)
            ),
            remedy: &[
                ("if the server is not full, give more callers", &["-c"]),
                (" or threads", &["--workers"]),
                ("; otherwise this rate is too high for it", &[]),
            ],
        }
    }
}

/// The callers were not all in the server's hands all the time: N differs from X * R (Little's law).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct LittlesLaw {
    /// Callers (N).
    pub callers: f64,
    /// Rate times mean time (X * R), failed requests included.
    pub in_system: f64,
    /// The mean number of callers between a reply and their next request, by the client's own clock;
    /// absent where it was not measured.
    #[serde(default)]
    pub between: Option<f64>,
}

impl LittlesLaw {
    /// N and X * R may differ by this share.
    const DIFFERENCE: f64 = 0.02;

    /// The client is at fault if its callers' pauses explain this share of what is missing.
    const EXPLAINED: f64 = 0.5;
}

/// The mean number in a system is the rate of arrivals times the mean time there (Little 1961).
impl WarningKind for LittlesLaw {
    const IN_LADDERS: bool = false;

    fn of_step(facts: &Facts<'_>) -> Option<Self> {
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
            between? > callers * Self::DIFFERENCE
        } else {
            (in_system / callers - 1.0).abs() > Self::DIFFERENCE
        };
        is_missing.then_some(Self {
            callers,
            in_system,
            between,
        })
    }

    fn tell(&self) -> Told {
        let missing = self.callers - self.in_system;
        let between = self.between.map_or_else(String::new, |between| {
            format!(", and {between:.2} between requests")
        });
        // Without the client's own clock, it is at fault for all of it.
        let paused = self.between.unwrap_or(missing);
        let is_clients = missing > 0.0 && paused > missing * Self::EXPLAINED;
        Told {
            severity: Severity::Invalid,
            extent: (self.in_system / self.callers - 1.0).abs(),
            sentence: format!(
                "by rate times mean time, {:.2} of {} waited for a reply{between} (Little's law)",
                self.in_system,
                plural(self.callers as u64, "caller")
            ),
            remedy: if is_clients {
                &[
                    (
                        "the client spent time of its own between requests: many callers need more threads",
                        &["--workers"],
                    ),
                    (" and more requests, a single one a quieter machine", &[]),
                ]
            } else {
                &[(
                    "requests that began before the window, or ended after it, weigh in it: measure longer",
                    &["-d", "--requests"],
                )]
            },
        }
    }
}
