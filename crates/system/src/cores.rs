//! CPU cores and thread pinning.

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

/// Returns the cores that this process may run on.
pub fn own() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
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
