//! The memory of this process, and what it may use.

use procfs::{Current, Meminfo, process::Process};

use crate::cgroup;

/// Returns the most memory that this process has held (its largest resident set), in bytes.
pub fn peak() -> Option<u64> {
    let kibibytes = Process::myself().ok()?.status().ok()?.vmhwm?;
    Some(kibibytes * 1024)
}

/// Returns the memory of the machine, or what this process's cgroup may use of it, in bytes.
pub fn available() -> Option<u64> {
    let machine = Meminfo::current().ok()?.mem_total;
    let limit = cgroup::read("memory", &["memory.max", "memory.limit_in_bytes"]);
    // Version 2 writes "max" where there is no limit, and version 1 a very large number.
    let limit = limit.and_then(|text| text.trim().parse().ok());
    Some(machine.min(limit.unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_resident_bytes;

    #[test]
    fn this_process_holds_memory_and_no_more_than_there_is() {
        let held = own_resident_bytes().unwrap();
        let (peak, available) = (peak().unwrap(), available().unwrap());
        assert!(0 < held && held < available, "{held} {available}");
        assert!(0 < peak && peak < available, "{peak} {available}");
    }
}
