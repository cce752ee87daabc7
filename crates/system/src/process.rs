//! Counters that the kernel keeps of processes, from `/proc`.

use std::{collections::BTreeSet, fs, io};

use nix::sys::resource::{UsageWho, getrusage};

use crate::{
    cores,
    proc::{self, Stat, ticks_per_second},
};

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
    let booted = booted(&proc::read("/proc/stat")?)?;
    Some(booted as f64 + seconds(Stat::read(proc::own())?.start))
}

/// Returns the time at which the machine was started, in seconds since 1970, from `/proc/stat`.
fn booted(stat: &str) -> Option<u64> {
    let mut lines = stat.lines();
    lines.find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

impl Usage {
    /// Reads the counters of process `pid`.
    ///
    /// # Errors
    /// Fails if there is no such process ([`io::ErrorKind::NotFound`]), or this user may not read its counters.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut context_switches = ContextSwitches::default();
        let mut children = Vec::new();
        let mut lists = BTreeSet::new();
        let mut living = 0.0;
        for thread in proc::threads(pid)? {
            if let Some([run, _]) = proc::run_and_delay(&thread) {
                living += run.as_secs_f64();
            }
            let status = proc::read(thread.join("status")).unwrap_or_default();
            let switches = ContextSwitches::of(&status);
            context_switches.voluntary += switches.voluntary;
            context_switches.involuntary += switches.involuntary;
            // Nearly all threads have the same.
            lists.extend(proc::value(&status, "Cpus_allowed_list").map(str::to_owned));
            children.extend(proc::children(&thread));
        }
        // The threads' times have steps of a nanosecond but omit threads that have ended; the
        // process's own time has steps of 10 ms and omits none. Of ended children, only the latter
        // kind exists.
        let process = proc::process(pid);
        let (own, ended) = Stat::read(&process).map_or((0.0, 0.0), |stat| {
            (seconds(stat.time), seconds(stat.children_time))
        });
        Ok(Self {
            cpu_seconds: own.max(living) + ended,
            resident_bytes: proc::resident(&process).unwrap_or(0),
            context_switches,
            children,
            cores: lists
                .iter()
                .filter_map(|list| cores::parse(list))
                .flatten()
                .collect(),
        })
    }
}

impl ContextSwitches {
    /// Returns those of a thread, from its `status`; 0 where the kernel does not count them.
    fn of(status: &str) -> Self {
        let number = |name| proc::value(status, name).and_then(|value| value.parse().ok());
        Self {
            voluntary: number("voluntary_ctxt_switches").unwrap_or(0),
            involuntary: number("nonvoluntary_ctxt_switches").unwrap_or(0),
        }
    }
}

/// Returns clock ticks in seconds.
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / ticks_per_second() as f64
}

/// Returns true while there is a process with this number.
pub fn is_running(pid: &u32) -> bool {
    proc::process(*pid).exists()
}

/// Returns these processes and those that their threads have started, and so on.
pub fn family(pids: &[u32]) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let mut left = pids.to_vec();
    while let Some(pid) = left.pop() {
        if all.insert(pid) {
            let threads = proc::threads(pid).unwrap_or_default();
            left.extend(threads.iter().flat_map(|thread| proc::children(thread)));
        }
    }
    all
}

/// Returns the processes of this host that run the same program as `pid`, but are not it.
pub fn namesakes(pid: u32) -> Vec<u32> {
    let program = |process: u32| fs::read_link(proc::process(process).join("exe")).ok();
    let Some(own) = program(pid) else {
        return Vec::new();
    };
    proc::pids()
        .filter(|other| *other != pid && program(*other).as_ref() == Some(&own))
        .collect()
}

/// Returns the number of this process's threads.
pub fn own_threads() -> Option<u64> {
    Some(Stat::read(proc::own())?.threads)
}

/// Returns the number of this process's open files.
pub fn own_open_files() -> Option<u64> {
    let folder = proc::own().join("fd");
    // From Linux 6.2 on, the size of the folder is their number.
    match fs::metadata(&folder).ok()?.len() {
        0 => Some(fs::read_dir(folder).ok()?.count() as u64),
        known => Some(known),
    }
}

/// Returns this process's resident memory, in bytes.
pub fn own_resident_bytes() -> Option<u64> {
    proc::resident(proc::own())
}

/// Returns the context switches of all threads that this process has had.
pub fn own_context_switches() -> Option<ContextSwitches> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(ContextSwitches {
        voluntary: usage.voluntary_context_switches().unsigned_abs(),
        involuntary: usage.involuntary_context_switches().unsigned_abs(),
    })
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
    fn context_switches_have_names_that_end_alike() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        let expected = ContextSwitches {
            voluntary: 150,
            involuntary: 7,
        };
        assert_eq!(ContextSwitches::of(status), expected);
        assert_eq!(
            ContextSwitches::of("Name:\ta\n"),
            ContextSwitches::default()
        );
    }

    #[test]
    fn this_process_has_started_after_the_machine_and_before_now() {
        assert_eq!(
            booted("intr 5 1\nctxt 9\nbtime 1795000000\nprocesses 7\n"),
            Some(1_795_000_000)
        );
        for wrong in ["", "btime", "btime \n", "btime -5\n"] {
            assert_eq!(booted(wrong), None, "{wrong}");
        }
        let file = fs::metadata(proc::own().join("stat")).unwrap();
        let now = file
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH);
        let age = now.unwrap().as_secs_f64() - own_start_time().unwrap();
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }

    #[test]
    fn this_process_may_run_on_its_cores() {
        let usage = Usage::of(std::process::id()).unwrap();
        let cores: BTreeSet<usize> = cores::own().into_iter().collect();
        assert!(!cores.is_empty() && usage.cores.is_superset(&cores));
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        assert!(own_resident_bytes() > Some(0));
        assert!(own_threads() > Some(0));
        assert!(own_open_files() > Some(2));
        assert!(own_context_switches().is_some());
    }
}
