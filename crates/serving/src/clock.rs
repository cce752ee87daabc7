//! The only file of the servers that reads the time.

use std::time::Instant;

/// Returns the monotonic time.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Instant {
    Instant::now()
}
