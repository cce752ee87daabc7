//! Warnings about too little data.

use netping_measure::times::Time;
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind, facts::Trial};
use crate::format::thousands;

/// The rate varied so much that it is known only roughly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Noisy {
    /// Half the width of its 95 % interval, as a share of it.
    pub half_width: f64,
}

impl Noisy {
    /// A rate known to no more than this share is noisy.
    const NOISE: f64 = 0.1;
}

impl WarningKind for Noisy {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let half_width = facts.summary.precision.rate_half_width? / facts.summary.rate;
        (half_width > Self::NOISE).then_some(Self { half_width })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.half_width,
            sentence: format!(
                "the rate is known to +-{:.0}% only",
                self.half_width * 100.0
            ),
            remedy: &[
                ("measure longer", &["-d"]),
                (", repeat", &["--trials"]),
                (", and look for other load", &[]),
            ],
        }
    }
}

/// There are too few samples for the 99th percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct TooFewSamples {
    /// Their number.
    pub samples: u64,
}

impl WarningKind for TooFewSamples {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let time = &facts.summary.times[Time::Response];
        // Where all failed, that is the trouble.
        let is_told = facts.summary.unserved() > 0 && time.count == 0;
        (time.quantile(99.0).is_none() && !is_told).then_some(Self {
            samples: time.count,
        })
    }

    fn tell(&self) -> Told {
        Told {
            // Without any, nothing was measured.
            severity: Severity::invalid_if(self.samples == 0),
            extent: -(self.samples as f64),
            sentence: format!(
                "too few samples for p99: {}",
                thousands(self.samples as f64)
            ),
            remedy: &[("measure longer", &["-d", "--requests", "--samples"])],
        }
    }
}

/// A bulk stream was measured in too few runs to estimate their variation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct FewRuns {
    /// Their number.
    pub runs: u64,
}

impl FewRuns {
    /// Fewer runs than these say little about how much they vary.
    const FEWEST: usize = 3;
}

impl WarningKind for FewRuns {
    fn of_trials(trials: &[Trial]) -> Vec<(usize, Self)> {
        let whole = trials
            .iter()
            .filter(|trial| trial.is_transferred == Some(true));
        let runs = whole.count();
        let is_bulk = trials.iter().any(|trial| trial.is_transferred.is_some());
        if !is_bulk || runs >= Self::FEWEST {
            return Vec::new();
        }
        let runs = runs as u64;
        (0..trials.len()).map(|at| (at, Self { runs })).collect()
    }

    fn tell(&self) -> Told {
        Told {
            // Without any, nothing was measured.
            severity: Severity::invalid_if(self.runs == 0),
            extent: -(self.runs as f64),
            sentence: format!("too few runs to estimate how much they vary: {}", self.runs),
            remedy: &[("measure more often", &["--runs"])],
        }
    }
}
