//! Times of the phases of opening a connection.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, add, histogram, record};

/// A part of opening a connection and making the first call on it, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectPhase {
    /// The look-up of the name's addresses.
    Resolve,
    /// The TCP connection.
    Tcp,
    /// The handshake of TLS, QUIC or Noise.
    Handshake,
    /// The HTTP/2 preface and settings.
    Http2,
    /// The first request, until its whole reply is verified.
    FirstCall,
    /// All of these, and addresses tried in vain: from the request's start to its verified reply.
    Total,
}

impl ConnectPhase {
    /// Every phase.
    pub const ALL: [Self; 6] = [
        Self::Resolve,
        Self::Tcp,
        Self::Handshake,
        Self::Http2,
        Self::FirstCall,
        Self::Total,
    ];

    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Tcp => "TCP connect",
            Self::Handshake => "handshake",
            Self::Http2 => "HTTP/2 setup",
            Self::FirstCall => "first call",
            Self::Total => "total",
        }
    }
}

/// The times of each phase, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct PhaseTimes(BTreeMap<ConnectPhase, Histogram>);

impl PhaseTimes {
    /// Adds one connection's time of a phase.
    pub fn record(&mut self, phase: ConnectPhase, nanoseconds: u64) {
        record(self.0.entry(phase).or_insert_with(histogram), nanoseconds);
    }

    /// Adds another's times.
    pub fn merge(&mut self, other: &Self) {
        for (&phase, times) in &other.0 {
            add(self.0.entry(phase).or_insert_with(histogram), times);
        }
    }

    /// Returns true if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the times of each phase.
    pub fn histograms(&self) -> impl Iterator<Item = (ConnectPhase, &Histogram)> {
        self.0.iter().map(|(&phase, times)| (phase, times))
    }
}
