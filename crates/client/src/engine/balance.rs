//! The balance of the CPUs over a step's window: what client and server had of their CPUs, and what others
//! took.

use std::{
    collections::{BTreeMap, BTreeSet},
    process,
    time::Duration,
};

use netping_measure::cost::{Balance, Program, ServerDemand, SideUse};
use netping_system::{
    balance::{CpuReading, OtherUse},
    cores, cpu,
    process::{family, is_running, namesakes},
};

use crate::{plan::Destination, probe::metrics::Reading};

/// With more processes on a side, their threads' waiting is not read: each of as many clients in step would read that of
/// all at the same moment, which would hold up requests.
const MOST_PROCESSES: usize = 16;

/// The processes of client and servers on this host. To find them takes milliseconds, which no request must wait for.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Other clients on this host measure in step with this one, and are one side with it.
    is_one_of_several: bool,
    clients: BTreeSet<u32>,
    /// Those that are known.
    servers: BTreeSet<u32>,
    server_cpus: BTreeSet<usize>,
    /// A server is on this host, but nobody knows which processes it is.
    has_unknown_server: bool,
}

impl Processes {
    /// Finds those of targets that are measured together: their servers are one side.
    pub fn find<'a>(
        targets: impl Iterator<Item = &'a Destination>,
        is_one_of_several: bool,
    ) -> Self {
        let known: Vec<&Vec<u32>> = targets
            .filter_map(|target| target.processes.as_ref())
            .collect();
        let own = process::id();
        let mut servers = family(&known.iter().copied().flatten().copied().collect::<Vec<_>>());
        // Of those found before, some may have ended.
        servers.retain(|pid| *pid != own && is_running(pid));
        Self {
            is_one_of_several,
            clients: clients(is_one_of_several, &servers),
            server_cpus: servers
                .iter()
                .flat_map(|pid| cores::of_process(*pid))
                .collect(),
            servers,
            has_unknown_server: known.iter().any(|processes| processes.is_empty()),
        }
    }
}

/// Returns the processes of the client, or of all clients on this host that run in step.
fn clients(is_one_of_several: bool, servers: &BTreeSet<u32>) -> BTreeSet<u32> {
    let own = process::id();
    let others = is_one_of_several.then(|| namesakes(own));
    let all = others.into_iter().flatten().chain([own]);
    all.filter(|pid| !servers.contains(pid)).collect()
}

/// The processes of one side on this host, and how long their threads had waited for a CPU.
#[derive(Debug, Default)]
struct Side {
    processes: BTreeSet<u32>,
    cpus: Vec<usize>,
    waited: BTreeMap<u32, Duration>,
}

impl Side {
    fn of(processes: BTreeSet<u32>, cpus: Vec<usize>) -> Self {
        let waited = processes
            .iter()
            .filter(|_| processes.len() <= MOST_PROCESSES)
            .filter_map(|pid| Some((*pid, cpu::run_delay(*pid)?)));
        Self {
            waited: waited.collect(),
            processes,
            cpus,
        }
    }

    /// Returns what it used between two readings.
    fn used(&self, start: &CpuReading, end: &CpuReading) -> SideUse {
        let times = self.processes.iter();
        let times = times.filter_map(|pid| start.process_until(end, *pid));
        // A thread that has ended takes its waiting with it.
        let waited = self
            .waited
            .iter()
            .filter_map(|(pid, before)| Some(cpu::run_delay(*pid)?.saturating_sub(*before)));
        let waited: Vec<Duration> = waited.collect();
        SideUse {
            cpu_seconds: times.sum::<Duration>().as_secs_f64(),
            waited_seconds: (!waited.is_empty())
                .then(|| waited.iter().sum::<Duration>().as_secs_f64()),
        }
    }
}

/// Reads the CPU time that everybody has between its start and its end.
#[derive(Debug)]
pub struct BalanceMeter {
    client: Side,
    server: Side,
    is_one_of_several: bool,
    has_unknown_server: bool,
    start: CpuReading,
}

impl BalanceMeter {
    /// Begins with a window.
    pub fn start(processes: Processes) -> Self {
        Self {
            is_one_of_several: processes.is_one_of_several,
            has_unknown_server: processes.has_unknown_server,
            client: Side::of(processes.clients, cores::own()),
            server: Side::of(
                processes.servers,
                processes.server_cpus.into_iter().collect(),
            ),
            start: CpuReading::read(),
        }
    }

    /// Ends with the window, and returns a balance for each set of CPUs. A server is not known of which a
    /// process has ended: nobody knows what that had.
    pub fn finish(mut self) -> Vec<Balance> {
        let end = CpuReading::read();
        self.find_more();
        if self.start.elapsed_until(&end).is_zero() {
            return Vec::new();
        }
        let [client, server] = [&self.client, &self.server].map(|side| &side.cpus);
        let of = |cpus: &[usize], sides| self.balance(&end, cpus, sides);
        if server.is_empty() {
            return Vec::from_iter(of(client, [true, false]));
        }
        if client.iter().any(|cpu| server.contains(cpu)) {
            let both: BTreeSet<usize> = client.iter().chain(server).copied().collect();
            let both: Vec<usize> = both.into_iter().collect();
            return Vec::from_iter(of(&both, [true, true]));
        }
        let apart = [of(client, [true, false]), of(server, [false, true])];
        apart.into_iter().flatten().collect()
    }

    /// Finds the processes that servers have started meanwhile, and clients that have come late.
    fn find_more(&mut self) {
        let servers = &mut self.server.processes;
        self.has_unknown_server |= !servers.iter().all(is_running);
        let known: Vec<u32> = servers.iter().copied().collect();
        servers.extend(family(&known));
        servers.retain(|pid| !self.client.processes.contains(pid));
        let clients = clients(self.is_one_of_several, servers);
        self.client.processes.extend(clients);
    }

    /// Returns the balance of these CPUs, which client or server, or both, may use; `None` where the kernel does
    /// not show their times.
    fn balance(
        &self,
        end: &CpuReading,
        cpus: &[usize],
        [client, server]: [bool; 2],
    ) -> Option<Balance> {
        let start = &self.start;
        let ticks = start.ticks_until(end, cpus)?;
        let of_sides =
            |pid: u32| self.client.processes.contains(&pid) || self.server.processes.contains(&pid);
        let OtherUse { time, busiest } = start.others_until(end, cpus, of_sides);
        let window_seconds = start.elapsed_until(end).as_secs_f64();
        Some(Balance {
            cpus: cpus.to_vec(),
            window_seconds,
            total_seconds: window_seconds * cpus.len() as f64,
            client: client.then(|| self.client.used(start, end)),
            server: server.then(|| self.server.used(start, end)),
            others_seconds: time.as_secs_f64(),
            has_server_among_others: self.has_unknown_server,
            interrupt_seconds: ticks.interrupts.as_secs_f64(),
            steal_seconds: ticks.steal.as_secs_f64(),
            idle_seconds: ticks.idle.as_secs_f64(),
            pressure_seconds: start.pressure_until(end).map(|own| own.as_secs_f64()),
            busiest_other: busiest.map(|(name, time)| Program {
                name,
                cpu_seconds: time.as_secs_f64(),
            }),
            windows: 1,
        })
    }
}

/// What a server's counters tell of it over a window.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The target that it serves.
    pub target: &'a Destination,
    /// What it had.
    pub demand: Option<&'a ServerDemand>,
    /// Its counters at the window's start and end.
    pub readings: Option<&'a (Reading, Reading)>,
}

/// Adds what the counters of servers that were measured together tell to the balances of a window. Of those that
/// are here, but whose processes cannot be seen, others have the CPU time so far.
pub fn complete_balances(balances: &mut Vec<Balance>, servers: &[Counted<'_>]) {
    let (is_elsewhere, here): (Vec<_>, Vec<_>) = servers.iter().copied().partition(|own| {
        let is_of_this_host = |(_, end): &(Reading, Reading)| end.is_of_this_host();
        own.target.processes.is_none() && !own.readings.is_some_and(is_of_this_host)
    });
    let is_seen = balances.iter().any(|balance| balance.server.is_some());
    let demands: Option<Vec<_>> = here.iter().map(|own| own.demand).collect();
    if let Some(demands) = demands.filter(|all| !all.is_empty() && !is_seen) {
        let waited = demands.iter().map(|own| own.waited_seconds);
        let side = SideUse {
            cpu_seconds: demands.iter().map(|own| own.cpu_seconds).sum(),
            waited_seconds: waited.sum(),
        };
        for balance in balances.iter_mut() {
            balance.others_seconds = (balance.others_seconds - side.cpu_seconds).max(0.0);
            balance.has_server_among_others = false;
            balance.server = Some(side);
        }
    }
    for own in is_elsewhere {
        let told = own
            .readings
            .and_then(|(start, end)| start.balance_until(end));
        balances.extend(told);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env, io, iter,
        process::{Child, Command, Stdio},
    };

    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{plan::Trust, probe::metrics::ServerSource};

    /// Returns a server on this host whose processes cannot be seen.
    fn here() -> Destination {
        let url = "tcp://127.0.0.1:1".parse().expect("a URL");
        let clear = (Connector::Plain, Trust::default());
        Destination {
            processes: Some(Vec::new()),
            ..Destination::new(url, ServerSource::Nowhere, clear)
        }
    }

    /// Returns this program once more, until its input ends.
    fn namesake() -> Child {
        let mut program = Command::new(env::current_exe().expect("this program"));
        program.args(["--exact", "--ignored", "engine::balance::tests::waits"]);
        program.stdin(Stdio::piped()).stdout(Stdio::null());
        program.spawn().expect("a process")
    }

    #[test]
    #[ignore = "another test runs it"]
    fn waits() {
        io::copy(&mut io::stdin(), &mut io::sink()).expect("the end of its input");
    }

    #[test]
    fn a_client_that_comes_late_is_one_of_several() {
        for is_one_of_several in [true, false] {
            let processes = Processes::find(iter::once(&here()), is_one_of_several);
            let mut meter = BalanceMeter::start(processes);
            let mut late = namesake();
            meter.find_more();
            let is_found = meter.client.processes.contains(&late.id());
            assert_eq!(is_found, is_one_of_several);
            drop(late.stdin.take());
            assert!(late.wait().expect("its end").success());
        }
    }

    #[test]
    fn the_waiting_of_many_processes_is_not_read() {
        let processes: Vec<Child> = (0..=MOST_PROCESSES).map(|_| namesake()).collect();
        let waited = |count: usize| {
            let ids = processes[..count].iter().map(Child::id).collect();
            let side = Side::of(ids, Vec::new());
            let reading = CpuReading::read();
            side.used(&reading, &reading).waited_seconds
        };
        assert!(waited(MOST_PROCESSES).is_some());
        assert_eq!(waited(MOST_PROCESSES + 1), None);
        for mut own in processes {
            drop(own.stdin.take());
            assert!(own.wait().expect("its end").success());
        }
    }

    #[test]
    fn a_server_of_which_a_process_ends_is_not_known_any_more() {
        let start = || Command::new("sleep").arg("60").spawn().expect("a process");
        let (mut one, mut other) = (start(), start());
        let target = Destination {
            processes: Some(vec![one.id(), other.id()]),
            ..here()
        };
        let is_known = || {
            let meter = BalanceMeter::start(Processes::find(iter::once(&target), false));
            move || {
                meter
                    .finish()
                    .iter()
                    .all(|own| !own.has_server_among_others)
            }
        };
        let finish = is_known();
        assert!(finish());
        let finish = is_known();
        one.kill().expect("a process of this test");
        one.wait().expect("its end");
        assert!(!finish());
        other.kill().expect("a process of this test");
        other.wait().expect("its end");
    }

    #[test]
    fn a_server_that_tells_its_cpu_time_is_no_other_program() {
        let demand = ServerDemand {
            cpu_seconds: 3.0,
            ..ServerDemand::default()
        };
        let more = ServerDemand {
            cpu_seconds: 1.0,
            ..ServerDemand::default()
        };
        let balance = Balance {
            others_seconds: 4.0,
            has_server_among_others: true,
            ..Balance::default()
        };
        let mut balances = vec![balance.clone()];
        let target = here();
        let told = |demand| Counted {
            target: &target,
            demand,
            readings: None,
        };
        let (one, other) = (told(Some(&demand)), told(None));
        complete_balances(&mut balances, &[other]);
        // Of two that are measured together, what one had is not known.
        complete_balances(&mut balances, &[one, other]);
        let mut both = vec![balance];
        assert_eq!(balances, both);
        complete_balances(&mut both, &[one, told(Some(&more))]);
        assert!(both[0].others_seconds < 1e-9);
        complete_balances(&mut balances, &[one]);
        let balance = &balances[0];
        assert!(!balance.has_server_among_others);
        assert!((balance.others_seconds - 1.0).abs() < 1e-9);
        let server = balance.server.map(|server| server.cpu_seconds);
        assert_eq!(server, Some(3.0));
    }
}
