//! Warnings about times without a reply.

use netping_measure::{course::Gap, times::Time};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};

/// Replies that a stretch without any would have had: fewer may be chance.
const MISSED: f64 = 20.0;

/// A stretch without a reply is long beyond this many median service times.
const LONG: f64 = 8.0;

/// For a while no reply came, though there were requests and replies come quickly otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Stalled {
    /// When the longest such stretch began, in seconds of the window.
    #[serde(rename = "at_seconds")]
    pub at: f64,
    /// Its length, in seconds; of one that began before the window, the part in it.
    pub seconds: f64,
    /// The number of such stretches; 0 in files of older versions, which do not have it.
    #[serde(default)]
    pub count: usize,
    /// The time from the end of one to the end of the next, in seconds, if they come regularly.
    #[serde(rename = "period_seconds", default)]
    pub period: Option<f64>,
    /// True if no request of the window waited for the longest one's end, so that the response times
    /// do not show it.
    #[serde(rename = "is_hidden", default)]
    pub hidden: bool,
}

impl Stalled {
    /// A stall that ends in the drain counts if this share of the callers had to wait for its end.
    const WAITED: f64 = 0.5;

    /// The longest response time is at least this share of a stall for which a request waited.
    const IN_MAX: f64 = 0.9;

    /// Fewer periods than these may be alike by chance.
    const PERIODS: usize = 3;

    /// A period may differ from the median by this share...
    const UNLIKE: f64 = 0.1;

    /// ...and all of them but for this share of them must not: one stall may be missed.
    const ODD: f64 = 0.2;

    /// Returns the period of stalls that come regularly.
    fn period(stalls: &[Gap]) -> Option<f64> {
        let pairs = stalls.windows(2);
        let mut periods: Vec<f64> = pairs.map(|pair| seconds(pair[1].to - pair[0].to)).collect();
        if periods.len() < Self::PERIODS {
            return None;
        }
        periods.sort_unstable_by(f64::total_cmp);
        let median = periods[periods.len() / 2];
        let is_odd = |own: &&f64| (*own - median).abs() > median * Self::UNLIKE;
        let odd = periods.iter().filter(is_odd).count();
        (odd as f64 <= periods.len() as f64 * Self::ODD).then_some(median)
    }
}

impl WarningKind for Stalled {
    /// One that never ends is not a stall.
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let waited = facts.summary.accounting.late as f64;
        let has_waited = waited >= facts.settings.callers as f64 * Self::WAITED;
        let mut stalls = silences(facts);
        stalls
            .retain(|gap| !gap.is_last && (has_waited || seconds(gap.to) <= facts.summary.seconds));
        let longest = stalls.iter().max_by_key(|gap| gap.length())?;
        let most = facts.summary.times[Time::Response].max.unwrap_or(0);
        Some(Self {
            at: seconds(longest.from),
            seconds: seconds(longest.length()),
            count: stalls.len(),
            period: Self::period(&stalls),
            hidden: (most as f64) < Self::IN_MAX * longest.length() as f64,
        })
    }

    fn tell(&self) -> Told {
        let length_in_words = length(self.seconds);
        let mut sentence = if self.at > 0.0 {
            format!(
                "no reply for {length_in_words}, starting at {:.2} s",
                self.at
            )
        } else {
            format!("no reply for at least {length_in_words}, from the start of the window")
        };
        if self.count > 1 {
            sentence.extend([": the longest of ", &self.count.to_string(), " such pauses"]);
        }
        if let Some(period) = self.period {
            sentence.extend([", which recur every ", &length(period)]);
        }
        Told {
            severity: Severity::Note,
            extent: self.seconds,
            sentence,
            remedy: if self.hidden {
                &[(
                    "look for pauses of the server, its host or the network; the response times do not include the stall, because the requests that waited began before the window",
                    &[],
                )]
            } else {
                &[(
                    "look for pauses of the server, its host or the network; the numbers include the stall",
                    &[],
                )]
            },
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
    /// A server without a reply for this long at the end is gone, in seconds.
    const GONE: f64 = 0.5;
}

impl WarningKind for ServerGone {
    /// A server that never replied was not there before.
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let last = silences(facts).pop()?;
        let is_gone = last.is_last && last.from > 0 && seconds(last.length()) >= Self::GONE;
        is_gone.then(|| Self {
            since: seconds(last.from),
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

/// Returns the stretches without a reply that are longer than chance and response times explain.
pub(super) fn silences(facts: &Facts<'_>) -> Vec<Gap> {
    let window = facts.summary.seconds;
    let replies = facts.summary.accounting.arrived() as f64;
    let typical = facts.summary.times[Time::Service]
        .quantile(50.0)
        .unwrap_or(0);
    let is_long = |gap: &&Gap| {
        let rest = window - (seconds(gap.to).min(window) - seconds(gap.from));
        let missed = replies / rest.max(1e-3) * seconds(gap.length());
        missed >= MISSED && gap.length() as f64 > LONG * typical as f64
    };
    facts.gaps.iter().filter(is_long).copied().collect()
}

/// Returns nanoseconds in seconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Returns a length of time in words: `104 ms`, `2.00 s`.
fn length(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}
