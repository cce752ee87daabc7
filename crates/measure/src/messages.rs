//! The messages of calls that stream.

use crate::histogram::{Histogram, add, histogram, record};

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
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            sent: 0,
            received: 0,
            first: histogram(),
        }
    }
}

impl Messages {
    /// Adds the messages of a call that ended within the window.
    pub fn add_call(&mut self, sent: u64, received: u64) {
        self.sent += sent;
        self.received += received;
    }

    /// Adds the time to the first message of a call that counts.
    pub fn record_first(&mut self, nanoseconds: u64) {
        record(&mut self.first, nanoseconds);
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.add_call(other.sent, other.received);
        add(&mut self.first, &other.first);
    }
}
