//! CPU time, to the nanosecond: `getrusage` may round it to ticks.

use std::{fs, time::Duration};

use nix::time::{ClockId, clock_gettime};

/// Returns the CPU time that the calling thread has used.
pub fn thread_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time that all threads of this process have used.
pub fn process_time() -> Duration {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the time that the calling thread was ready to run but another one ran on its CPU
/// (`/proc/thread-self/schedstat`, `Documentation/scheduler/sched-stats.rst` of Linux); 0 where the
/// kernel does not count it.
pub fn thread_run_delay() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let delay = text.split_ascii_whitespace().nth(1).map(str::parse);
    Duration::from_nanos(delay.and_then(Result::ok).unwrap_or_default())
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}
