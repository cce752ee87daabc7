//! The span of time in which requests count.

/// The length of an interval, in nanoseconds: 1 s.
pub const INTERVAL: u64 = 1_000_000_000;

/// The length of a slot, in nanoseconds: 100 ms.
pub const SLOT: u64 = 100_000_000;

/// The span in which requests count, on the run's clock in nanoseconds: `start` is in it, `end` is
/// not.
///
/// Times are those of the requests that were due in it, however long they took: a server that stops
/// just before its end shows in them. The rate is that of the replies that came in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub start: u64,
    /// Its end.
    pub end: u64,
}

impl Window {
    /// Returns true if `time` lies in it.
    pub fn contains(self, time: u64) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// Returns its length, in seconds.
    pub fn seconds(self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / 1e9
    }
}
