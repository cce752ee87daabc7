//! A server's counters, read over HTTP from its metrics or from the system.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use netping_measure::cost::{HostEvents, ServerDemand};
use netping_protocol::{scheme::port, target::Target};
use netping_system::process::{ProcError, Usage};
use ureq::Timeout;

use super::http_agent::http_agent;

/// Time limit of one reading over HTTP.
pub const TIMEOUT: Duration = Duration::from_secs(1);

/// Limit on the bytes of metrics that are read.
const LONGEST: u64 = 4 << 20;

/// The source of a server's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSource {
    /// Unknown.
    Nowhere,
    /// In Prometheus' text format at this URL.
    Url {
        /// The URL.
        url: String,
        /// The user named it; otherwise it is a guess: only netping's own counters are believed,
        /// and their absence is not reported.
        asked: bool,
    },
    /// The system's accounts of these processes of this host, and of all that they have started.
    Processes(Vec<u32>),
}

impl ServerSource {
    /// Returns the default address of netping's servers: their host, with the port
    /// [`port::METRICS_OFFSET`] higher. Web servers are not netping's.
    pub fn default_of(target: &Target) -> Self {
        if target.scheme.is_http() {
            return Self::Nowhere;
        }
        Self::default_of_relay(target)
    }

    /// Returns the default address of netping-proxy, which relays any protocol.
    pub fn default_of_relay(target: &Target) -> Self {
        let Some(port) = target.port.checked_add(port::METRICS_OFFSET) else {
            return Self::Nowhere;
        };
        let url = format!("http://{}:{port}/metrics", target.host);
        Self::Url { url, asked: false }
    }
}

/// Reads one server's counters.
#[derive(Debug)]
pub struct Probe {
    source: ServerSource,
    agent: ureq::Agent,
}

/// A server's counters at one time, by their Prometheus names.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading(BTreeMap<String, f64>);

const CPU: &str = "process_cpu_seconds_total";
const MEMORY: &str = "process_resident_memory_bytes";
const VOLUNTARY: &str = "process_context_switches_total{kind=\"voluntary\"}";
const INVOLUNTARY: &str = "process_context_switches_total{kind=\"involuntary\"}";
const REQUESTS: &str = "netping_requests_total";
const START: &str = "process_start_time_seconds";
/// Start times of one process may differ by this many seconds: they are counted from the machine's
/// boot, whose own time follows the clock.
const SAME_START: f64 = 1.5;

const BOOT: &str = "netping_boot_info{boot_id=\"";

const BUILD: &str = "netping_build_info{version=\"";

impl Probe {
    /// Returns a probe of `source`.
    pub fn new(source: ServerSource) -> Self {
        // Proxies set in the environment are meant for other traffic.
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            // Shorter, so that a timeout tells whether anybody listens.
            .timeout_connect(Some(TIMEOUT / 2))
            .proxy(None)
            .build();
        Self {
            source,
            agent: http_agent(config),
        }
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// A sentence with the reason why there are none; empty if none were to be expected.
    pub fn read(&self) -> Result<Reading, String> {
        let (url, asked) = match &self.source {
            ServerSource::Nowhere => return Err(String::new()),
            ServerSource::Processes(pids) => return Reading::of_processes(pids),
            ServerSource::Url { url, asked } => (url, *asked),
        };
        match self.get(url) {
            Ok(reading) if reading.0.contains_key(if asked { CPU } else { REQUESTS }) => {
                Ok(reading)
            }
            Ok(_) if asked => Err(format!(
                "no {CPU} at {url}: are these the server's Prometheus metrics?"
            )),
            Err(error) if asked => Err(format!(
                "cannot read the server's metrics at {url}: {error}"
            )),
            // Anybody may listen there.
            Err(ureq::Error::Timeout(Timeout::Global)) => Err(format!(
                "{url} accepts connections but does not answer; name the server's metrics or 'off' with --server-metrics"
            )),
            _ => Err(String::new()),
        }
    }

    fn get(&self, url: &str) -> Result<Reading, ureq::Error> {
        let mut response = self.agent.get(url).call()?;
        let body = response.body_mut().with_config().limit(LONGEST);
        Ok(Reading::parse(&body.read_to_string()?))
    }
}

impl Reading {
    /// Parses Prometheus' text format.
    fn parse(text: &str) -> Self {
        let sample = |line: &str| {
            // Labels may hold spaces.
            let at = line
                .rfind('}')
                .map_or_else(|| line.find(' '), |brace| Some(brace + 1))?;
            let value = line[at..].split_ascii_whitespace().next()?.parse().ok()?;
            (!line.starts_with('#')).then(|| (line[..at].to_owned(), value))
        };
        Self(text.lines().filter_map(sample).collect())
    }

    /// Reads the system's accounts of processes of this host and their descendants, each of them
    /// once. Memory that several share counts for each.
    fn of_processes(pids: &[u32]) -> Result<Self, String> {
        let (mut seen, mut counters) = (BTreeSet::new(), BTreeMap::new());
        let mut add = |pid: &u32| add_family(*pid, &mut seen, &mut counters);
        pids.iter().try_for_each(&mut add)?;
        Ok(Self(counters))
    }

    /// Returns the resources used between this reading and a `later` one, for the requests that the
    /// server counted itself, or else for `answered`. `None` if the CPU time is unknown.
    ///
    /// # Errors
    /// A text, if its CPU time went back.
    pub fn demand_until(
        &self,
        later: &Self,
        answered: u64,
    ) -> Result<Option<ServerDemand>, String> {
        let change = |name: &str| Some(later.0.get(name)? - self.0.get(name)?);
        let gained = |name: &str| change(name).filter(|gained| *gained >= 0.0);
        let Some(cpu_seconds) = change(CPU) else {
            return Ok(None);
        };
        if cpu_seconds < 0.0 {
            return Err(
                "its CPU time went back: it, or one of its processes, ended or was restarted meanwhile".to_owned()
            );
        }
        let count = |name: &str| gained(name).map(|gained| gained as u64);
        // A relay has the counter, and counts nothing.
        let counted = gained(REQUESTS).filter(|_| later.requests() > Some(0));
        let requests = counted.unwrap_or(answered as f64);
        let switches = gained(VOLUNTARY).zip(gained(INVOLUNTARY));
        let switches = switches.map(|(voluntary, involuntary)| voluntary + involuntary);
        let each = |sum: f64| (requests > 0.0).then(|| sum / requests);
        Ok(Some(ServerDemand {
            cpu_seconds,
            system_seconds: gained("process_cpu_system_seconds_total"),
            cpu_us_per_request: each(cpu_seconds * 1e6),
            context_switches_per_request: switches.and_then(each),
            resident_bytes: later.0.get(MEMORY).map(|&bytes| bytes as u64),
            cores: later.count("netping_cores"),
            host: HostEvents {
                cores: None,
                steal_seconds: gained("netping_host_steal_seconds_total"),
                softirq_seconds: gained("netping_host_softirq_seconds_total"),
                throttled_seconds: gained("netping_host_throttled_seconds_total"),
                tcp_retransmits: count("netping_host_tcp_retransmits_total"),
                listen_drops: count("netping_host_listen_drops_total"),
                udp_drops: count("netping_host_udp_drops_total"),
            },
        }))
    }

    /// Returns the boot id of the server's machine.
    pub fn boot_id(&self) -> Option<&str> {
        self.label(BOOT)
    }

    /// Returns the version of the server.
    pub fn version(&self) -> Option<&str> {
        self.label(BUILD)
    }

    /// Returns the value of the only label of a counter whose name begins so.
    fn label(&self, beginning: &str) -> Option<&str> {
        let mut names = self.0.keys();
        names.find_map(|name| name.strip_prefix(beginning)?.strip_suffix("\"}"))
    }

    /// Returns true if the server's process is not the one of a `later` reading.
    pub fn is_restarted_by(&self, later: &Self) -> bool {
        let started = self.0.get(START).zip(later.0.get(START));
        started.is_some_and(|(before, after)| (after - before).abs() > SAME_START)
    }

    /// Returns the server's limit on connections.
    pub fn max_connections(&self) -> Option<u64> {
        self.count("netping_max_connections")
    }

    /// Returns the kernel's limit on connections that wait to be accepted.
    pub fn somaxconn(&self) -> Option<u64> {
        self.count("netping_host_somaxconn")
    }

    /// Returns the number of requests that the server has answered.
    pub fn requests(&self) -> Option<u64> {
        self.count(REQUESTS)
    }

    /// Returns the number of connections that the server has accepted.
    pub fn connections_admitted(&self) -> Option<u64> {
        self.count("netping_connections_admitted_total")
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|&count| count as u64)
    }
}

/// Adds the system's accounts of a process and its descendants, except for those `seen` before.
fn add_family(
    pid: u32,
    seen: &mut BTreeSet<u32>,
    counters: &mut BTreeMap<String, f64>,
) -> Result<(), String> {
    if !seen.insert(pid) {
        return Ok(());
    }
    let failed = |error: ProcError| {
        format!(
            "cannot read the counters of process {pid}: {error}; is it running here, and yours?"
        )
    };
    let usage = Usage::of(pid).map_err(failed)?;
    let mut add = |name: &str, value: f64| *counters.entry(name.to_owned()).or_default() += value;
    add(CPU, usage.cpu_seconds);
    add(MEMORY, usage.resident_bytes as f64);
    add(VOLUNTARY, usage.context_switches.voluntary as f64);
    add(INVOLUNTARY, usage.context_switches.involuntary as f64);
    for child in usage.children {
        // A process that has ended meanwhile is missing too.
        let _ = add_family(child, seen, counters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn reading(cpu: f64, requests: u64, switches: u64) -> Reading {
        Reading::parse(&format!(
            "# HELP a b\nprocess_cpu_seconds_total {cpu} 12\nnetping_requests_total {requests}\n{VOLUNTARY} {switches}\n\
             {INVOLUNTARY} 0\nx{{a=\"b c\"}} 1\nprocess_resident_memory_bytes 4096\n"
        ))
    }

    #[test]
    fn service_demand_comes_from_two_readings() {
        let demand = reading(1.5, 100, 5)
            .demand_until(&reading(2.0, 100_100, 50_005), 7)
            .unwrap()
            .unwrap();
        assert_eq!(demand.cpu_us_per_request, Some(5.0));
        assert_eq!(demand.context_switches_per_request, Some(0.5));
        assert_eq!(demand.resident_bytes, Some(4096));
        let each = |requests: u64| {
            let demand = reading(1.0, requests, 0).demand_until(&reading(2.0, requests, 0), 8);
            demand.unwrap().unwrap().cpu_us_per_request
        };
        assert_eq!(each(100), None);
        // A relay counts no requests.
        assert_eq!(each(0), Some(125_000.0));
    }

    #[test]
    fn a_server_that_counts_no_requests_is_measured_by_the_clients_count() {
        let cpu = |seconds: f64| Reading::parse(&format!("process_cpu_seconds_total {seconds}\n"));
        let demand = cpu(1.0).demand_until(&cpu(2.0), 1000).unwrap().unwrap();
        assert_eq!(demand.cpu_us_per_request, Some(1000.0));
        assert_eq!(
            Reading::parse("<html>").demand_until(&cpu(2.0), 1),
            Ok(None)
        );
        // A restarted server has used less than before.
        assert!(
            cpu(2.0)
                .demand_until(&cpu(1.0), 1)
                .unwrap_err()
                .contains("restarted")
        );
    }

    #[test]
    fn a_server_that_started_at_another_time_was_restarted() {
        let started = |time: f64| Reading::parse(&format!("process_start_time_seconds {time}\n"));
        assert!(!started(100.0).is_restarted_by(&started(101.0)));
        assert!(started(100.0).is_restarted_by(&started(102.0)));
        assert!(!Reading::parse("").is_restarted_by(&started(102.0)));
    }

    #[test]
    fn only_netpings_servers_have_a_default_source() {
        let default = |url: &str| ServerSource::default_of(&url.parse().unwrap());
        let url = "http://h:9004/metrics".to_owned();
        assert_eq!(default("tcp://h"), ServerSource::Url { url, asked: false });
        assert_eq!(default("http://h/x"), ServerSource::Nowhere);
        assert_eq!(default("https://h"), ServerSource::Nowhere);
    }

    #[test]
    fn this_process_has_counters() {
        let read = || {
            Probe::new(ServerSource::Processes(vec![std::process::id()]))
                .read()
                .unwrap()
        };
        let own = read();
        assert!(own.0[CPU] > 0.0 && own.0[MEMORY] > 0.0);
        // The CPU time of a thread stays when it ends.
        let burn =
            || while netping_system::cpu::thread_time() < std::time::Duration::from_millis(50) {};
        std::thread::spawn(burn).join().unwrap();
        assert!(read().0[CPU] - own.0[CPU] > 0.03);
        let none = Probe::new(ServerSource::Processes(vec![u32::MAX / 4]))
            .read()
            .unwrap_err();
        assert!(none.contains("is it running here"), "{none}");
    }

    #[test]
    fn descendants_are_counted_with_their_process_and_once() {
        // `cat` waits until its standard input ends.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (mut seen, mut counters) = (BTreeSet::new(), BTreeMap::new());
        add_family(std::process::id(), &mut seen, &mut counters).unwrap();
        assert!(seen.contains(&child.id()));
        let before = counters.clone();
        add_family(child.id(), &mut seen, &mut counters).unwrap();
        assert_eq!(counters, before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
