//! The time of day on a client's machine: how well it is kept, and how far it is from a server's.

use serde::{Deserialize, Serialize};

/// The time of day on the client's machine when the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostClock {
    /// True if a time server or a device keeps it, as far as the kernel knows.
    pub synchronized: Option<bool>,
    /// The kernel's estimate of its error, in seconds.
    pub estimated_error_seconds: Option<f64>,
    /// The kernel's bound on its error, in seconds.
    pub max_error_seconds: Option<f64>,
    /// Its offset to a server's, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<ClockOffset>,
}

/// The offset between the client's time of day and a server's.
///
/// Of many exchanges the one with the shortest round trip counts: with the client's times t0 and t3
/// of sending and receiving and the server's t1 and t2 between them, the offset is
/// ((t1 - t0) + (t2 - t3)) / 2 and the round trip (t3 - t0) - (t2 - t1) (RFC 5905, section 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockOffset {
    /// URL of the server.
    pub server: String,
    /// The server's time less the client's, in nanoseconds.
    pub offset_ns: i64,
    /// The shortest round trip, in nanoseconds. The error of the offset is at most half of it,
    /// however unlike the two ways are.
    pub round_trip_ns: u64,
}

impl ClockOffset {
    /// Returns the bound on the error of the offset, in nanoseconds.
    pub fn uncertainty_ns(&self) -> u64 {
        self.round_trip_ns.div_ceil(2)
    }
}

/// Returns the time by which each of several clients' clocks is behind that of the server, in
/// nanoseconds; 0 for all where it is not known of each, from one server's clock.
pub fn behind<'a>(clocks: impl IntoIterator<Item = Option<&'a HostClock>>) -> Vec<i64> {
    let offsets: Vec<Option<&ClockOffset>> = clocks
        .into_iter()
        .map(|clock| clock?.offset.as_ref())
        .collect();
    let first = offsets.first().copied().flatten();
    let each = offsets.iter().map(|offset| {
        let offset = (*offset)?;
        (offset.server == first?.server).then_some(offset.offset_ns)
    });
    each.collect::<Option<_>>()
        .unwrap_or_else(|| vec![0; offsets.len()])
}
