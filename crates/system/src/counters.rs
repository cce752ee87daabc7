//! Counters of the whole machine that explain slow requests: CPU time withheld, packets sent again
//! or dropped.

use std::{fs, time::Duration};

use procfs::{CurrentSI, KernelStats};

use crate::cgroup;

/// Counters of the machine, of this process's cgroup and of its network namespace, since they
/// began; each `None` where the kernel does not show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Cores of the machine.
    pub cores: Option<u64>,
    /// CPU time that the hypervisor gave to others while a core of this machine wanted to run.
    pub steal: Option<Duration>,
    /// CPU time of soft interrupts, such as receiving packets, of which threads are not charged.
    pub softirq: Option<Duration>,
    /// Time for which the limit on this cgroup's CPU time stopped its threads, over all cores.
    pub throttled: Option<Duration>,
    /// TCP segments that were sent again.
    pub tcp_retransmits: Option<u64>,
    /// Incoming TCP connections that were dropped, because an accept queue was full or otherwise.
    pub listen_drops: Option<u64>,
    /// Datagrams that found a UDP receive buffer full.
    pub udp_drops: Option<u64>,
}

impl HostCounters {
    /// Reads the counters.
    pub fn read() -> Self {
        let snmp = procfs::net::snmp().ok();
        let stats = KernelStats::current().ok();
        Self {
            cores: stats.as_ref().map(|stats| stats.cpu_time.len() as u64),
            steal: stats
                .as_ref()
                .and_then(|stats| stats.total.steal_duration()),
            softirq: stats.and_then(|stats| stats.total.softirq_duration()),
            throttled: throttled(),
            tcp_retransmits: snmp.as_ref().map(|snmp| snmp.tcp_retrans_segs),
            listen_drops: netstat("ListenDrops"),
            udp_drops: snmp.map(|snmp| snmp.udp_rcvbuf_errors),
        }
    }
}

/// Returns the time for which this process's cgroup was throttled.
fn throttled() -> Option<Duration> {
    let text = cgroup::read("cpu", &["cpu.stat"])?;
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    let microseconds = value("throttled_usec ").map(Duration::from_micros);
    microseconds.or_else(|| value("throttled_time ").map(Duration::from_nanos))
}

/// Returns a counter of the section `TcpExt` of `/proc/net/netstat`, whose lines come in pairs of
/// names and values.
fn netstat(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/net/netstat").ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names
        .split_ascii_whitespace()
        .zip(values.split_ascii_whitespace());
    pairs.find_map(|(of, value)| (of == name).then(|| value.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_counters_of_this_machine_are_read() {
        let counters = HostCounters::read();
        assert!(counters.steal.is_some() && counters.softirq > Some(Duration::ZERO));
        assert!(counters.tcp_retransmits.is_some() && counters.udp_drops.is_some());
        assert!(counters.listen_drops.is_some());
        assert_eq!(netstat("NoSuchCounter"), None);
    }
}
