//! CPU time, to the nanosecond: `getrusage` may round it to ticks.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Returns the CPU time that the calling thread has used.
pub fn thread_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time that all threads of this process have used.
pub fn process_time() -> Duration {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}
