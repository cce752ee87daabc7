//! The identity of the running machine.

use std::fs;

/// Returns the id that the kernel drew when it booted: the same for every process of a machine, in
/// any container or network namespace.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}
