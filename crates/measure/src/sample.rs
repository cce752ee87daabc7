//! The times of one request, and the kinds of loop that send requests.

/// The kind of loop that sends requests, which decides the requests that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// A caller sends when its last reply is there: a request counts where its end lies.
    Closed,
    /// A closed loop of a given number of requests: a request counts where its start lies.
    Counted,
    /// Requests are due at times of their own: a request counts where its intended start lies.
    Open,
}

/// The times of one request, on the run's clock in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it was due.
    pub intended: u64,
    /// When it was handed to the transport.
    pub start: u64,
    /// When its whole reply was verified, or it had failed.
    pub end: u64,
}
