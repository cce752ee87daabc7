//! Warnings about numbers that are a mixture of two levels.

use netping_measure::statistics::{
    change_point::{Change, change},
    modes::modes,
};
use serde::{Deserialize, Serialize};

use super::{
    Facts, Severity, Told, WarningKind,
    silence::{ServerGone, Stalled, seconds},
};
use crate::format::nanos_as_micros;

/// The rate was not level over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct NotSteady {
    /// The rate of a stretch of the window against that of the rest, less 1; at most 10.
    pub drift: f64,
    /// The stretch's start, in seconds of the window.
    #[serde(rename = "from_seconds", default)]
    pub from: Option<f64>,
    /// Its end.
    #[serde(rename = "to_seconds", default)]
    pub to: Option<f64>,
    /// True where an automatic warm-up found no steady rate in its time.
    #[serde(default)]
    pub warmup_failed: bool,
}

impl NotSteady {
    /// A rate that differs by more than this share, and by more than chance explains, is not steady.
    const DRIFT: f64 = 0.1;

    /// Upper bound of a reported drift: that of a rate that begins at 0 has no finite share.
    const MOST: f64 = 10.0;

    /// Returns the stretch whose rate differs from the rest by more than chance explains, and by how
    /// much.
    fn drift(slots: &[u64]) -> Option<(f64, Change)> {
        let counts: Vec<f64> = slots.iter().map(|&count| count as f64).collect();
        let change = change(&counts)?;
        let difference = change.inside - change.outside;
        let drift = (difference / change.outside.max(f64::MIN_POSITIVE)).min(Self::MOST);
        (drift.abs() > Self::DRIFT).then_some((drift, change))
    }
}

impl WarningKind for NotSteady {
    const IN_LADDERS: bool = false;

    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let warmup_failed = facts.warmup_failed;
        // A stretch without any reply has a warning of its own.
        let is_gap = Stalled::of_step(facts).is_some() || ServerGone::of_step(facts).is_some();
        let drift = Self::drift(facts.slots).filter(|_| !is_gap);
        (drift.is_some() || warmup_failed).then(|| Self {
            drift: drift.map_or(0.0, |(drift, _)| drift),
            from: drift.map(|(_, change)| seconds(change.from)),
            to: drift.map(|(_, change)| seconds(change.to)),
            warmup_failed,
        })
    }

    fn tell(&self) -> Told {
        let mut parts = Vec::new();
        if self.warmup_failed {
            parts.push("the warm-up found no steady rate".to_owned());
        }
        if self.drift != 0.0 || !self.warmup_failed {
            let least = if self.drift >= Self::MOST {
                "at least "
            } else {
                ""
            };
            let higher = if self.drift < 0.0 { "lower" } else { "higher" };
            let [stretch, rest] = match self.from.zip(self.to) {
                Some((from, to)) => [format!("from {from:.1} s to {to:.1} s"), "rest".to_owned()],
                // Files of version 1 have no stretch.
                None => ["in the last third of the window", "first"].map(str::to_owned),
            };
            let percent = self.drift.abs() * 100.0;
            parts.push(format!(
                "{stretch} the rate was {least}{percent:.1}% {higher} than in the {rest}"
            ));
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
                "two levels: {} us, and for {:.0}% of the requests {} us",
                nanos_as_micros(Some(self.low_p50)),
                self.high_share * 100.0,
                nanos_as_micros(Some(self.high_p50))
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
