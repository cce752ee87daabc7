//! Warnings about numbers that are a mixture of two levels.

use netping_measure::{
    course::Slot,
    statistics::{
        change_point::change,
        modes::modes,
        slowdown::{Slowdown, slowdown},
    },
    window::SLOT,
};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind, silence::silences};
use crate::time_unit;

/// The rate of a closed loop, or the response times of an open one, were not level over the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct NotSteady {
    /// The rate of a stretch of the window, or its response time, against that of the rest, less 1; at
    /// most 10.
    pub drift: f64,
    /// The stretch's start, in seconds of the window.
    #[serde(rename = "from_seconds", default)]
    pub from: Option<f64>,
    /// Its end.
    #[serde(rename = "to_seconds", default)]
    pub to: Option<f64>,
    /// The typical response time of an open loop in the stretch, and in the rest, in nanoseconds; absent
    /// where the rate was judged.
    #[serde(rename = "response_ns", default)]
    pub response: Option<[u64; 2]>,
    /// True where an automatic warm-up found no steady rate in its time.
    #[serde(default)]
    pub warmup_failed: bool,
}

impl NotSteady {
    /// A rate that differs by more than this share, and by more than chance explains, is not steady.
    const DRIFT: f64 = 0.1;

    /// The same for a single caller, whose rate is the inverse of its response time: that follows the machine's
    /// speed, and is judged as loosely as the response times of an open loop.
    const ONE_CALLER: f64 = 0.25;

    /// Upper bound of a reported drift: that of a rate that begins at 0 has no finite share.
    const MOST: f64 = 10.0;

    /// Stretches without a reply explain a change if they are this share of it.
    const EXPLAINED: f64 = 0.5;

    /// Returns the change between two slots, from one level to another.
    fn between([from, to]: [usize; 2], inside: f64, outside: f64) -> Self {
        let drift = (inside - outside) / outside.max(f64::MIN_POSITIVE);
        Self {
            drift: drift.min(Self::MOST),
            from: Some(seconds(from)),
            to: Some(seconds(to)),
            ..Self::default()
        }
    }

    /// Returns the stretch whose rate differs from the rest by more than chance explains.
    fn of_rate(slots: &[Slot], callers: usize) -> Option<Self> {
        let limit = if callers == 1 {
            Self::ONE_CALLER
        } else {
            Self::DRIFT
        };
        let counts: Vec<f64> = slots.iter().map(|slot| slot.ok as f64).collect();
        let change = change(&counts).filter(|change| !change.is_short(counts.len()))?;
        let found = Self::between([change.from, change.to], change.inside, change.outside);
        // Requests that all take the same time end together: a stretch has one more or less of each caller's.
        let length = (change.to - change.from) as f64;
        let replies = (change.inside - change.outside).abs() * length;
        (found.drift.abs() > limit && replies > callers as f64).then_some(found)
    }

    /// Returns the stretch whose response times differ from the rest by more than chance explains.
    fn of_response(slots: &[Slot]) -> Option<Self> {
        let Slowdown {
            from,
            to,
            inside,
            outside,
        } = slowdown(slots)?;
        Some(Self {
            response: Some([inside as u64, outside as u64]),
            ..Self::between([from, to], inside, outside)
        })
    }

    /// Returns true if stretches without any reply, which have a warning of their own, explain at least
    /// half of the change: of the replies that are missing, or of the time in which requests were slow.
    fn is_silence(&self, facts: &Facts<'_>) -> bool {
        let (from, to) = (self.from.unwrap_or(0.0), self.to.unwrap_or(0.0));
        let window = seconds(facts.slots.len());
        let silences = silences(facts);
        let silent = |from: f64, to: f64| -> f64 {
            let parts = silences.iter().map(|gap| {
                let [start, end] = [gap.from, gap.to].map(|time| time as f64 / 1e9);
                (end.min(to) - start.max(from)).max(0.0)
            });
            parts.sum()
        };
        let missing = match self.drift {
            _ if self.response.is_some() => 1.0,
            ..0.0 => -self.drift,
            _ => self.drift / (1.0 + self.drift),
        };
        // Slots may begin up to one later than the window.
        let inside = silent(from - seconds(1), to + seconds(1));
        let outside = silent(0.0, window + seconds(1)) - silent(from, to);
        let least = Self::EXPLAINED * missing;
        inside > least * (to - from) || outside > least * (window - to + from)
    }

    /// Returns what changed, in words.
    fn change_in_words(&self) -> String {
        let [stretch, rest] = match self.from.zip(self.to) {
            Some((from, to)) => [format!("from {from:.1} s to {to:.1} s"), "rest".to_owned()],
            // Files of version 1 have no stretch.
            None => ["in the last third of the window", "first"].map(str::to_owned),
        };
        if let Some(response) = self.response {
            let [inside, outside] = response.map(|time| time_unit::time(time as f64));
            return format!(
                "{stretch} the response time was {inside}, compared with {outside} in the {rest}"
            );
        }
        let times = 1.0 + self.drift;
        if self.drift >= Self::MOST {
            format!("{stretch} the rate was at least {times:.0} times that of the {rest}")
        } else if self.drift >= 1.0 {
            format!("{stretch} the rate was {times:.1} times that of the {rest}")
        } else {
            let higher = if self.drift < 0.0 { "lower" } else { "higher" };
            let percent = self.drift.abs() * 100.0;
            format!("{stretch} the rate was {percent:.1}% {higher} than in the {rest}")
        }
    }
}

impl WarningKind for NotSteady {
    /// The rate of an open loop is given, and shows nothing.
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let found = if facts.settings.bursts.is_some() {
            // It is meant not to be.
            None
        } else if facts.settings.planned_rate.is_some() {
            Self::of_response(facts.slots)
        } else {
            Self::of_rate(facts.slots, facts.settings.callers)
        };
        let found = found.filter(|found| !found.is_silence(facts));
        let warmup_failed = facts.warmup_failed;
        (found.is_some() || warmup_failed).then(|| Self {
            warmup_failed,
            ..found.unwrap_or_default()
        })
    }

    fn tell(&self) -> Told {
        let mut parts = Vec::new();
        if self.warmup_failed {
            parts.push("the warm-up found no steady rate".to_owned());
        }
        if self.drift != 0.0 || !self.warmup_failed {
            parts.push(self.change_in_words());
        }
        Told {
            severity: Severity::Invalid,
            extent: self.drift.abs(),
            sentence: parts.join("; "),
            remedy: &[
                ("warm up longer", &["--warmup"]),
                (", measure longer", &["-d"]),
                (", and look for other load", &[]),
            ],
        }
    }
}

/// Returns the length of this many slots, in seconds.
fn seconds(slots: usize) -> f64 {
    slots as f64 * SLOT as f64 / 1e9
}

/// The times have two levels, as where client and server share a core at times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Bimodal {
    /// The median of the times at the lower level, in nanoseconds.
    #[serde(rename = "low_p50_ns")]
    pub low_p50: u64,
    /// The median of the times at the higher level, in nanoseconds.
    #[serde(rename = "high_p50_ns")]
    pub high_p50: u64,
    /// The share of requests at the higher level.
    pub high_share: f64,
}

impl WarningKind for Bimodal {
    /// One caller's requests wait for nobody else's: two levels are of the machine, not of the load.
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let is_alone = facts.settings.callers == 1 && facts.settings.planned_rate.is_none();
        if !(facts.shared_host && is_alone) {
            return None;
        }
        let modes = modes(facts.service_time)?;
        Some(Self {
            low_p50: modes.low,
            high_p50: modes.high,
            high_share: modes.high_share,
        })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.high_p50 as f64 / self.low_p50.max(1) as f64,
            sentence: format!(
                "two levels: {} for {:.0}% of the requests, {} for the others",
                time_unit::time(self.high_p50 as f64),
                self.high_share * 100.0,
                time_unit::time(self.low_p50 as f64)
            ),
            remedy: &[
                (
                    "give client and server cores of their own",
                    &["taskset", "--pin"],
                ),
                (", or quote both levels", &[]),
            ],
        }
    }
}
