//! Counters that the kernel keeps of processes, from `/proc`.

use std::{collections::BTreeSet, path::Path};

use nix::sys::resource::{UsageWho, getrusage};
use procfs::{
    ProcResult, page_size,
    process::{self, Process},
    ticks_per_second,
};

pub use procfs::ProcError;

/// Counters of one process and all its threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// CPU time, in seconds, with that of child processes that have ended and been waited for.
    pub cpu_seconds: f64,
    /// Resident memory, in bytes; 0 if unknown.
    pub resident_bytes: u64,
    /// Context switches of the living threads.
    pub context_switches: ContextSwitches,
    /// Process ids of the living children.
    pub children: Vec<u32>,
    /// The cores that any of the living threads may run on.
    pub cores: BTreeSet<usize>,
}

/// Numbers of context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextSwitches {
    /// The thread waited for something.
    pub voluntary: u64,
    /// The kernel gave the core to another thread.
    pub involuntary: u64,
}

/// Returns the time at which this process was started, in seconds since 1970, UTC.
pub fn own_start_time() -> Option<f64> {
    let ticks = Process::myself().ok()?.stat().ok()?.starttime;
    let booted = procfs::boot_time_secs().ok()?;
    Some(booted as f64 + ticks as f64 / ticks_per_second() as f64)
}

impl Usage {
    /// Reads the counters of process `pid`.
    ///
    /// # Errors
    /// Fails if there is no such process, or this user may not read its counters.
    pub fn of(pid: u32) -> ProcResult<Self> {
        let process = Process::new(pid.cast_signed())?;
        let mut context_switches = ContextSwitches::default();
        let mut children = Vec::new();
        let mut ranges = BTreeSet::new();
        let mut living = 0.0;
        for task in process.tasks()?.flatten() {
            if let Ok(times) = task.schedstat() {
                living += times.sum_exec_runtime as f64 / 1e9;
            }
            if let Ok(status) = task.status() {
                context_switches.voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
                context_switches.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or(0);
                // Nearly all threads have the same.
                ranges.extend(status.cpus_allowed_list.into_iter().flatten());
            }
            children.extend(task.children().unwrap_or_default());
        }
        // The threads' times have steps of a nanosecond but omit threads that have ended; the
        // process's own time has steps of 10 ms and omits none. Of ended children, only the latter
        // kind exists.
        let (own, ended) = process.stat().map_or((0.0, 0.0), |stat| {
            let seconds = |ticks: u64| ticks as f64 / ticks_per_second() as f64;
            let ended = u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
            (seconds(stat.utime + stat.stime), seconds(ended))
        });
        Ok(Self {
            cpu_seconds: own.max(living) + ended,
            resident_bytes: resident(&process).unwrap_or(0),
            context_switches,
            children,
            cores: ranges
                .into_iter()
                .flat_map(|(first, last)| first as usize..=last as usize)
                .collect(),
        })
    }
}

/// Returns true while there is a process with this number.
pub fn is_running(pid: &u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Returns these processes and those that their threads have started, and so on.
pub fn family(pids: &[u32]) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let mut left = pids.to_vec();
    while let Some(pid) = left.pop() {
        if all.insert(pid) {
            left.extend(children(pid).unwrap_or_default());
        }
    }
    all
}

fn children(pid: u32) -> ProcResult<Vec<u32>> {
    let threads = Process::new(pid.cast_signed())?.tasks()?;
    let children = threads.filter_map(|thread| thread.ok()?.children().ok());
    Ok(children.flatten().collect())
}

/// Returns the processes of this host that run the same program as `pid`, but are not it.
pub fn namesakes(pid: u32) -> Vec<u32> {
    let program = |process: &Process| process.exe().ok();
    let Some(own) = Process::new(pid.cast_signed())
        .ok()
        .and_then(|own| program(&own))
    else {
        return Vec::new();
    };
    let all = process::all_processes().into_iter().flatten().flatten();
    all.filter(|other| program(other).as_ref() == Some(&own))
        .map(|other| other.pid.cast_unsigned())
        .filter(|other| *other != pid)
        .collect()
}

/// Returns the number of this process's threads.
pub fn own_threads() -> Option<u64> {
    let stat = Process::myself().ok()?.stat().ok()?;
    Some(stat.num_threads.unsigned_abs())
}

/// Returns the number of this process's open files.
pub fn own_open_files() -> Option<u64> {
    let files = Process::myself().ok()?.fd_count().ok()?;
    Some(files as u64)
}

/// Returns this process's resident memory, in bytes.
pub fn own_resident_bytes() -> Option<u64> {
    resident(&Process::myself().ok()?)
}

/// Returns the context switches of all threads that this process has had.
pub fn own_context_switches() -> Option<ContextSwitches> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(ContextSwitches {
        voluntary: usage.voluntary_context_switches().unsigned_abs(),
        involuntary: usage.involuntary_context_switches().unsigned_abs(),
    })
}

fn resident(process: &Process) -> Option<u64> {
    Some(process.statm().ok()?.resident * page_size())
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;
    use crate::cpu;

    #[test]
    fn the_cpu_time_of_a_thread_that_has_ended_stays_counted() {
        let read = || Usage::of(std::process::id()).unwrap();
        let before = read();
        assert!(before.cpu_seconds > 0.0 && before.resident_bytes > 0);
        let burn = || while cpu::thread_time() < Duration::from_millis(50) {};
        thread::spawn(burn).join().unwrap();
        assert!(read().cpu_seconds - before.cpu_seconds > 0.03);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_counters() {
        assert!(Usage::of(u32::MAX / 4).is_err());
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        assert!(own_resident_bytes() > Some(0));
        assert!(own_threads() > Some(0));
        assert!(own_open_files() > Some(2));
        assert!(own_context_switches().is_some());
    }
}
