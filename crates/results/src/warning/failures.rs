//! Warnings about what went wrong while it was measured.

use netping_measure::summary::Summary;
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
            sentence: "the server was restarted".to_owned(),
            remedy: &[("measure again without restarting the server", &[])],
        }
    }
}

/// Requests, or transfers of bulk streams, failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Errors {
    /// The share of requests without a verified reply, or of transfers in which not every byte arrived.
    pub share: f64,
    /// The share of the callers' time that they took.
    #[serde(default)]
    pub time_share: f64,
}

impl Errors {
    /// Looks for it in the numbers of a step.
    pub(crate) fn of_summary(summary: &Summary) -> Option<Self> {
        let share = summary.accounting.error_rate();
        let time_share = summary.time_lost();
        (share > 0.0).then_some(Self { share, time_share })
    }
}

impl WarningKind for Errors {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        Self::of_summary(facts.summary)
    }

    fn tell(&self) -> Told {
        let mut sentence = format!("{} failed or were never sent", format::share(self.share));
        if self.time_share > self.share {
            let time = format::share(self.time_share);
            sentence.extend([", and took ", &time, " of the callers' time"]);
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
