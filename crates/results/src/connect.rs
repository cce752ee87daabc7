//! The cost of opening a connection, part by part.

use std::collections::BTreeMap;

use netping_measure::connect::{ConnectPhase, PhaseTimes};
use serde::{Deserialize, Serialize};

use crate::times::Times;

/// Describes the times of each phase.
pub fn phases(times: &PhaseTimes) -> BTreeMap<ConnectPhase, Times> {
    times
        .histograms()
        .map(|(phase, times)| (phase, Times::of(times.into())))
        .collect()
}

/// The security of a step's connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChannelSecurity {
    /// The protocol and its version.
    pub protocol: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// The group of the key exchange.
    pub key_exchange: String,
    /// True where an earlier session was resumed: by the last connection that served a limited
    /// number of requests, or else by the first of all; absent where it is unknown.
    pub resumed: Option<bool>,
    /// True where the client knew the server by its certificate or key.
    pub server_verified: bool,
    /// True where the client had a certificate of its own, for a server that asks.
    pub client_certificate: bool,
}
