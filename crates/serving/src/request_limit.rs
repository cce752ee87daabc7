//! The time that a request may take to come.

use std::time::Duration;

/// Bytes that add a second to the limit: the least rate of a long request.
pub const BYTES_PER_SECOND: u64 = 64 << 10;

/// The kind under which a request that came too slowly is counted.
pub const REQUEST_TIMEOUT: &str = "request_timeout";

/// Time limit for a request, from its first byte to its last.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimit(Duration);

impl RequestLimit {
    /// Returns a limit for short requests; zero: none.
    pub const fn new(time: Duration) -> Self {
        Self(time)
    }

    /// Returns the time that a request may have taken once this many bytes of it have come; `None`
    /// without a limit.
    pub fn after(self, bytes: u64) -> Option<Duration> {
        let more = Duration::from_secs(bytes) / BYTES_PER_SECOND as u32;
        (!self.0.is_zero()).then(|| self.0.saturating_add(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_have_more_time() {
        let limit = RequestLimit::new(Duration::from_secs(30));
        assert_eq!(
            limit.after(1 << 10),
            Some(Duration::from_micros(30_015_625))
        );
        assert_eq!(limit.after(16 << 20), Some(Duration::from_secs(30 + 256)));
        assert_eq!(RequestLimit::new(Duration::ZERO).after(1), None);
    }
}
