//! CPU cores and thread pinning.

use std::fs;

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

/// Returns the cores that this process may run on.
pub fn own() -> Vec<usize> {
    of_process(0)
}

/// Returns the cores that the first thread of a process may run on, and so those that it starts, unless it
/// pins them; none if that is not known.
pub fn of_process(pid: u32) -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(pid.cast_signed())).unwrap_or_default();
    (0..CpuSet::count())
        .filter(|&core| set.is_set(core).unwrap_or(false))
        .collect()
}

/// Returns the core that the calling thread runs on now.
pub fn current() -> Option<usize> {
    sched_getcpu().ok()
}

/// Pins the calling thread to one core. If the system refuses, the thread stays unpinned.
pub fn pin(core: usize) {
    confine(&[core]);
}

/// Confines the calling thread, and those that it starts later, to these cores. If the system
/// refuses, it may run where it did.
pub fn confine(cores: &[usize]) {
    let mut set = CpuSet::new();
    if cores.iter().all(|core| set.set(*core).is_ok()) {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Returns these CPUs by core: the threads of one core (SMT siblings) are together.
pub fn by_core(cpus: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &cpu in cpus {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = fs::read_to_string(path).ok();
        let siblings = siblings
            .and_then(|list| parse(list.trim()))
            .unwrap_or_default();
        let has_sibling =
            |group: &&mut Vec<usize>| group.iter().any(|other| siblings.contains(other));
        match groups.iter_mut().find(has_sibling) {
            Some(group) => group.push(cpu),
            None => groups.push(vec![cpu]),
        }
    }
    groups
}

/// Reads a list of CPUs as the kernel writes it: `0-3,8`. `None` if it is not one.
pub fn parse(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high >= CpuSet::count() {
            return None;
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse("8,0,0-1"), Some(vec![0, 1, 8]));
        for wrong in ["", "a", "2-1", "1-", "99999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_cpu_is_of_one_core() {
        let own = own();
        let mut all = by_core(&own).concat();
        all.sort_unstable();
        assert_eq!(all, own);
    }
}
