//! A server's counters, read over HTTP from its metrics or from the system.

use std::{collections::BTreeSet, io, time::Duration};

use netping_measure::cost::{
    Balance, HostEvents, RequestCounts, ServerDemand, ServerWorkers, SideUse,
};
use netping_protocol::{scheme::port, target::Target};
use netping_system::{host, perf_events::PerfEvents, process::Usage};
use ureq::Timeout;

use super::{
    counters::{
        CORES, CPU, Counters, INSTRUCTIONS, INVOLUNTARY, MEMORY, REQUESTS, RUN_DELAY, START,
        SYSTEM, SYSTEM_CALLS, USABLE_CPUS, VOLUNTARY, WORKERS, check, check_change, parse,
    },
    http_agent::http_agent,
};
use crate::clock::{Clock, Monotonic};

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
    clock: Monotonic,
    /// The events of its processes, if they are counted.
    events: Vec<PerfEvents>,
}

/// A server's counters at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading(Counters, Taken);

/// The limits of the moment at which counters were read: just before they were asked for, and just after
/// they had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    /// The times, in nanoseconds by the probe's clock.
    times: [u64; 2],
    /// The replies that the client had had.
    replies: [u64; 2],
}

#[cfg(any(test, feature = "simulation"))]
impl Reading {
    /// Returns the counters in a text that was read within an hour, while the client's count of replies
    /// was first one number and then the other.
    ///
    /// # Errors
    /// Those of [`Probe::read`].
    pub fn within_an_hour(text: &str, replies: [u64; 2]) -> Result<Self, String> {
        let counters = parse(text);
        check(&counters)?;
        let times = [0, 3_600_000_000_000];
        Ok(Self(counters, Taken { times, replies }))
    }
}

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
            clock: Monotonic::start(),
            events: Vec::new(),
        }
    }

    /// Counts the instructions and system calls of its processes too, from now on.
    #[must_use]
    pub fn counting_events(mut self) -> Self {
        if let ServerSource::Processes(pids) = &self.source {
            let mut family = Family::default();
            for pid in pids {
                // The first reading says why one cannot be read.
                let _ = family.add(*pid);
            }
            // A process that has ended meanwhile is missing.
            let all = family.seen.into_iter();
            let events = all.filter_map(PerfEvents::of_process);
            self.events = events.collect();
        }
        self
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// A sentence with the reason why there are none; empty if none were to be expected.
    pub fn read(&mut self) -> Result<Reading, String> {
        self.read_beside(|| 0)
    }

    /// Reads the counters, and the number of `replies` so far.
    ///
    /// # Errors
    /// Those of [`Probe::read`].
    pub fn read_beside(&mut self, replies: impl Fn() -> u64) -> Result<Reading, String> {
        let clock = self.clock;
        let look = || (clock.now(), replies());
        let (asked, before) = look();
        let mut counters = self.read_source()?;
        self.read_events(&mut counters);
        check(&counters)?;
        let (came, after) = look();
        let taken = Taken {
            times: [asked, came],
            replies: [before, after],
        };
        Ok(Reading(counters, taken))
    }

    fn read_source(&self) -> Result<Counters, String> {
        let (url, asked) = match &self.source {
            ServerSource::Nowhere => return Err(String::new()),
            ServerSource::Processes(pids) => return of_processes(pids),
            ServerSource::Url { url, asked } => (url, *asked),
        };
        match self.get(url) {
            Ok(counters) if counters.contains_key(if asked { CPU } else { REQUESTS }) => {
                Ok(counters)
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

    /// Adds the events that are known of all its processes.
    fn read_events(&mut self, counters: &mut Counters) {
        let counts: Vec<_> = self.events.iter_mut().map(PerfEvents::read).collect();
        let sums = [
            (
                INSTRUCTIONS,
                counts
                    .iter()
                    .map(|own| own.instructions)
                    .sum::<Option<u64>>(),
            ),
            (
                SYSTEM_CALLS,
                counts.iter().map(|own| own.system_calls).sum(),
            ),
        ];
        let known = sums
            .into_iter()
            .filter_map(|(name, sum)| Some((name.to_owned(), sum? as f64)));
        counters.extend(known.filter(|_| !counts.is_empty()));
    }

    fn get(&self, url: &str) -> Result<Counters, ureq::Error> {
        let fetch = || {
            let mut response = self.agent.get(url).call()?;
            let body = response.body_mut().with_config().limit(LONGEST);
            Ok(parse(&body.read_to_string()?))
        };
        match fetch() {
            // A connection that broke may not do so again. What comes after a timeout is of another time.
            Err(ureq::Error::Io(_)) => fetch(),
            answer => answer,
        }
    }
}

impl Reading {
    /// Returns the resources used between this reading and a `later` one, for the requests that the
    /// server counted itself, or else for `answered`. `None` if the CPU time is unknown.
    ///
    /// # Errors
    /// A sentence, if they are not those of one process, or are not believed.
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
        if self.is_restarted_by(later) {
            return Err("the server was restarted meanwhile".to_owned());
        }
        check_change(&self.0, &later.0, self.seconds_until(later))?;
        let count = |name: &str| gained(name).map(|gained| gained as u64);
        let requests = self.counted_until(later).unwrap_or(answered) as f64;
        let switches = gained(VOLUNTARY).zip(gained(INVOLUNTARY));
        let switches = switches.map(|(voluntary, involuntary)| voluntary + involuntary);
        let each = |sum: f64| (requests > 0.0).then(|| sum / requests);
        Ok(Some(ServerDemand {
            cpu_seconds,
            system_seconds: gained(SYSTEM),
            waited_seconds: gained(RUN_DELAY),
            cpu_us_per_request: each(cpu_seconds * 1e6),
            context_switches_per_request: switches.and_then(each),
            instructions_per_request: gained(INSTRUCTIONS).and_then(each),
            system_calls_per_request: gained(SYSTEM_CALLS).and_then(each),
            resident_bytes: later.0.get(MEMORY).map(|&bytes| bytes as u64),
            cores: later.count(CORES),
            workers: self.workers_until(later),
            host: HostEvents {
                cores: None,
                steal_seconds: gained("netping_host_steal_seconds_total"),
                softirq_seconds: gained("netping_host_softirq_seconds_total"),
                throttled_seconds: gained("netping_host_throttled_seconds_total"),
                tcp_retransmits: count("netping_host_tcp_retransmits_total"),
                listen_drops: count("netping_host_listen_drops_total"),
                udp_drops: count("netping_host_udp_drops_total"),
            },
            requests: None,
        }))
    }

    /// Returns the CPU time of the threads that serve between this reading and a `later` one; `None` unless the server has
    /// several, and tells.
    fn workers_until(&self, later: &Self) -> Option<ServerWorkers> {
        let workers = later.0.range(WORKERS.to_owned()..);
        let workers = workers.take_while(|(name, _)| name.starts_with(WORKERS));
        let gained = |(name, end): (&String, &f64)| Some(end - self.0.get(name)?);
        let spent: Vec<f64> = workers.map(gained).collect::<Option<_>>()?;
        let is_known = spent.len() > 1 && spent.iter().all(|gained| *gained >= 0.0);
        is_known.then(|| ServerWorkers {
            count: spent.len() as u64,
            busiest_seconds: spent.iter().copied().fold(0.0, f64::max),
            cpu_seconds: spent.iter().sum(),
        })
    }

    /// Returns the most time that can lie between this reading and a `later` one, in seconds.
    fn seconds_until(&self, later: &Self) -> f64 {
        let between = later.1.times[1].saturating_sub(self.1.times[0]);
        between as f64 / 1e9
    }

    /// Returns the requests that the server counted between this reading and a `later` one; `None` if it
    /// counts none.
    fn counted_until(&self, later: &Self) -> Option<u64> {
        // A relay has the counter, and counts nothing.
        let counted = later.requests().filter(|counted| *counted > 0)?;
        counted.checked_sub(self.requests()?)
    }

    /// Returns both sides' counts of the requests between this reading and a `later` one; `None` if the
    /// server counts none. So many requests were `unsure`: on their way at either reading, or failed.
    pub fn requests_until(&self, later: &Self, unsure: u64) -> Option<RequestCounts> {
        let ([start, begun], [end, ended]) = (self.1.replies, later.1.replies);
        // The server counted anywhere between its being asked and its answer: at half, give or take that.
        let while_reading = (begun - start) + (ended - end);
        Some(RequestCounts {
            server: self.counted_until(later)?,
            client: (end + ended).saturating_sub(start + begun) / 2,
            unsure: unsure + while_reading.div_ceil(2),
            has_other_clients: false,
        })
    }

    /// Returns the balance of the server's CPUs from this reading to a `later` one, on a host of which
    /// nothing else is known: who else had them is not among the server's counters.
    pub fn balance_until(&self, later: &Self) -> Option<Balance> {
        let gained = |name: &str| {
            let change = later.0.get(name)? - self.0.get(name)?;
            (change.is_finite() && change >= 0.0).then_some(change)
        };
        check_change(&self.0, &later.0, self.seconds_until(later)).ok()?;
        let total_seconds = gained("netping_cpus_time_seconds_total")?;
        let cpus = *self.0.get(USABLE_CPUS).filter(|cpus| **cpus >= 1.0)?;
        Some(Balance {
            window_seconds: total_seconds / cpus,
            total_seconds,
            server: Some(SideUse {
                cpu_seconds: gained(CPU)?,
                waited_seconds: gained(RUN_DELAY),
            }),
            interrupt_seconds: gained("netping_cpus_interrupt_seconds_total")?,
            steal_seconds: gained("netping_cpus_steal_seconds_total")?,
            idle_seconds: gained("netping_cpus_idle_seconds_total")?,
            windows: 1,
            ..Balance::default()
        })
    }

    /// Returns the boot id of the server's machine.
    pub fn boot_id(&self) -> Option<&str> {
        self.label(BOOT)
    }

    /// Returns true if the server's machine is this one.
    pub fn is_of_this_host(&self) -> bool {
        let boot_id = self.boot_id();
        boot_id.is_some() && boot_id == host::boot_id().as_deref()
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

/// Reads the system's accounts of processes of this host and their descendants, each of them once. Memory
/// that several share counts for each.
fn of_processes(pids: &[u32]) -> Result<Counters, String> {
    let mut all = Family::default();
    pids.iter().try_for_each(|pid| all.add(*pid))?;
    let mut counters = all.counters;
    if !all.cores.is_empty() {
        counters.insert(CORES.to_owned(), all.cores.len() as f64);
    }
    Ok(counters)
}

/// Processes and their descendants, each once.
#[derive(Default)]
struct Family {
    seen: BTreeSet<u32>,
    counters: Counters,
    /// The cores that any of them may run on.
    cores: BTreeSet<usize>,
}

impl Family {
    /// Adds the system's accounts of a process and its descendants, except for those seen before.
    fn add(&mut self, pid: u32) -> Result<(), String> {
        if !self.seen.insert(pid) {
            return Ok(());
        }
        let failed = |error: io::Error| {
            format!(
                "cannot read the counters of process {pid}: {error}; is it running here, and yours?"
            )
        };
        let usage = Usage::of(pid).map_err(failed)?;
        let mut add = |name: &str, value: f64| {
            *self.counters.entry(name.to_owned()).or_default() += value;
        };
        add(CPU, usage.cpu_seconds);
        add(MEMORY, usage.resident_bytes as f64);
        add(VOLUNTARY, usage.context_switches.voluntary as f64);
        add(INVOLUNTARY, usage.context_switches.involuntary as f64);
        self.cores.extend(usage.cores);
        for child in usage.children {
            // A process that has ended meanwhile is missing too.
            let _ = self.add(child);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        process::{Command, Stdio},
        thread,
    };

    use super::*;

    fn read(text: &str) -> Reading {
        Reading::within_an_hour(text, [0, 0]).unwrap()
    }

    fn reading(cpu: f64, requests: u64, switches: u64) -> Reading {
        read(&format!(
            "# HELP a b\nprocess_cpu_seconds_total {cpu} 12\nnetping_requests_total {requests}\n{VOLUNTARY} {switches}\n\
             {INVOLUNTARY} 0\nx{{a=\"b c\"}} 1\nprocess_resident_memory_bytes 4096\n"
        ))
    }

    #[test]
    fn a_connection_that_breaks_is_opened_once_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 1024]).unwrap();
            let body = "process_cpu_seconds_total 1\n";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            client.write_all((head + body).as_bytes()).unwrap();
        });
        let reading = Probe::new(ServerSource::Url { url, asked: true }).read();
        assert!(reading.is_ok(), "{reading:?}");
        served.join().unwrap();
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
    fn threads_that_serve_are_added_up() {
        let with = |times: &[(&str, f64)]| {
            let own = times
                .iter()
                .map(|(number, time)| format!("{WORKERS}worker=\"{number}\"}} {time}\n"));
            let text: String = own.collect();
            read(&format!("{CPU} 0\n{text}netping_zzz 9\n"))
        };
        let workers = |before, after| with(before).workers_until(&with(after));
        let expected = ServerWorkers {
            count: 3,
            busiest_seconds: 2.0,
            cpu_seconds: 2.75,
        };
        let (before, after) = (
            [("0", 1.0), ("1", 1.0), ("10", 0.25)],
            [("0", 1.5), ("1", 3.0), ("10", 0.5)],
        );
        assert_eq!(workers(&before, &after), Some(expected));
        // One, none, a new one, and one that went back.
        assert_eq!(workers(&before[..1], &after[..1]), None);
        assert_eq!(workers(&[], &[]), None);
        assert_eq!(workers(&before[..2], &after), None);
        assert_eq!(workers(&after, &before), None);
    }

    #[test]
    fn a_server_that_counts_no_requests_is_measured_by_the_clients_count() {
        let cpu = |seconds: f64| read(&format!("process_cpu_seconds_total {seconds}\n"));
        let demand = cpu(1.0).demand_until(&cpu(2.0), 1000).unwrap().unwrap();
        assert_eq!(demand.cpu_us_per_request, Some(1000.0));
        assert_eq!(read("<html>").demand_until(&cpu(2.0), 1), Ok(None));
        // A restarted server has used less than before.
        assert!(
            cpu(2.0)
                .demand_until(&cpu(1.0), 1)
                .unwrap_err()
                .contains("restarted")
        );
    }

    #[test]
    fn counters_that_cannot_be_are_no_demand() {
        let cpu = |seconds: f64| read(&format!("process_cpu_seconds_total {seconds}\n"));
        // 8,192 CPUs for an hour have 29,491,200 s, and clocks may differ by a hundredth.
        assert!(cpu(0.0).demand_until(&cpu(29.7e6), 1).is_ok());
        let error = cpu(0.0).demand_until(&cpu(29.8e6), 1).unwrap_err();
        assert!(error.contains("in 3600.00 s"), "{error}");
        let started = |time: f64| {
            read(&format!(
                "process_cpu_seconds_total 1\nprocess_start_time_seconds {time}\n"
            ))
        };
        let error = started(1.0).demand_until(&started(9.0), 1).unwrap_err();
        assert!(error.contains("restarted"), "{error}");
    }

    #[test]
    fn requests_are_counted_by_both_sides_between_two_readings() {
        let at = |requests: u64, replies| {
            Reading::within_an_hour(&format!("{REQUESTS} {requests}"), replies).unwrap()
        };
        let counts = at(100, [40, 44]).requests_until(&at(1100, [1030, 1038]), 16);
        let expected = RequestCounts {
            server: 1000,
            client: 992,
            unsure: 22,
            has_other_clients: false,
        };
        assert_eq!(counts, Some(expected));
        // A relay counts none.
        assert_eq!(at(0, [0, 0]).requests_until(&at(0, [9, 9]), 0), None);
        let foreign = read("process_cpu_seconds_total 1");
        assert_eq!(foreign.requests_until(&foreign, 0), None);
    }

    #[test]
    fn a_server_that_started_at_another_time_was_restarted() {
        let started = |time: f64| read(&format!("process_start_time_seconds {time}\n"));
        assert!(!started(100.0).is_restarted_by(&started(101.0)));
        assert!(started(100.0).is_restarted_by(&started(102.0)));
        assert!(!read("").is_restarted_by(&started(102.0)));
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
        let mut probe = Probe::new(ServerSource::Processes(vec![std::process::id()]));
        let own = probe.read().unwrap();
        assert!(own.0[CPU] > 0.0 && own.0[MEMORY] > 0.0);
        let cores = netping_system::cores::own().len();
        assert_eq!(
            own.demand_until(&own, 1).unwrap().unwrap().cores,
            Some(cores as u64)
        );
        // The CPU time of a thread stays when it ends.
        let burn =
            || while netping_system::cpu::thread_time() < std::time::Duration::from_millis(50) {};
        std::thread::spawn(burn).join().unwrap();
        assert!(probe.read().unwrap().0[CPU] - own.0[CPU] > 0.03);
        let none = Probe::new(ServerSource::Processes(vec![u32::MAX / 4]))
            .read()
            .unwrap_err();
        assert!(none.contains("is it running here"), "{none}");
    }

    #[test]
    fn descendants_are_counted_with_their_process_and_once() {
        // `cat` waits until its standard input ends.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut all = Family::default();
        all.add(std::process::id()).unwrap();
        assert!(all.seen.contains(&child.id()));
        let before = all.counters.clone();
        all.add(child.id()).unwrap();
        assert_eq!(all.counters, before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
