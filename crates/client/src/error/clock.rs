//! Errors of clocks.

use std::time::Duration;

use humantime::{FormattedDuration, format_duration};

/// A clock that is not as good as demanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// It is too far from a server's.
    #[error(
        "this host's clock is {} {} that of {server}, give or take {}; --max-clock-error allows {}: \
         synchronise both with the same time server (chrony), or allow more",
        rounded(*offset), if *ahead { "ahead of" } else { "behind" }, rounded(*uncertainty), format_duration(*max)
    )]
    Offset {
        /// URL of the server.
        server: String,
        /// True if this host's clock is the one that is ahead.
        ahead: bool,
        /// The difference.
        offset: Duration,
        /// The bound on the difference's error.
        uncertainty: Duration,
        /// The limit.
        max: Duration,
    },
    /// Nothing keeps it.
    #[error(
        "nothing synchronises this host's clock, and --max-clock-error demands it: start chrony or another NTP client, or \
         measure the offset with --clock-server"
    )]
    NotSynchronized,
    /// The kernel's estimate is too large.
    #[error(
        "this host's clock is off by an estimated {}; --max-clock-error allows {}: wait until it is synchronised, or allow more",
        format_duration(*error), format_duration(*max)
    )]
    Estimate {
        /// The estimate.
        error: Duration,
        /// The limit.
        max: Duration,
    },
    /// The system does not tell how good it is.
    #[error(
        "the system does not tell how well this host's clock is kept: measure the offset with --clock-server, or leave out \
         --max-clock-error"
    )]
    Unknown,
}

/// Shows a time to the microsecond.
fn rounded(time: Duration) -> FormattedDuration {
    format_duration(Duration::from_micros(time.as_micros() as u64))
}
