//! Warnings about requests that did not leave as planned.

use netping_measure::{accounting::Accounting, course::Slot, times::Time};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::{
    format::{plural, thousands},
    time_unit,
};

/// A 99th percentile of a part of the response time matters from this many nanoseconds, and from
/// this share of that of the response time.
const LATENESS: u64 = 500_000;
const LATENESS_SHARE: f64 = 0.1;

/// Returns the 99th percentiles of a part of the response time, which is given, and of the whole, where
/// the part matters.
pub(super) fn part(facts: &Facts<'_>, part: Option<u64>) -> Option<(u64, u64)> {
    let part = part?;
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
        let wait = facts.summary.times[Time::NoCallerFree].quantile(99.0);
        let (wait_p99, response_p99) = part(facts, wait)?;
        Some(Self {
            wait_p99,
            response_p99,
        })
    }

    fn tell(&self) -> Told {
        let [wait, response] =
            [self.wait_p99, self.response_p99].map(|time| time_unit::time(time as f64));
        let mut sentence =
            format!("one request in a hundred waited {wait} or longer for a free caller");
        // Of requests that were never sent, the response time is only a lower bound.
        if self.wait_p99 < self.response_p99 {
            sentence.extend(["; the response time's p99 is ", &response]);
        }
        Told {
            severity: Severity::Note,
            extent: self.wait_p99 as f64,
            sentence,
            remedy: &[
                ("use more callers", &["-c"]),
                (", unless real users would wait, too", &[]),
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
    /// True if the replies that are missing are those of the window's start, because requests took longer than the
    /// warm-up, and did not take longer and longer.
    #[serde(default)]
    pub outlasts_warmup: bool,
}

impl BehindSchedule {
    /// A median lag beyond this many nanoseconds is more than the timer's.
    const LATE: u64 = 1_000_000;

    /// An open loop that achieves less than this share of its planned rate is behind, unless by chance.
    const ACHIEVED: f64 = 0.99;

    /// Replies to requests from before the window and replies after it differ by chance, by up to this many of their
    /// standard deviations. Where arrivals are random, their number is that of a Poisson distribution.
    const CHANCE: f64 = 3.0;

    /// Requests of the window's second half take longer than those of its first by over this factor where they queue.
    const GROWTH: f64 = 1.25;

    /// Returns the replies that came after the window because requests took longer than the warm-up; 0 where they
    /// queue. Each such request finds as many fewer answered before it as are due in the time by which it is longer.
    fn of_warmup(facts: &Facts<'_>, scheduled: f64) -> f64 {
        let (early, late) = facts.slots.split_at(facts.slots.len() / 2);
        let mean = |slots: &[Slot]| {
            let due: u64 = slots.iter().map(|slot| slot.due).sum();
            let sum: u64 = slots.iter().map(|slot| slot.response).sum();
            sum as f64 / due.max(1) as f64
        };
        if mean(late) > mean(early) * Self::GROWTH {
            return 0.0;
        }
        let warmup = facts.settings.warmup_seconds * 1e9;
        let beyond = |(time, count): (u64, u64)| (time as f64 - warmup).max(0.0) * count as f64;
        let times = facts.service_time;
        let sum: f64 = times.iter().map(beyond).sum();
        let mean = sum / times.len().max(1) as f64 / 1e9;
        scheduled / facts.summary.seconds * mean
    }
}

impl WarningKind for BehindSchedule {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let planned = facts.settings.planned_rate?;
        let summary = facts.summary;
        let lag_p50 = summary.times[Time::Lag].quantile(50.0);
        let Accounting {
            not_sent,
            early,
            late: after,
            ..
        } = summary.accounting;
        // Against what was scheduled: random arrivals are not exactly as many as planned.
        let scheduled = (summary.scheduled as f64).min(planned * summary.seconds);
        let came = summary.rate * summary.seconds;
        let by_chance = Self::CHANCE * ((early + after) as f64).sqrt();
        let is_short = came + by_chance < scheduled * Self::ACHIEVED;
        let achieved = if scheduled > 0.0 {
            came / scheduled
        } else {
            1.0
        };
        // Bursts may be more than the callers can send at once.
        let may_be_late = facts.settings.bursts.is_some();
        let late = !may_be_late && lag_p50.is_some_and(|lag| lag > Self::LATE);
        let is_late = late || not_sent > 0;
        let explained = by_chance + Self::of_warmup(facts, scheduled).min(after as f64);
        let outlasts_warmup =
            !is_late && is_short && came + explained >= scheduled * Self::ACHIEVED;
        (is_late || is_short).then_some(Self {
            lag_p50,
            not_sent,
            achieved,
            outlasts_warmup,
        })
    }

    fn tell(&self) -> Told {
        let (severity, extent) = (Severity::Invalid, -self.achieved);
        if self.outlasts_warmup {
            return Told {
                severity,
                extent,
                sentence: format!(
                    "replies came at {:.1}% of the planned rate: requests took longer than the warm-up, so that few were answered at the window's start",
                    self.achieved * 100.0
                ),
                remedy: &[
                    ("use a longer warm-up", &["--warmup"]),
                    (
                        "; if requests then take longer still, this rate is too high for the server",
                        &[],
                    ),
                ],
            };
        }
        Told {
            severity,
            extent,
            sentence: format!(
                "replies came at {:.1}% of the planned rate; half of the requests were sent {} or more after they were due, and {} never",
                self.achieved * 100.0,
                self.lag_p50
                    .map_or_else(|| "-".to_owned(), |lag| time_unit::time(lag as f64)),
                thousands(self.not_sent as f64)
            ),
            remedy: &[
                ("if the server is not saturated, use more callers", &["-c"]),
                (" or threads", &["--workers"]),
                ("; otherwise, this rate is too high for it", &[]),
            ],
        }
    }
}

/// The callers of a closed loop did not wait for replies all the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct LittlesLaw {
    /// Callers (N).
    pub callers: f64,
    /// The mean number of requests that were out in the window.
    pub in_system: f64,
    /// The mean number of callers between a reply and their next request, by the client's own clock;
    /// absent where it was not measured.
    #[serde(default)]
    pub between: Option<f64>,
}

impl LittlesLaw {
    /// Callers without a request may be this share of all.
    const DIFFERENCE: f64 = 0.02;

    /// The client is at fault if its callers' pauses explain this share of what is missing.
    const EXPLAINED: f64 = 0.5;
}

/// The mean number in a system is the rate of arrivals times the mean time there (Little 1961). Over a
/// window it is exact if the times are those parts of the requests that lie in the window: then neither
/// its edges nor slow requests make a difference.
impl WarningKind for LittlesLaw {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        // In an open loop N is not given but follows.
        if facts.settings.planned_rate.is_some() {
            return None;
        }
        // A caller that waits for its turn has no request of this target out.
        if facts.settings.is_by_turns() {
            return None;
        }
        // Between two connections a caller closes the first, which belongs to no request.
        if facts.settings.requests_per_connection.is_some() {
            return None;
        }
        // Between two requests a caller reads the time stamps of the first, which belongs to neither.
        if facts.settings.anatomy {
            return None;
        }
        let callers = facts.settings.callers as f64;
        let in_system = facts.outstanding;
        let between = facts.cost.client_between_requests_seconds;
        let between = between.map(|between| between / facts.summary.seconds);
        // Callers whose connection was lost also pause, and that is not the client's doing.
        let accounting = &facts.summary.accounting;
        let is_missing = if accounting.error_rate() > 0.0 {
            between? > callers * Self::DIFFERENCE
        } else {
            accounting.ok > 0 && (in_system / callers - 1.0).abs() > Self::DIFFERENCE
        };
        is_missing.then_some(Self {
            callers,
            in_system,
            between,
        })
    }

    fn tell(&self) -> Told {
        let missing = self.callers - self.in_system;
        // Without the client's own clock, it is at fault for all of it.
        let paused = self.between.unwrap_or(missing);
        let is_clients = missing > 0.0 && paused > missing * Self::EXPLAINED;
        let mut sentence = format!(
            "on average, {:.2} of {} waited for a reply",
            self.in_system,
            plural(self.callers as u64, "caller")
        );
        if let Some(between) = self.between {
            let between = format!("{between:.2}");
            sentence.extend([
                ", and ",
                &between,
                " were between a reply and the next request",
            ]);
        }
        Told {
            severity: Severity::Invalid,
            extent: (self.in_system / self.callers - 1.0).abs(),
            sentence,
            remedy: if is_clients {
                &[
                    (
                        "the client itself spent time between requests: with many callers, use more threads",
                        &["--workers"],
                    ),
                    (
                        " and more requests; with a single one, a quieter machine",
                        &[],
                    ),
                ]
            } else if missing > 0.0 {
                &[(
                    "some callers had no request out for part of the window, and netping does not know why: measure longer",
                    &["-d", "--requests"],
                )]
            } else {
                &[(
                    "more requests were out than there are callers, and netping does not know why: measure longer",
                    &["-d", "--requests"],
                )]
            },
        }
    }
}
