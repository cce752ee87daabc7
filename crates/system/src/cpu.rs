//! CPU time, to the nanosecond: `getrusage` may round it to ticks.

use std::{
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use nix::{
    sys::{
        resource::{UsageWho, getrusage},
        time::{TimeVal, TimeValLike},
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
    usage.map_or(Duration::ZERO, |usage| duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_micros(time.num_microseconds().unsigned_abs())
}

/// Counts that the kernel keeps of a thread (getrusage(2)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// The part of its CPU time that the kernel spent for it.
    pub system_time: Duration,
    /// Times that it gave its CPU to another thread, to wait or because it had to.
    pub context_switches: u64,
}

/// Returns the kernel's counts of the calling thread; zeros where they are not known.
pub fn thread_usage() -> ThreadUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return ThreadUsage::default();
    };
    let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
    ThreadUsage {
        system_time: duration(usage.system_time()),
        context_switches: switches.unsigned_abs(),
    }
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

/// Returns the names that follow `prefix`, and the CPU times, of the threads of this process that begin with it; none with
/// more than [`MOST_THREADS`].
pub fn times_of_threads(prefix: &str) -> Vec<(String, Duration)> {
    let threads = proc::threads(process::id()).unwrap_or_default();
    if threads.len() > MOST_THREADS {
        return Vec::new();
    }
    let time = |thread: &PathBuf| {
        let name = proc::read(thread.join("comm"))?;
        let own = name.trim_end().strip_prefix(prefix)?.to_owned();
        proc::run_and_delay(thread).map(|[run, _]| (own, run))
    };
    threads.iter().filter_map(time).collect()
}

fn run_delay_of(thread: &Path) -> Option<Duration> {
    proc::run_and_delay(thread).map(|[_, delay]| delay)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}
