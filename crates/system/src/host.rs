//! The identity and the limits of the running machine.

use std::fs;

/// Returns the id that the kernel drew when it booted: the same for every process of a machine, in
/// any container or network namespace.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Returns the limit on connections that wait to be accepted (`net.core.somaxconn`).
pub fn somaxconn() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    text.trim().parse().ok()
}
