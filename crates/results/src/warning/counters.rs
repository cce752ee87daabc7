//! Warnings about a server's count of requests that is not what was sent.

use netping_measure::cost::RequestCounts;
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Told, WarningKind};
use crate::format::thousands;

/// The counts of client and server may differ by this share of the client's.
const SHARE: f64 = 0.02;

/// Others sent requests to the server as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct ServerShared {
    /// The requests that the server answered.
    pub server: u64,
    /// The replies that the client had meanwhile.
    pub client: u64,
}

impl ServerShared {
    /// Looks for it in the counts of all clients of a run: one of several cannot tell.
    pub(crate) fn of_counts(counts: &RequestCounts) -> Option<Self> {
        let RequestCounts { server, client, .. } = *counts;
        let most = client as f64 * (1.0 + SHARE) + counts.unsure as f64;
        let is_shared = !counts.has_other_clients && server as f64 > most;
        is_shared.then_some(Self { server, client })
    }
}

impl WarningKind for ServerShared {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        Self::of_counts(facts.cost.server.as_ref()?.requests.as_ref()?)
    }

    fn tell(&self) -> Told {
        let [server, client] = counted(self.server, self.client);
        Told {
            severity: Severity::Invalid,
            extent: self.server as f64 / self.client.max(1) as f64,
            sentence: format!(
                "the server answered {server} requests, but only {client} replies came: others load it, too"
            ),
            remedy: &[
                ("stop what else uses the server", &[]),
                (
                    "; if those are clients of the same run, start them at one moment and add up their results",
                    &["--start-at", "netping merge"],
                ),
            ],
        }
    }
}

/// The server did not count requests that it must have answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct CountersDisagree {
    /// The requests that the server answered, as it says.
    pub server: u64,
    /// The replies that the client had meanwhile.
    pub client: u64,
}

impl CountersDisagree {
    /// Looks for it in the counts of one client or of all clients of a run.
    pub(crate) fn of_counts(counts: &RequestCounts) -> Option<Self> {
        let RequestCounts { server, client, .. } = *counts;
        let least = client as f64 * (1.0 - SHARE) - counts.unsure as f64;
        ((server as f64) < least).then_some(Self { server, client })
    }
}

impl WarningKind for CountersDisagree {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        Self::of_counts(facts.cost.server.as_ref()?.requests.as_ref()?)
    }

    fn tell(&self) -> Told {
        let [server, client] = counted(self.server, self.client);
        Told {
            severity: Severity::Invalid,
            extent: self.client as f64 / self.server.max(1) as f64,
            sentence: format!(
                "the server counted only {server} requests, but {client} replies came: its counters do not cover every \
                 server that answered"
            ),
            remedy: &[(
                "name the metrics of the server that answers, or turn them off",
                &["--server-metrics"],
            )],
        }
    }
}

fn counted(server: u64, client: u64) -> [String; 2] {
    [server, client].map(|count| thousands(count as f64))
}
