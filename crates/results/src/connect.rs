//! What it takes to open a connection, part by part.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use netping_measure::{
    connect::{ConnectPhase, PhaseTimes},
    distribution::Distribution,
};

use crate::file::histogram::encode;

/// One phase in a result file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// What describes its times.
    pub time: Distribution,
    /// All of them, in HdrHistogram's V2 format, deflated, as base64.
    pub histogram: String,
}

impl PhaseSummary {
    /// Describes the times of each phase.
    pub fn of(times: &PhaseTimes) -> BTreeMap<ConnectPhase, Self> {
        let summary = |times| Self {
            time: Distribution::of(times),
            histogram: encode(times),
        };
        times
            .histograms()
            .map(|(phase, times)| (phase, summary(times)))
            .collect()
    }
}

/// How a step's connections were secured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSecurity {
    /// The protocol and its version.
    pub protocol: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// The group of the key exchange.
    pub key_exchange: String,
    /// Whether an earlier session was resumed: by the last connection that served a limited number of requests, or
    /// else by the first one of all; absent where nobody tells.
    pub resumed: Option<bool>,
    /// Whether the client knew the server by its certificate or key.
    pub server_verified: bool,
    /// Whether the client had a certificate of its own, for a server that asks.
    pub client_certificate: bool,
}
