//! Warnings about what went wrong while it was measured.

use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::format;

/// The server was restarted during the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ServerRestarted;

impl WarningKind for ServerRestarted {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        facts.server_restarted.then_some(Self)
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Invalid,
            extent: 0.0,
            sentence: "the server's process was started anew".to_owned(),
            remedy: &[("measure again without restarting the server", &[])],
        }
    }
}

/// Requests, or runs of a bulk stream, failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Errors {
    /// The share of requests without a verified reply, or of runs in which not every byte arrived.
    pub share: f64,
    /// The share of the callers' time that they took.
    #[serde(default)]
    pub time_share: f64,
}

impl Errors {
    /// Looks for it in a bulk stream of which `failed` of `made` runs failed.
    pub(crate) fn of_bulk(failed: u64, made: u64) -> Option<Self> {
        (failed > 0).then(|| Self {
            share: failed as f64 / made as f64,
            time_share: 0.0,
        })
    }
}

impl WarningKind for Errors {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        let share = facts.summary.accounting.error_rate();
        let time_share = facts.summary.time_lost();
        (share > 0.0).then_some(Self { share, time_share })
    }

    fn tell(&self) -> Told {
        let mut sentence = format!("{} failed or were never sent", format::share(self.share));
        if self.time_share > self.share {
            let time = format::share(self.time_share);
            sentence.extend([", ", &time, " of the callers' time"]);
        }
        Told {
            severity: Severity::Invalid,
            extent: self.share,
            sentence,
            remedy: &[(
                "fix the failures first: failed requests cost less than served ones",
                &[],
            )],
        }
    }
}
