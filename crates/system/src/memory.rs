//! The memory of this process, and what it may use.

use nix::sys::prctl;

use crate::{cgroup, proc};

/// Has this process use no huge pages (2 MiB), for which an allocator may ask. The system clears a whole page before the
/// thread that touches it first goes on, and so a single request may pay for the memory of hundreds.
pub fn refuse_huge_pages() {
    // It is a wish: a system that does not know it has no such pages, or has them everywhere.
    let _ = prctl::set_thp_disable(true);
}

/// Returns the most memory that this process has held (its largest resident set), in bytes.
pub fn peak() -> Option<u64> {
    peak_of(&proc::read(proc::own().join("status"))?)
}

fn peak_of(status: &str) -> Option<u64> {
    proc::bytes(proc::value(status, "VmHWM")?)
}

/// Returns the memory of the machine, or what this process's cgroup and those above it may use of it, in bytes.
pub fn available() -> Option<u64> {
    let memory = proc::read("/proc/meminfo")?;
    let limits = cgroup::read("memory", &["memory.max", "memory.limit_in_bytes"]);
    available_of(&memory, limits.iter().map(String::as_str))
}

fn available_of<'a>(memory: &str, limits: impl IntoIterator<Item = &'a str>) -> Option<u64> {
    let machine = proc::bytes(proc::value(memory, "MemTotal")?)?;
    // Version 2 writes "max" where there is no limit, and version 1 a very large number.
    let limits = limits
        .into_iter()
        .filter_map(|text| text.trim().parse().ok());
    Some(limits.fold(machine, u64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_resident_bytes;

    #[test]
    fn huge_pages_are_refused() {
        refuse_huge_pages();
        assert_eq!(prctl::get_thp_disable(), Ok(true));
    }

    #[test]
    fn this_process_holds_memory_and_no_more_than_there_is() {
        let held = own_resident_bytes().unwrap();
        let (peak, available) = (peak().unwrap(), available().unwrap());
        assert!(0 < held && held < available, "{held} {available}");
        assert!(0 < peak && peak < available, "{peak} {available}");
        let status = "VmPeak:\t    3060 kB\nVmHWM:\t    1692 kB\nVmRSS:\t    1600 kB\n";
        assert_eq!(peak_of(status), Some(1692 * 1024));
    }

    #[test]
    fn a_limit_below_the_memory_of_the_machine_counts() {
        let memory = "MemTotal:       24684084 kB\nMemFree:         2072064 kB\n";
        let machine = Some(24_684_084 * 1024);
        assert_eq!(available_of(memory, []), machine);
        assert_eq!(available_of(memory, ["max\n"]), machine);
        assert_eq!(available_of(memory, ["9223372036854771712\n"]), machine);
        assert_eq!(available_of(memory, ["1000000\n"]), Some(1_000_000));
        for limits in [
            ["max\n", "7000\n"],
            ["7000\n", "8000\n"],
            ["8000\n", "7000\n"],
        ] {
            assert_eq!(available_of(memory, limits), Some(7000));
        }
        assert_eq!(available_of("MemFree: 1 kB\n", ["5"]), None);
    }
}
