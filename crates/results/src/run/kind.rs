//! The kind of a run: the command that made it.

use serde::{Deserialize, Serialize};

/// The command that measured a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Every server on one machine, in rounds.
    Ladder,
    /// Round trips, one after another.
    Latency,
    /// Requests from many callers at once.
    #[default]
    Throughput,
    /// Opening connections, and the first call on each.
    Connect,
    /// Many bytes in one direction.
    Bulk,
    /// The direct path and paths through proxies.
    Proxy,
    /// A short look at servers.
    Quick,
    /// A new server against its base, until it is known whether it is worse.
    Ab,
}

impl Kind {
    /// Returns what measuring everything once is called.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Ladder | Self::Ab | Self::Bulk => "round",
            _ => "trial",
        }
    }

    /// Returns the name of its command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Connect => "connect",
            Self::Bulk => "bulk",
            Self::Proxy => "proxy",
            Self::Quick => "quick",
            Self::Ab => "ab",
        }
    }
}
