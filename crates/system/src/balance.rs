//! The CPU time of CPUs and of every process, to tell who had it.

use std::{collections::BTreeMap, fs, time::Duration};

use nix::{
    time::{ClockId, clock_getcpuclockid, clock_gettime},
    unistd::Pid,
};
use procfs::{CpuTime, CurrentSI, KernelStats, process::Process};

/// A process counts as a thread of the kernel by this flag (`PF_KTHREAD` in `include/linux/sched.h`).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// The CPU time of each CPU and of each process at one moment. Times of CPUs have the clock's ticks of
/// 10 ms, those of processes nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct CpuReading {
    /// The moment, on a clock that never steps.
    at: Duration,
    cpus: Vec<CpuTicks>,
    processes: BTreeMap<u32, Duration>,
}

/// The times of one CPU, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Idle, with disks that are waited for.
    pub idle: Duration,
    /// Given to other machines by the hypervisor.
    pub steal: Duration,
    /// In interrupts, hard and soft.
    pub interrupts: Duration,
}

/// The CPU time of processes that belong to nobody's side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherUse {
    /// All of it.
    pub time: Duration,
    /// The name and the CPU time of the one that had the most.
    pub busiest: Option<(String, Duration)>,
}

impl CpuReading {
    /// Reads the times: of the CPUs as `/proc/stat` has them, and of each process that this user can
    /// see by its CPU clock, which needs no file of it.
    pub fn read() -> Self {
        Self {
            processes: pids()
                .filter_map(|pid| Some((pid, time_of(pid)?)))
                .collect(),
            ..Self::read_cpus()
        }
    }

    /// Reads the times of the CPUs alone.
    pub fn read_cpus() -> Self {
        let stats = KernelStats::current().ok();
        let cpus = stats.map(|stats| stats.cpu_time.iter().map(CpuTicks::of).collect());
        Self {
            at: now(),
            cpus: cpus.unwrap_or_default(),
            processes: BTreeMap::new(),
        }
    }

    /// Returns true if the kernel shows the times of CPUs.
    pub fn has_cpus(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Returns the time from this reading to a `later` one.
    pub fn elapsed_until(&self, later: &Self) -> Duration {
        later.at.saturating_sub(self.at)
    }

    /// Returns the times of these CPUs from this reading to a `later` one.
    pub fn ticks_until(&self, later: &Self, cpus: &[usize]) -> CpuTicks {
        let ends = cpus
            .iter()
            .filter_map(|cpu| Some((*cpu, later.cpus.get(*cpu)?)));
        ends.fold(CpuTicks::default(), |sum, (cpu, end)| {
            let start = self.cpus.get(cpu).copied().unwrap_or_default();
            CpuTicks {
                idle: sum.idle + end.idle.saturating_sub(start.idle),
                steal: sum.steal + end.steal.saturating_sub(start.steal),
                interrupts: sum.interrupts + end.interrupts.saturating_sub(start.interrupts),
            }
        })
    }

    /// Returns the CPU time that a process used from this reading to a `later` one; `None` if it has
    /// ended. One that has started since used all of its time.
    pub fn process_until(&self, later: &Self, pid: u32) -> Option<Duration> {
        let end = *later.processes.get(&pid)?;
        // The number may have gone to another process.
        let start = self.processes.get(&pid).filter(|start| **start <= end);
        Some(end.saturating_sub(start.copied().unwrap_or_default()))
    }

    /// Returns the CPU time that processes used on these CPUs from this reading to a `later` one, but
    /// for those that are `own` and the kernel's. A process is taken to be where it was last seen.
    pub fn others_until(
        &self,
        later: &Self,
        cpus: &[usize],
        own: impl Fn(u32) -> bool,
    ) -> OtherUse {
        let is_everywhere = (0..later.cpus.len()).all(|cpu| cpus.contains(&cpu));
        let mut others = OtherUse::default();
        for pid in later.processes.keys().copied().filter(|pid| !own(*pid)) {
            let time = self.process_until(later, pid).unwrap_or_default();
            if time.is_zero() {
                continue;
            }
            // One that has ended meanwhile has no name any more, and no place.
            let Some(stat) = stat_of(pid).filter(|stat| stat.flags & KERNEL_THREAD == 0) else {
                continue;
            };
            let last = stat.processor.and_then(|cpu| usize::try_from(cpu).ok());
            if !is_everywhere && !last.is_some_and(|cpu| cpus.contains(&cpu)) {
                continue;
            }
            others.time += time;
            if others.busiest.as_ref().is_none_or(|(_, most)| time > *most) {
                others.busiest = Some((stat.comm, time));
            }
        }
        others
    }
}

impl CpuTicks {
    fn of(times: &CpuTime) -> Self {
        let [waiting, steal, hard, soft] = [
            times.iowait_duration(),
            times.steal_duration(),
            times.irq_duration(),
            times.softirq_duration(),
        ]
        .map(Option::unwrap_or_default);
        Self {
            idle: times.idle_duration() + waiting,
            steal,
            interrupts: hard + soft,
        }
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(Duration::from)
        .unwrap_or_default()
}

/// Returns the numbers of all processes that can be seen.
fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the CPU time that all threads of a process have used (`clock_getcpuclockid(3)`).
fn time_of(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).ok()?;
    Some(clock_gettime(clock).ok()?.into())
}

fn stat_of(pid: u32) -> Option<procfs::process::Stat> {
    Process::new(pid.cast_signed()).ok()?.stat().ok()
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;
    use crate::cpu;

    fn reading(at: u64, idle: [u64; 2], processes: &[(u32, u64)]) -> CpuReading {
        let milliseconds = Duration::from_millis;
        let cpu = |idle| CpuTicks {
            idle: milliseconds(idle),
            ..CpuTicks::default()
        };
        CpuReading {
            at: milliseconds(at),
            cpus: idle.map(cpu).to_vec(),
            processes: processes
                .iter()
                .map(|(pid, time)| (*pid, milliseconds(*time)))
                .collect(),
        }
    }

    #[test]
    fn times_are_those_between_two_readings_on_these_cpus() {
        let start = reading(10, [100, 200], &[(1, 5), (2, 7)]);
        let end = reading(110, [140, 290], &[(1, 25), (3, 4)]);
        let milliseconds = Duration::from_millis;
        assert_eq!(start.elapsed_until(&end), milliseconds(100));
        let idle = |cpus: &[usize]| start.ticks_until(&end, cpus).idle;
        assert_eq!(idle(&[1]), milliseconds(90));
        assert_eq!(idle(&[0, 1, 7]), milliseconds(130));
        let used = |pid| start.process_until(&end, pid);
        assert_eq!(used(1), Some(milliseconds(20)));
        // It started meanwhile; the other has ended.
        assert_eq!(used(3), Some(milliseconds(4)));
        assert_eq!(used(2), None);
    }

    #[test]
    fn a_program_that_is_not_ones_own_is_found_and_named() {
        let start = CpuReading::read();
        while cpu::thread_time() < Duration::from_millis(30) {}
        let end = CpuReading::read();
        let own = start.process_until(&end, process::id()).unwrap();
        assert!(own > Duration::ZERO);
        let cpus: Vec<usize> = (0..end.cpus.len()).collect();
        let alone = |pid| pid != process::id();
        let found = start.others_until(&end, &cpus, alone);
        assert_eq!(found.time, own);
        let (_, most) = found.busiest.unwrap();
        assert_eq!(most, own);
        assert_eq!(
            start.others_until(&end, &cpus, |_| true),
            OtherUse::default()
        );
        assert_eq!(start.others_until(&end, &[], alone), OtherUse::default());
    }
}
