//! The CPU time of CPUs and of every process, to tell who had it.

use std::{collections::BTreeMap, time::Duration};

use nix::{
    time::{ClockId, clock_getcpuclockid, clock_gettime},
    unistd::Pid,
};

use crate::proc::{self, Stat};

/// A process counts as a thread of the kernel by this flag (`PF_KTHREAD` in `include/linux/sched.h`).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Times between two readings that are shorter are of a few ticks, and not checked.
const SHORT: Duration = Duration::from_millis(100);

/// The CPU time of each CPU and of each process at one moment. Times of CPUs have the clock's ticks of
/// 10 ms, those of processes nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct CpuReading {
    /// The moment, on a clock that never steps.
    at: Duration,
    /// By their numbers. Those that are offline, or hidden from a container, have none.
    cpus: BTreeMap<usize, CpuTicks>,
    processes: BTreeMap<u32, Duration>,
    /// The time for which any thread of the machine waited for a CPU; `None` where the kernel does not count it.
    pressure: Option<Duration>,
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
    /// All of it.
    pub total: Duration,
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
            processes: proc::pids()
                .filter_map(|pid| Some((pid, time_of(pid)?)))
                .collect(),
            pressure: pressure(),
            ..Self::read_cpus()
        }
    }

    /// Reads the times of the CPUs alone.
    pub fn read_cpus() -> Self {
        let stats = proc::read("/proc/stat").unwrap_or_default();
        Self {
            at: now(),
            cpus: stats.lines().filter_map(CpuTicks::parse).collect(),
            ..Self::default()
        }
    }

    /// Returns the time from the machine's start to this reading.
    pub fn uptime(&self) -> Duration {
        self.at
    }

    /// Returns the times of these CPUs since the machine's start; `None` where the kernel does not show those
    /// of one of them.
    pub fn ticks(&self, cpus: &[usize]) -> Option<CpuTicks> {
        let mut sum = CpuTicks::default();
        for cpu in cpus {
            let own = self.cpus.get(cpu)?;
            sum.idle += own.idle;
            sum.steal += own.steal;
            sum.interrupts += own.interrupts;
            sum.total += own.total;
        }
        Some(sum)
    }

    /// Returns the time from this reading to a `later` one.
    pub fn elapsed_until(&self, later: &Self) -> Duration {
        later.at.saturating_sub(self.at)
    }

    /// Returns the time from this reading to a `later` one for which any thread of the machine waited for a CPU;
    /// `None` where the kernel does not count it.
    pub fn pressure_until(&self, later: &Self) -> Option<Duration> {
        Some(later.pressure?.saturating_sub(self.pressure?))
    }

    /// Returns the times of these CPUs from this reading to a `later` one; `None` where the kernel does not
    /// show those of one of them, or shows times that are no clock's.
    pub fn ticks_until(&self, later: &Self, cpus: &[usize]) -> Option<CpuTicks> {
        let (start, end) = (self.ticks(cpus)?, later.ticks(cpus)?);
        let ticks = CpuTicks {
            idle: end.idle.saturating_sub(start.idle),
            steal: end.steal.saturating_sub(start.steal),
            interrupts: end.interrupts.saturating_sub(start.interrupts),
            total: end.total.saturating_sub(start.total),
        };
        let there_was = self.elapsed_until(later) * u32::try_from(cpus.len()).ok()?;
        // Ticks are rounded; a kernel that counts none at all, as some sandboxes do, is far off.
        (ticks.total >= there_was / 2 || there_was < SHORT).then_some(ticks)
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
        let is_everywhere = later.cpus.keys().all(|cpu| cpus.contains(cpu));
        let mut others = OtherUse::default();
        for pid in later.processes.keys().copied().filter(|pid| !own(*pid)) {
            let time = self.process_until(later, pid).unwrap_or_default();
            if time.is_zero() {
                continue;
            }
            // One that has ended meanwhile has no name any more, and no place.
            let stat = Stat::read(&proc::process(pid));
            let Some(stat) = stat.filter(|stat| stat.flags & KERNEL_THREAD == 0) else {
                continue;
            };
            if !is_everywhere && !stat.cpu.is_some_and(|cpu| cpus.contains(&cpu)) {
                continue;
            }
            others.time += time;
            if others.busiest.as_ref().is_none_or(|(_, most)| time > *most) {
                others.busiest = Some((stat.name, time));
            }
        }
        others
    }
}

impl CpuTicks {
    /// Reads a line of `/proc/stat`; `None` of one that has no CPU, and of the sum of all CPUs.
    fn parse(line: &str) -> Option<(usize, Self)> {
        let (number, times) = proc::cpu_times(line)?;
        let number = number.parse().ok()?;
        let at = |field: usize| times.get(field).copied().unwrap_or_default();
        Some((
            number,
            Self {
                idle: at(3) + at(4),
                steal: at(7),
                interrupts: at(5) + at(6),
                // The time of guests is in that of users.
                total: times.iter().take(8).sum(),
            },
        ))
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(Duration::from)
        .unwrap_or_default()
}

/// Returns the pressure stall information of the CPUs (`Documentation/accounting/psi.rst` of Linux), since it was
/// turned on.
fn pressure() -> Option<Duration> {
    parse_pressure(&proc::read("/proc/pressure/cpu")?)
}

/// Reads the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, in microseconds. Before Linux 5.13 it is the only one.
fn parse_pressure(text: &str) -> Option<Duration> {
    let total = text
        .lines()
        .next()?
        .strip_prefix("some ")?
        .rsplit_once("total=")?
        .1;
    Some(Duration::from_micros(total.parse().ok()?))
}

/// Returns the CPU time that all threads of a process have used (`clock_getcpuclockid(3)`).
fn time_of(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).ok()?;
    Some(clock_gettime(clock).ok()?.into())
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
            total: milliseconds(at),
            ..CpuTicks::default()
        };
        CpuReading {
            at: milliseconds(at),
            cpus: idle.map(cpu).into_iter().enumerate().collect(),
            processes: processes
                .iter()
                .map(|(pid, time)| (*pid, milliseconds(*time)))
                .collect(),
            pressure: Some(milliseconds(at / 10)),
        }
    }

    #[test]
    fn times_are_those_between_two_readings_on_these_cpus() {
        let start = reading(10, [100, 200], &[(1, 5), (2, 7)]);
        let end = reading(110, [140, 290], &[(1, 25), (3, 4)]);
        let milliseconds = Duration::from_millis;
        assert_eq!(start.elapsed_until(&end), milliseconds(100));
        let idle = |cpus: &[usize]| start.ticks_until(&end, cpus).map(|ticks| ticks.idle);
        assert_eq!(idle(&[1]), Some(milliseconds(90)));
        assert_eq!(idle(&[0, 1]), Some(milliseconds(130)));
        // Nothing is known of one that is offline.
        assert_eq!(idle(&[0, 1, 7]), None);
        // Times that stand still are no times.
        let stopped = CpuReading {
            at: milliseconds(110),
            ..reading(10, [100, 200], &[])
        };
        assert_eq!(
            reading(10, [100, 200], &[]).ticks_until(&stopped, &[0]),
            None
        );
        assert_eq!(start.pressure_until(&end), Some(milliseconds(10)));
        assert_eq!(CpuReading::default().pressure_until(&end), None);
        let used = |pid| start.process_until(&end, pid);
        assert_eq!(used(1), Some(milliseconds(20)));
        // It started meanwhile; the other has ended.
        assert_eq!(used(3), Some(milliseconds(4)));
        assert_eq!(used(2), None);
    }

    #[test]
    fn cpus_have_the_numbers_of_their_lines() {
        let stat = "cpu  10 0 10 80 0 1 2 3 0 0\n\
                    cpu5 100 7 50 800 20 5 6 9 40 0\n\
                    cpu11 1 0 0 9 0 0 0 0 0 0\n\
                    intr 5\nctxt 9\n";
        let cpus: Vec<_> = stat.lines().filter_map(CpuTicks::parse).collect();
        let ticks = |count: u64| Duration::from_millis(count * 1000 / proc::ticks_per_second());
        assert_eq!(
            cpus.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(),
            [5, 11]
        );
        let expected = CpuTicks {
            idle: ticks(820),
            steal: ticks(9),
            interrupts: ticks(11),
            total: ticks(997),
        };
        assert_eq!(cpus[0].1, expected);
    }

    #[test]
    fn pressure_is_that_of_some_threads() {
        let some = "some avg10=0.03 avg60=1.30 avg300=0.65 total=2763427\n";
        let all = format!("{some}full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
        let read = Duration::from_micros(2_763_427);
        assert_eq!([some, &all].map(parse_pressure), [Some(read); 2]);
        assert_eq!(parse_pressure("full avg10=0.00 total=7\n"), None);
    }

    #[test]
    fn a_program_that_is_not_ones_own_is_found_and_named() {
        let start = CpuReading::read();
        while cpu::thread_time() < Duration::from_millis(30) {}
        let end = CpuReading::read();
        let own = start.process_until(&end, process::id()).unwrap();
        assert!(own > Duration::ZERO);
        let cpus: Vec<usize> = end.cpus.keys().copied().collect();
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
