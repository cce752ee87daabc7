//! The kernel's account of how well the time of day is kept.

use std::time::Duration;

use rtime_clock::adjtime::{Timex, adjtimex};

/// `TIME_ERROR`: the clock is not synchronised (`adjtimex(2)`).
const TIME_ERROR: i32 = 5;

/// The quality of the time of day, as the program that keeps it (chrony, ntpd, systemd-timesyncd)
/// has told the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockQuality {
    /// True if a time server or a device keeps it.
    pub is_synchronized: bool,
    /// The estimated error.
    pub estimated_error: Duration,
    /// The bound on the error.
    pub max_error: Duration,
}

impl ClockQuality {
    /// Asks the kernel; `None` where a sandbox refuses the system call.
    pub fn read() -> Option<Self> {
        let mut clock = Timex::new();
        let state = adjtimex(&mut clock).ok()?;
        let micros = |time: i64| Duration::from_micros(u64::try_from(time).unwrap_or(0));
        Some(Self {
            is_synchronized: state != TIME_ERROR,
            estimated_error: micros(clock.0.esterror),
            max_error: micros(clock.0.maxerror),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synchronized_clock_has_a_small_error() {
        if let Some(clock) = ClockQuality::read() {
            // The kernel calls a clock whose bound has grown to 16 s unsynchronised.
            assert!(!clock.is_synchronized || clock.max_error < Duration::from_secs(16));
        }
    }
}
