//! Counters of the whole machine that explain slow requests: CPU time withheld, packets sent again
//! or dropped.

use std::time::Duration;

use crate::{cgroup, proc};

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
        let text = |file| proc::read(file).unwrap_or_default();
        Self {
            throttled: throttled(),
            ..Self::parse(
                &text("/proc/stat"),
                &text("/proc/net/snmp"),
                &text("/proc/net/netstat"),
            )
        }
    }

    fn parse(stat: &str, snmp: &str, netstat: &str) -> Self {
        // The first line is the sum of the CPUs that follow.
        let lines = stat.lines().take_while(|line| line.starts_with("cpu"));
        let cpus: Option<Vec<_>> = lines.map(proc::cpu_times).collect();
        let cpus = cpus.unwrap_or_default();
        let sum = cpus.first().map(|(_, times)| times);
        Self {
            cores: sum.map(|_| cpus.len() as u64 - 1),
            softirq: sum.and_then(|times| times.get(6).copied()),
            steal: sum.and_then(|times| times.get(7).copied()),
            throttled: None,
            tcp_retransmits: counter(snmp, "Tcp:", "RetransSegs"),
            listen_drops: counter(netstat, "TcpExt:", "ListenDrops"),
            udp_drops: counter(snmp, "Udp:", "RcvbufErrors"),
        }
    }
}

/// Returns the time for which this process's cgroup and those above it were throttled.
fn throttled() -> Option<Duration> {
    let texts = cgroup::read("cpu", &["cpu.stat"]);
    let all = texts.iter().filter_map(|text| throttled_of(text));
    all.reduce(|one, other| one + other)
}

/// Returns the time for which a cgroup was throttled by its own limit, which one at the root does not have.
fn throttled_of(text: &str) -> Option<Duration> {
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    let microseconds = value("throttled_usec ").map(Duration::from_micros);
    microseconds.or_else(|| value("throttled_time ").map(Duration::from_nanos))
}

/// Returns a counter of a section of `/proc/net/snmp` or `/proc/net/netstat`, whose lines come in pairs of names
/// and values.
fn counter(text: &str, section: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(section));
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
        let cores = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let cores = cores.lines().filter(|line| line.starts_with("processor"));
        assert_eq!(counters.cores, Some(cores.count() as u64));
    }

    #[test]
    fn a_cgroup_tells_how_long_it_was_throttled() {
        let time = |text| throttled_of(text).map(|time| time.as_nanos());
        assert_eq!(
            time("usage_usec 9\nnr_throttled 2\nthrottled_usec 7\n"),
            Some(7000)
        );
        assert_eq!(time("nr_periods 3\nthrottled_time 7\n"), Some(7));
        assert_eq!(time("usage_usec 9\n"), None);
    }

    #[test]
    fn a_counter_has_the_place_of_its_name() {
        let snmp = "Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 260609661 4711\n\
                    Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 5 6 7\n\
                    UdpLite: InDatagrams RcvbufErrors\nUdpLite: 8 9\n";
        let netstat = "MPTcpExt: ListenDrops\nMPTcpExt: 1\n\
                       TcpExt: ListenOverflows ListenDrops\nTcpExt: 2 3\n";
        let expected = HostCounters {
            tcp_retransmits: Some(4711),
            listen_drops: Some(3),
            udp_drops: Some(6),
            ..HostCounters::default()
        };
        assert_eq!(HostCounters::parse("", snmp, netstat), expected);
        assert_eq!(counter(snmp, "Tcp:", "MaxConn"), None);
        assert_eq!(counter(snmp, "Tcp:", "RcvbufErrors"), None);
        for end in 0..snmp.find(" 4711").unwrap() {
            assert_eq!(counter(&snmp[..end], "Tcp:", "RetransSegs"), None, "{end}");
        }
    }

    #[test]
    fn the_times_of_the_machine_are_those_of_the_sum() {
        let read = |stat| {
            let read = HostCounters::parse(stat, "", "");
            (read.cores, read.softirq, read.steal)
        };
        let ticks = |count: u64| {
            Some(Duration::from_millis(
                count * 1000 / proc::ticks_per_second(),
            ))
        };
        let stat = "cpu  10 0 10 80 4 1 300 700 0 0\ncpu0 5 0 5 40 2 1 150 350 0 0\n\
                    cpu3 5 0 5 40 2 0 150 350 0 0\nintr 5 6\ncpu9 1 2\n";
        assert_eq!(read(stat), (Some(2), ticks(300), ticks(700)));
        // Linux before 2.6.11 knows no steal.
        let old = "cpu  10 0 10 80 4 1 300\ncpu0 10 0 10 80 4 1 300\n";
        assert_eq!(read(old), (Some(1), ticks(300), None));
        for wrong in ["", "intr 5\n", "cpu  10 0\ncpu0 x\n"] {
            assert_eq!(read(wrong), (None, None, None), "{wrong}");
        }
    }
}
