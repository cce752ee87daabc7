//! The times of one request, and the kinds of loop that send requests.

/// The kind of loop that sends requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// A caller sends its next request when the last one is done: each is due when it starts.
    Closed,
    /// Requests are due at times of their own.
    Open,
}

/// The times of one request, on the run's clock in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it was due.
    pub intended: u64,
    /// When a caller was free for it: from then on it was late by the client's doing.
    pub free: u64,
    /// When it was handed to the transport.
    pub start: u64,
    /// When its whole reply was verified, or it had failed.
    pub end: u64,
}
