//! CPU time, to the nanosecond: `getrusage` may round it to ticks.

use std::{path::Path, time::Duration};

use nix::{
    sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    },
    time::{ClockId, clock_gettime},
};

use crate::proc;

/// The most threads of a process whose waiting is read.
pub const MOST_THREADS: usize = 1024;

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
/// (`Documentation/scheduler/sched-stats.rst` of Linux); 0 where the kernel does not count it.
pub fn thread_run_delay() -> Duration {
    run_delay_of(Path::new("/proc/thread-self")).unwrap_or_default()
}

/// Returns the time that the threads of a process were ready to run but others ran on their CPUs, summed
/// over the threads that live; `None` with more than [`MOST_THREADS`], whose reading would disturb what
/// is measured, and where the kernel does not show it.
pub fn run_delay(pid: u32) -> Option<Duration> {
    let threads = proc::threads(pid).ok()?;
    if threads.len() > MOST_THREADS {
        return None;
    }
    let delays = threads.iter().filter_map(|thread| run_delay_of(thread));
    delays.reduce(|sum, delay| sum + delay)
}

fn run_delay_of(thread: &Path) -> Option<Duration> {
    proc::run_and_delay(thread).map(|[_, delay]| delay)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}
