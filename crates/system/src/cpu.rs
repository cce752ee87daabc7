//! CPU time, to the nanosecond: `getrusage` may round it to ticks.

use std::{fs, time::Duration};

use nix::{
    sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    },
    time::{ClockId, clock_gettime},
};

/// Returns the CPU time that the calling thread has used.
pub fn thread_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time that all threads of this process have used.
pub fn process_time() -> Duration {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the part of the CPU time of this process that the kernel spent for it (getrusage(2)); 0 where
/// that is not known.
pub fn process_system_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    let time = usage.map(|usage| usage.system_time());
    time.map_or(Duration::ZERO, |time| {
        Duration::from_micros(time.num_microseconds().unsigned_abs())
    })
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
