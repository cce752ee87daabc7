//! Resources that a step used.

use serde::{Deserialize, Serialize};

impl Cost {
    /// Adds the workers of another cost.
    pub fn add_workers(&mut self, other: &Self) {
        let delay = &other.client_worker_run_delay_seconds;
        self.client_worker_run_delay_seconds.extend(delay);
        // Events that were not counted on all workers have no sum.
        let workers = [&*self, other].map(|own| own.client_worker_cpu_seconds.len());
        let counted = |own: &mut Vec<u64>, others: &[u64]| {
            if [own.len(), others.len()] == workers {
                own.extend_from_slice(others);
            } else {
                own.clear();
            }
        };
        counted(
            &mut self.client_worker_instructions,
            &other.client_worker_instructions,
        );
        counted(
            &mut self.client_worker_system_calls,
            &other.client_worker_system_calls,
        );
        let cpu = &other.client_worker_cpu_seconds;
        self.client_worker_cpu_seconds.extend(cpu);
        let system = &other.client_worker_system_seconds;
        self.client_worker_system_seconds.extend(system);
        let switches = &other.client_worker_context_switches;
        self.client_worker_context_switches.extend(switches);
        let (cores, moves) = (&other.client_worker_cores, &other.client_worker_moves);
        self.client_worker_cores.extend_from_slice(cores);
        self.client_worker_moves.extend(moves);
    }

    /// Returns the CPU time of all workers for each of `requests`, in microseconds.
    pub fn worker_cpu_us(&self, requests: u64) -> Option<f64> {
        let cpu = self.worker_cpu_seconds()?;
        (requests > 0).then(|| cpu * 1e6 / requests as f64)
    }

    /// Returns the CPU time of all workers, in seconds, if it is known.
    pub fn worker_cpu_seconds(&self) -> Option<f64> {
        let workers = &self.client_worker_cpu_seconds;
        (!workers.is_empty()).then(|| workers.iter().sum())
    }

    /// Returns the CPU time of the server for each request, in microseconds.
    pub fn server_cpu_us_per_request(&self) -> Option<f64> {
        self.server.as_ref()?.cpu_us_per_request
    }
}

/// The resources that a step used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// CPU time of each of the client's workers over the window, in seconds.
    pub client_worker_cpu_seconds: Vec<f64>,
    /// CPU time that the kernel spent for each of the client's workers over the window, in seconds; it is counted by
    /// the clock's ticks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_worker_system_seconds: Vec<f64>,
    /// Context switches of each of the client's workers over the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_worker_context_switches: Vec<u64>,
    /// Instructions of each of the client's workers in user mode over the window; empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_worker_instructions: Vec<u64>,
    /// System calls of each of the client's workers over the window; empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_worker_system_calls: Vec<u64>,
    /// Time over the window for which each of the client's workers was ready to run but another
    /// thread had its CPU, in seconds.
    #[serde(default)]
    pub client_worker_run_delay_seconds: Vec<f64>,
    /// Lateness of a client thread that sleeps for 1 ms at a time: what the machine adds to any
    /// wake-up.
    #[serde(default)]
    pub client_hiccups: Option<Hiccups>,
    /// Time of all callers of a closed loop between a reply and the next request, in seconds: the
    /// client's own doing.
    #[serde(default)]
    pub client_between_requests_seconds: Option<f64>,
    /// The cores on which each of the client's workers was seen.
    #[serde(default)]
    pub client_worker_cores: Vec<Vec<usize>>,
    /// Number of times that each of the client's workers was seen to have moved to another core.
    #[serde(default)]
    pub client_worker_moves: Vec<u64>,
    /// Events on the client's machine over the window.
    #[serde(default)]
    pub client_host: HostEvents,
    /// The CPU time of the CPUs that client or server may use, by who had it: one balance for each
    /// side, or one for both where they may use the same CPUs; empty where it could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<Balance>,
    /// CPU time of all workers for each request that counts, in microseconds.
    pub client_cpu_us_per_request: Option<f64>,
    /// The server's demand; absent where its counters could not be read.
    pub server: Option<ServerDemand>,
}

/// A machine and the events on it over the window; each absent where it is unknown. They are of everything
/// that runs there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostEvents {
    /// Cores of the machine.
    pub cores: Option<u64>,
    /// CPU time that the hypervisor gave to others while a core wanted to run, in seconds.
    pub steal_seconds: Option<f64>,
    /// CPU time of soft interrupts, such as receiving packets, over all cores, in seconds.
    pub softirq_seconds: Option<f64>,
    /// Time for which the limit on its cgroup's CPU time stopped the process, over all cores, in
    /// seconds.
    pub throttled_seconds: Option<f64>,
    /// TCP segments that were sent again.
    pub tcp_retransmits: Option<u64>,
    /// Incoming TCP connections that were dropped.
    pub listen_drops: Option<u64>,
    /// Datagrams that found a UDP receive buffer full.
    pub udp_drops: Option<u64>,
}

/// The CPU time of a set of CPUs over the window, by who had it. Times are sums over these CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balance {
    /// The CPUs, in ascending order; empty for those of another host.
    pub cpus: Vec<usize>,
    /// The window's length, in seconds; of several windows, the sum.
    pub window_seconds: f64,
    /// The time that there was: the window's length times the number of CPUs, in seconds.
    pub total_seconds: f64,
    /// The client's processes; absent where the client may not use these CPUs.
    pub client: Option<SideUse>,
    /// The server's processes; absent where the server may not use these CPUs, or is not known.
    pub server: Option<SideUse>,
    /// CPU time of all other processes, in seconds.
    pub others_seconds: f64,
    /// True where the server is on these CPUs but cannot be told from other programs, which then have
    /// its time.
    #[serde(default)]
    pub has_server_among_others: bool,
    /// CPU time of interrupts, in seconds, by the clock's ticks; the processes in which they came are
    /// charged with it as well.
    pub interrupt_seconds: f64,
    /// CPU time that the hypervisor gave to other machines, in seconds.
    pub steal_seconds: f64,
    /// The time for which the CPUs were idle, in seconds.
    pub idle_seconds: f64,
    /// The time for which any thread of this host waited for a CPU, in seconds (pressure stall information);
    /// absent for another host, and where the kernel does not count it.
    pub pressure_seconds: Option<f64>,
    /// The other program that had the most; absent where none had any.
    pub busiest_other: Option<Program>,
    /// The number of windows in it. Ticks of the clock, by which idle and stolen time are known, are
    /// rounded in each.
    pub windows: u32,
}

/// The part of one side, client or server, in a [`Balance`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideUse {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The time for which its threads were ready to run but waited for a CPU, in seconds, summed over
    /// threads; absent where the kernel does not count it.
    pub waited_seconds: Option<f64>,
}

/// A program and the CPU time that it had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// Its name.
    pub name: String,
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
}

impl Balance {
    /// Returns the time that nobody is known to have had, in seconds: interrupts on idle CPUs and
    /// programs that ended meanwhile. Below 0 where the times of the parts overlap.
    pub fn rest_seconds(&self) -> f64 {
        let sides = [self.client, self.server].into_iter().flatten();
        let used: f64 = sides.map(|side| side.cpu_seconds).sum();
        self.total_seconds - used - self.others_seconds - self.steal_seconds - self.idle_seconds
    }

    /// Adds the balance of another window of the same CPUs.
    pub fn add(&mut self, other: &Self) {
        self.window_seconds += other.window_seconds;
        self.total_seconds += other.total_seconds;
        self.others_seconds += other.others_seconds;
        self.has_server_among_others |= other.has_server_among_others;
        self.interrupt_seconds += other.interrupt_seconds;
        self.steal_seconds += other.steal_seconds;
        self.idle_seconds += other.idle_seconds;
        self.windows = self.windows.saturating_add(other.windows);
        let pressures = self.pressure_seconds.zip(other.pressure_seconds);
        self.pressure_seconds = pressures.map(|(own, more)| own + more);
        for (own, more) in [
            (&mut self.client, other.client),
            (&mut self.server, other.server),
        ] {
            if let Some(more) = more {
                let own = own.get_or_insert_default();
                own.cpu_seconds += more.cpu_seconds;
                own.waited_seconds = own
                    .waited_seconds
                    .zip(more.waited_seconds)
                    .map(|(a, b)| a + b);
            }
        }
        let most = |program: &Option<Program>| program.as_ref().map_or(0.0, |own| own.cpu_seconds);
        if most(&other.busiest_other) > most(&self.busiest_other) {
            self.busiest_other.clone_from(&other.busiest_other);
        }
    }
}

/// The lateness of a thread that only sleeps and wakes up, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hiccups {
    /// The 99th percentile; absent with fewer than 1,000 wake-ups.
    #[serde(default)]
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile; absent with fewer than 10,000 wake-ups.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

/// The service demand: resources that the server's process used during the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerDemand {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The part of it that the kernel spent for the process, in seconds.
    pub system_seconds: Option<f64>,
    /// The time for which its threads waited for a CPU, in seconds, summed over threads.
    #[serde(default)]
    pub waited_seconds: Option<f64>,
    /// CPU time for each request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Context switches for each request.
    pub context_switches_per_request: Option<f64>,
    /// Instructions in user mode for each request; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_request: Option<f64>,
    /// System calls for each request; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: Option<u64>,
    /// The number of cores that the server may run on.
    #[serde(default)]
    pub cores: Option<u64>,
    /// The threads that serve; absent where it does not tell, or has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ServerWorkers>,
    /// Events on the server's machine.
    #[serde(default)]
    pub host: HostEvents,
    /// The requests of both sides' counts; absent where the server does not count them, or counts others
    /// than the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestCounts>,
}

impl ServerDemand {
    /// Returns it without what each request took: for one of several targets that it serves, whose requests differ.
    #[must_use]
    pub fn without_each_request(self) -> Self {
        Self {
            cpu_us_per_request: None,
            context_switches_per_request: None,
            instructions_per_request: None,
            system_calls_per_request: None,
            ..self
        }
    }
}

/// The threads of a server that serve, over the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerWorkers {
    /// Their number.
    pub count: u64,
    /// CPU time of the one that had most, in seconds.
    pub busiest_seconds: f64,
    /// CPU time of all of them, in seconds.
    pub cpu_seconds: f64,
}

/// The requests between two readings of a server's counters, as either side counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestCounts {
    /// Requests that the server answered.
    pub server: u64,
    /// Verified replies that the client had.
    pub client: u64,
    /// The number by which the counts may differ though nobody else used the server: requests that were
    /// on their way or were answered as the counters were read, and those that failed.
    pub unsure: u64,
    /// True where the client was one of several of a run: the server's count is of all of them.
    pub has_other_clients: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_no_workers_is_not_known() {
        let mut cost = Cost::default();
        assert_eq!(cost.worker_cpu_seconds(), None);
        assert_eq!(cost.worker_cpu_us(10), None);
        cost.client_worker_cpu_seconds = vec![1.0, 2.0];
        assert_eq!(cost.worker_cpu_seconds(), Some(3.0));
        assert_eq!(cost.worker_cpu_us(10), Some(300_000.0));
        assert_eq!(cost.worker_cpu_us(0), None);
    }

    #[test]
    fn events_that_were_not_counted_for_all_workers_are_known_of_none() {
        let worker = |instructions: &[u64]| Cost {
            client_worker_cpu_seconds: vec![1.0],
            client_worker_instructions: instructions.to_vec(),
            client_worker_system_calls: vec![7],
            ..Cost::default()
        };
        let sum = |workers: &[Cost]| {
            let mut sum = Cost::default();
            for worker in workers {
                sum.add_workers(worker);
            }
            (
                sum.client_worker_instructions,
                sum.client_worker_system_calls,
            )
        };
        assert_eq!(sum(&[worker(&[1]), worker(&[2])]), (vec![1, 2], vec![7, 7]));
        for uncounted in 0..3 {
            let mut workers = [(); 3].map(|()| worker(&[1]));
            workers[uncounted] = worker(&[]);
            assert_eq!(sum(&workers), (Vec::new(), vec![7; 3]));
        }
    }
}
