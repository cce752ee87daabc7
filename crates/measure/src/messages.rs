//! The messages of calls that stream.

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
