//! The messages of calls that stream.

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, add, histogram};

/// The messages of calls that stream.
#[derive(Debug, Clone)]
pub struct Messages {
    /// Messages sent by successful calls that ended within the window.
    pub sent: u64,
    /// Messages received by them.
    pub received: u64,
    /// Times from the start of a call to the first message of its reply, in nanoseconds, of the calls
    /// that count.
    pub first: Histogram,
    /// Times between one message of a reply and the next, in nanoseconds, of the same calls. About 0 between messages
    /// that were read together.
    pub gap: Histogram,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            sent: 0,
            received: 0,
            first: histogram(),
            gap: histogram(),
        }
    }
}

impl Messages {
    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        add(&mut self.first, &other.first);
        add(&mut self.gap, &other.gap);
    }
}

/// The requests that were held back by the server's flow control, or by its limit of streams. Only messages on streams
/// that stay open are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// Their number.
    pub requests: u64,
    /// The time for which they were, of all together, in nanoseconds. It is part of their service times.
    pub total_ns: u64,
}

impl HeldBack {
    /// Adds one that was held back for so long.
    pub fn record(&mut self, nanoseconds: u64) {
        self.requests += 1;
        self.total_ns += nanoseconds;
    }

    /// Adds those of another worker or client.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.total_ns += other.total_ns;
    }
}
