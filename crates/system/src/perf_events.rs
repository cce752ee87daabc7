//! Instructions and system calls of threads, as the kernel's performance events count them (perf_event_open(2)).

use std::{fs, io};

use perf_event::{
    Builder, Counter,
    events::{Hardware, Tracepoint},
};

use crate::{cpu::MOST_THREADS, proc};

/// The number of the event with which each system call begins.
const SYSTEM_CALL: &str = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";

/// The thread that asks (perf_event_open(2)).
const THIS_THREAD: i32 = 0;

/// Counts that rise from one reading to the next; each is `None` where it is not known of every thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfCounts {
    /// Instructions in user mode: the kernel's own are for root to see, and vary more.
    pub instructions: Option<u64>,
    /// System calls that were begun.
    pub system_calls: Option<u64>,
}

/// The events of some threads, which are counted while it lives.
#[derive(Debug)]
pub struct PerfEvents {
    instructions: Option<Vec<Counter>>,
    system_calls: Option<Vec<Counter>>,
}

impl PerfEvents {
    /// Counts the events of the calling thread from now on.
    pub fn of_this_thread() -> Self {
        Self::of(&[THIS_THREAD])
    }

    /// Counts those of all threads of a process, and of the threads and processes that they start from now on. With
    /// more than [`MOST_THREADS`], or where this user may not see them, nothing is known. `None` if there is no such
    /// process.
    pub fn of_process(pid: u32) -> Option<Self> {
        let threads = match proc::threads(pid) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            threads => threads.unwrap_or_default(),
        };
        let ids = threads
            .iter()
            .filter_map(|thread| thread.file_name()?.to_str()?.parse().ok());
        let ids: Vec<i32> = ids.collect();
        if ids.is_empty() || ids.len() > MOST_THREADS {
            return Some(Self {
                instructions: None,
                system_calls: None,
            });
        }
        Some(Self::of(&ids))
    }

    fn of(threads: &[i32]) -> Self {
        let mut instructions = Builder::new(Hardware::INSTRUCTIONS);
        let system_calls = fs::read_to_string(SYSTEM_CALL).ok();
        let system_calls = system_calls.and_then(|id| id.trim().parse().ok());
        let system_calls = system_calls.and_then(|id| {
            let mut event = Builder::new(Tracepoint::with_id(id));
            // A system call begins in the kernel.
            count(event.include_kernel(), threads)
        });
        Self {
            instructions: count(&mut instructions, threads),
            system_calls,
        }
    }

    /// Returns the counts so far.
    pub fn read(&mut self) -> PerfCounts {
        PerfCounts {
            instructions: sum(self.instructions.as_deref_mut()),
            system_calls: sum(self.system_calls.as_deref_mut()),
        }
    }
}

impl PerfCounts {
    /// Returns true if nothing is known.
    pub fn is_unknown(&self) -> bool {
        self.instructions.is_none() && self.system_calls.is_none()
    }
}

/// Counts an event on each of the threads that still live; `None` if it cannot be counted on one of them.
fn count(event: &mut Builder<'_>, threads: &[i32]) -> Option<Vec<Counter>> {
    let is_one = threads == [THIS_THREAD];
    let mut counters = Vec::with_capacity(threads.len());
    for thread in threads {
        // What a worker starts is another worker.
        match event
            .observe_pid(*thread)
            .any_cpu()
            .inherit(!is_one)
            .enabled(true)
            .build()
        {
            Ok(counter) => counters.push(counter),
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
            Err(_) => return None,
        }
    }
    Some(counters)
}

/// Returns the sum; `None` if one cannot be read, or was not counted all the time: the machine has fewer counters than
/// are asked of it.
fn sum(counters: Option<&mut [Counter]>) -> Option<u64> {
    let read = counters?.iter_mut().map(|counter| {
        let read = counter.read_full().ok()?;
        (read.time_enabled() == read.time_running()).then(|| read.count())
    });
    read.sum()
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        thread,
    };

    use super::*;

    /// Counts, as far as this machine and user have them.
    fn gained(events: &mut PerfEvents, work: impl FnOnce()) -> PerfCounts {
        let before = events.read();
        work();
        let after = events.read();
        let gained = |of: fn(&PerfCounts) -> Option<u64>| Some(of(&after)? - of(&before)?);
        PerfCounts {
            instructions: gained(|own| own.instructions),
            system_calls: gained(|own| own.system_calls),
        }
    }

    fn call(times: u64) {
        for _ in 0..times {
            nix::unistd::getppid();
        }
    }

    #[test]
    fn a_thread_s_own_system_calls_are_counted() {
        let mut events = PerfEvents::of_this_thread();
        let own = gained(&mut events, || call(1000));
        // Reading is a system call or two.
        assert!(
            own.system_calls
                .is_none_or(|calls| (1000..1010).contains(&calls)),
            "{own:?}"
        );
        assert!(
            own.instructions.is_none_or(|count| count >= 1000),
            "{own:?}"
        );
        let others = gained(&mut events, || {
            thread::spawn(|| call(1000)).join().unwrap();
        });
        assert!(
            others.system_calls.is_none_or(|calls| calls < 500),
            "{others:?}"
        );
    }

    #[test]
    fn a_process_s_events_are_those_of_all_its_threads_and_of_later_ones() {
        let pid = std::process::id();
        let mut events = PerfEvents::of_process(pid).unwrap();
        let own = gained(&mut events, || {
            thread::spawn(|| call(1000)).join().unwrap();
        });
        assert!(
            own.system_calls.is_none_or(|calls| calls >= 1000),
            "{own:?}"
        );
        assert!(PerfEvents::of_process(u32::MAX / 4).is_none());
    }

    #[test]
    fn a_thread_that_has_ended_does_not_hide_the_others() {
        let mut gone = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
        let pid = gone.id().cast_signed();
        gone.wait().unwrap();
        let mut events = PerfEvents::of(&[pid, nix::unistd::gettid().as_raw()]);
        let alone = PerfEvents::of_this_thread().read();
        assert_eq!(events.read().is_unknown(), alone.is_unknown());
    }
}
