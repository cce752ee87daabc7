//! The only file of the servers that reads the time.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Monotonic time.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    cpu(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that the process has used, to the nanosecond (`getrusage` may round to ticks).
pub fn process_cpu() -> Duration {
    cpu(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu(id: ClockId) -> Duration {
    clock_gettime(id).map(Duration::from).unwrap_or_default()
}
