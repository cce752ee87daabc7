//! Warnings about the machine on which it was measured.

use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};

/// Client and server share a machine, and so its cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SharedHost;

impl WarningKind for SharedHost {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        facts.shared_host.then_some(Self)
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: 0.0,
            sentence: "client and server share this machine's cores".to_owned(),
            remedy: &[(
                "compare targets with each other; for absolute numbers, put the client on another host",
                &[],
            )],
        }
    }
}

/// The time of day was set while the step ran, so that timestamps from other sources do not fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ClockStep {
    /// The change, in nanoseconds.
    pub nanoseconds: i64,
}

impl WarningKind for ClockStep {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let nanoseconds = facts.clock_step;
        (nanoseconds != 0).then_some(Self { nanoseconds })
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.nanoseconds.unsigned_abs() as f64,
            sentence: format!(
                "the time of day was set by {:.3} ms during the step",
                self.nanoseconds as f64 / 1e6
            ),
            remedy: &[(
                "measure again without setting the clock; netping's own times are not affected",
                &[],
            )],
        }
    }
}
