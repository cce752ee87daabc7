//! Each warning with facts that bring it, with facts just below its limit, and with the trouble next
//! to it.

use std::{collections::BTreeMap, convert::Infallible, f64::consts::TAU};

use netping_measure::{
    cost::{Balance, Hiccups, RequestCounts, ServerDemand, ServerWorkers, SideUse},
    counts::Counts,
    course::{Gap, Slot},
    distribution::Distribution,
    error_kind::ErrorKind,
    fairness::{ConnectionSums, PerConnection, ServiceSums},
    messages::HeldBack,
    path::{PathAccount, PathFact, PathReading},
    quantiles::Quantiles,
    times::Time,
};

use super::*;
use crate::{
    fixtures,
    merge::{MergeRules, merge},
    run::{Kind, Pairing, PartSettings, Run, Step},
};

/// The facts of one step.
struct Case {
    step: Step,
    slots: Vec<Slot>,
    gaps: Vec<Gap>,
    /// As a share of the callers.
    outstanding: f64,
    connections: Vec<PerConnection>,
    path: Option<PathAccount>,
    held_back: Option<HeldBack>,
    subject: Subject,
    warmup_failed: bool,
    shared_host: bool,
    server_restarted: bool,
    clock_step: i64,
}

impl Case {
    /// Returns eight callers that get 8,000 replies per second, each after 1 ms, for 3 s.
    fn new() -> Self {
        let mut step = fixtures::step(3, |_| vec![1_000_000; 8000]);
        step.summary.precision.rate_half_width = Some(80.0);
        Self {
            step,
            slots: vec![slot(800); 30],
            gaps: Vec::new(),
            outstanding: 1.0,
            connections: Vec::new(),
            path: None,
            held_back: None,
            subject: Subject::Server,
            warmup_failed: false,
            shared_host: false,
            server_restarted: false,
            clock_step: 0,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let facts = Facts {
            settings: &self.step.settings,
            summary: &self.step.summary,
            cost: &self.step.cost,
            slots: &self.slots,
            gaps: &self.gaps,
            outstanding: self.outstanding * self.step.settings.callers as f64,
            service_time: &self.step.histograms.times[Time::Service],
            connections: &self.connections,
            path: self.path.as_ref(),
            held_back: self.held_back,
            subject: self.subject,
            warmup_failed: self.warmup_failed,
            shared_host: self.shared_host,
            server_restarted: self.server_restarted,
            clock_step: self.clock_step,
        };
        Warning::of_step(&facts)
    }

    /// Makes it an open loop at the rate that it has.
    fn open(&mut self) -> &mut Self {
        self.step.settings.planned_rate = Some(8000.0);
        self
    }

    /// Takes this CPU time and run delay of the busier worker, as shares of the window.
    fn worker(&mut self, cpu: f64, delay: f64) {
        self.step.cost.client_worker_cpu_seconds = vec![0.3, 3.0 * cpu];
        self.step.cost.client_worker_run_delay_seconds = vec![0.0, 3.0 * delay];
    }

    /// Lets one request fail, and each caller pause for this share of the window.
    fn fail_and_pause(&mut self, share: Option<f64>) {
        let errors = &mut self.step.summary.accounting.errors;
        errors.insert(ErrorKind::Reset, 1);
        self.step.cost.client_between_requests_seconds = share.map(|share| 8.0 * 3.0 * share);
    }

    /// Takes one caller on a shared machine, and these service times.
    fn alone(&mut self, times: &[(u64, u64)]) {
        self.shared_host = true;
        self.step.settings.callers = 1;
        self.step.histograms.times[Time::Service] = Counts::from(times.to_vec());
    }

    /// Takes this number of requests that the server counted for 10,000 of the client.
    fn counts(&mut self, server: u64, has_other_clients: bool) {
        let requests = RequestCounts {
            server,
            client: 10_000,
            unsure: 16,
            has_other_clients,
        };
        self.step.cost.server = Some(ServerDemand {
            requests: Some(requests),
            ..ServerDemand::default()
        });
    }

    /// Takes so many threads of the server, of which the busiest and all on average had these shares of the window.
    fn server_workers(&mut self, count: u64, busiest: f64, mean: f64) {
        let seconds = self.step.summary.seconds;
        let workers = ServerWorkers {
            count,
            busiest_seconds: busiest * seconds,
            cpu_seconds: mean * seconds * count as f64,
        };
        self.step.cost.server = Some(ServerDemand {
            workers: Some(workers),
            ..ServerDemand::default()
        });
    }

    /// Takes so many messages that the server held back, for so long together, in nanoseconds.
    fn hold_back(&mut self, requests: u64, total_ns: u64) {
        self.held_back = Some(HeldBack { requests, total_ns });
    }

    /// Takes 15 connections with 100 replies each after 1 ms, and one with so many replies after this
    /// time, in nanoseconds.
    fn odd_connection(&mut self, replies: usize, time: u64) {
        let served = |replies, time| ConnectionSums {
            callers: 1,
            served: (0..replies).fold(ServiceSums::default(), |sums, _| sums.with(time)),
            server: Some(([10, 0, 0, 1], 8004).into()),
            local_port: Some(40_001),
        };
        let mut all = vec![served(100, 1_000_000); 15];
        all.insert(4, served(replies, time));
        self.connections = PerConnection::of_all(&all, true);
    }

    /// Takes eight connections whose account has so many packets sent again, after 24,000 requests of which this
    /// share took 1 ms and the others 210 ms.
    fn resend(&mut self, packets: u64, fast: f64) {
        let reading = |number: u64| {
            let resent = packets / 8 + u64::from(number < packets % 8);
            PathReading::of([
                (PathFact::SmoothedRttNs, Some(200_000)),
                (PathFact::RetransmissionTimeoutNs, Some(201_000_000)),
                (PathFact::RetransmittedPackets, Some(resent)),
            ])
        };
        let end = (0..8).map(|number| (number, reading(number))).collect();
        self.path = PathAccount::between(&BTreeMap::new(), &end);
        let fast = (fast * 24_000.0) as u64;
        let times = Counts::from(vec![(1_000_000, fast), (210_000_000, 24_000 - fast)]);
        self.step.summary.times[Time::Response] = Distribution::of(&times);
    }

    /// Takes two CPUs that client and server used fully, but for what `change` gives to others; the
    /// client has what is left.
    fn balance(&mut self, idle: f64, change: impl FnOnce(&mut Balance)) {
        let mut balance = Balance {
            cpus: vec![0, 1],
            window_seconds: 3.0,
            total_seconds: 6.0,
            client: Some(SideUse::default()),
            server: Some(SideUse {
                cpu_seconds: 1.0,
                waited_seconds: Some(0.0),
            }),
            idle_seconds: idle,
            windows: 1,
            ..Balance::default()
        };
        change(&mut balance);
        let waited_seconds = balance.client.and_then(|client| client.waited_seconds);
        balance.client = Some(SideUse {
            cpu_seconds: balance.rest_seconds() - balance.interrupt_seconds,
            waited_seconds,
        });
        self.step.cost.balances = vec![balance];
    }

    /// Takes a closed loop on CPUs of the client's own, whose worker waits for this share of the window
    /// while a sleeping thread wakes up late. Of these CPUs, the worker has a tenth of one.
    fn starve(&mut self, waited: f64, late: u64) {
        self.starve_by(1.6, waited, late);
    }

    /// Takes the same, of which other programs had CPU time for so long, in seconds.
    fn starve_by(&mut self, others: f64, waited: f64, late: u64) {
        self.balance(5.7 - others, |balance| {
            balance.server = None;
            balance.others_seconds = others;
        });
        self.worker(0.1, waited);
        self.step.cost.client_hiccups = Some(Hiccups {
            p99_ns: Some(late),
            p999_ns: None,
            max_ns: late,
        });
    }

    /// Takes the same, of which the hypervisor had CPU time for so long, in seconds. Of that, ticks may be wrong by
    /// 20 ms.
    fn starve_by_steal(&mut self, steal: f64) {
        self.starve_by(0.0, 0.5, 520_000);
        let balance = &mut self.step.cost.balances[0];
        balance.idle_seconds -= steal;
        balance.steal_seconds = steal;
    }

    /// Takes the same, of a client whose other threads have 0.2 s of CPU time, a fifteenth of the window.
    fn starve_beside_threads(&mut self, waited: f64) {
        self.starve(waited, 520_000);
        let client = &mut self.step.cost.balances[0].client;
        client.as_mut().expect("a client").cpu_seconds = 0.8;
    }

    /// Takes this many successes in each 100 ms from the `from`th on.
    fn rate(&mut self, from: usize, ok: u64) {
        self.slots[from..].fill(slot(ok));
    }

    /// Takes requests that were due in each 100 ms from the `from`th on, and took this many microseconds.
    fn responses(&mut self, from: usize, microseconds: u64) {
        for slot in &mut self.slots[from..] {
            slot.response = slot.due * microseconds * 1000;
        }
    }

    /// Makes it an open loop with so many replies to earlier requests, and as many after the window, and with this share
    /// of the replies that were planned.
    fn at_the_edges(&mut self, count: u64, share: f64) {
        let summary = &mut self.open().step.summary;
        summary.rate = share * 8000.0;
        (summary.accounting.early, summary.accounting.late) = (count, count);
    }

    /// Takes this many successes.
    fn few(&mut self, ok: u64) {
        self.step.summary.accounting.ok = ok;
    }

    /// Takes no reply between these times of the window, in milliseconds, and so many after the window.
    fn silent(&mut self, [from, to]: [u64; 2], late: u64) {
        let is_last = to >= 3000 && late == 0;
        let [from, to] = [from, to].map(|milliseconds| milliseconds * 1_000_000);
        self.gaps.push(Gap { from, to, is_last });
        self.step.summary.accounting.late = late;
        self.step.summary.times[Time::Response].max = Some(to - from);
    }

    /// Takes no reply between these times of the window, in milliseconds, and to its end.
    fn silent_at_the_end(&mut self, milliseconds: u64) {
        self.silent([3000 - milliseconds, 3000], 0);
    }
}

/// Takes other programs that had two thirds of the CPU time in use, while the client waited.
fn wait_for_others(balance: &mut Balance, seconds: f64) {
    balance.others_seconds = 2.0;
    balance.server = None;
    balance.client = Some(SideUse {
        cpu_seconds: 0.0,
        waited_seconds: Some(seconds),
    });
}

/// Takes the same, of a client whose waiting is not known, on a host of which any thread waited for so long.
fn wait_unknown(balance: &mut Balance, pressure: Option<f64>) {
    wait_for_others(balance, 0.0);
    balance.client = Some(SideUse::default());
    balance.pressure_seconds = pressure;
}

/// Takes other programs that had this time, while the client waited for all of the window.
fn wait_longer_than_others_ran(balance: &mut Balance, others: f64) {
    wait_for_others(balance, 3.0);
    balance.others_seconds = others;
}

/// Returns 100 ms with so many requests, each of which took 1 ms.
fn slot(requests: u64) -> Slot {
    Slot {
        ok: requests,
        due: requests,
        response: requests * 1_000_000,
    }
}

/// Returns times that are all the same.
fn always(nanoseconds: u64) -> Distribution {
    Distribution {
        count: 24_000,
        quantiles: Quantiles::of(|_| Some(nanoseconds)),
        ..Distribution::default()
    }
}

/// Returns the warnings about a step in which something is changed.
fn step(change: impl FnOnce(&mut Case)) -> Vec<Warning> {
    let mut case = Case::new();
    change(&mut case);
    case.warnings()
}

/// Returns the warnings about a bulk stream with this many runs, of which some failed.
fn bulk(runs: usize, failed: usize, client_cpu_share: f64) -> Vec<Warning> {
    let mut steps = fixtures::bulk("grpc://h:8005", &vec![1.0; runs]);
    steps.extend(vec![fixtures::failed_transfer(); failed]);
    for step in &mut steps {
        step.cost.client_worker_cpu_seconds = vec![client_cpu_share * step.summary.seconds];
        step.warn_of_transfer(false);
    }
    let kinds = Warnings::of(&fixtures::run(steps)).kinds.into_iter();
    kinds.map(|found| found.worst).collect()
}

/// Returns the warnings of the sum of clients with these numbers, of so many that shared a load.
fn merged(numbers: &[usize], of: Option<usize>) -> Vec<Warning> {
    let names: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let client = |at: usize| {
        let number = numbers[at];
        let mut step = fixtures::step(10, |_| vec![1_000_000 * number as u64; 200]);
        let own = step.settings.callers;
        step.settings.part = of.map(|of| PartSettings {
            number,
            of,
            callers: own * of,
            connections: own * of,
            planned_rate: None,
        });
        Ok::<_, Infallible>(fixtures::run(vec![step]))
    };
    let rules = MergeRules {
        missing: 1,
        ..MergeRules::default()
    };
    let Ok(sum) = merge(&names, client, &rules, fixtures::tool(), Vec::new());
    Warnings::of(&sum.unwrap())
        .kinds
        .into_iter()
        .map(|found| found.worst)
        .collect()
}

/// Returns a trial with these replies per second, p50 and p99.
fn trial([rate, p50, p99]: [f64; 3]) -> Step {
    let mut step = fixtures::step(1, |_| vec![1_000_000; 10]);
    step.summary.rate = rate;
    step.summary.times[Time::Response].quantiles = Quantiles::of(|percent| match percent {
        50.0 => Some(p50 as u64),
        99.0 => Some(p99 as u64),
        _ => None,
    });
    step
}

/// Returns the warnings about the trials with these medians, as multiples of 1 ms.
fn trials(medians: &[f64]) -> Vec<Warning> {
    let trials = medians.iter().map(|median| trial([1e3, 1e6 * median, 1e9]));
    let found = Warnings::of_several_steps(&fixtures::run(trials.collect()));
    found.into_iter().map(|(_, warning)| warning).collect()
}

/// Returns a run with a step for each of these targets, with its callers and connections.
fn side_by_side(steps: &[(&str, [usize; 2])]) -> Run {
    let step = |(target, [callers, connections]): &(&str, [usize; 2])| {
        let mut step = fixtures::step(1, |_| vec![1_000_000; 10]);
        step.target = (*target).to_owned();
        (step.settings.callers, step.settings.connections) = (*callers, *connections);
        step
    };
    fixtures::run(steps.iter().map(step).collect())
}

/// Returns the warnings about targets that were measured side by side.
fn unequal(steps: &[(&str, [usize; 2])]) -> Vec<Warning> {
    let found = Warnings::of_several_steps(&side_by_side(steps));
    found.into_iter().map(|(_, warning)| warning).collect()
}

fn names(warnings: &[Warning]) -> Vec<&'static str> {
    warnings.iter().map(Warning::name).collect()
}

/// A limit of a warning.
struct Row {
    name: &'static str,
    severity: Severity,
    /// The warnings about facts just beyond the limit,
    brings: Vec<Warning>,
    /// just below it,
    below: Vec<Warning>,
    /// and about the trouble next to it, with their names.
    beside: (Vec<Warning>, &'static [&'static str]),
}

#[expect(clippy::too_many_lines, reason = "a table of every warning")]
fn rows() -> Vec<Row> {
    let note = Severity::Note;
    let invalid = Severity::Invalid;
    let row = |name, severity, brings, below, beside| Row {
        name,
        severity,
        brings,
        below,
        beside,
    };
    vec![
        row(
            "CLIENT_BOUND",
            note,
            step(|case| case.worker(0.72, 0.0)),
            step(|case| case.worker(0.68, 0.0)),
            (
                step(|case| case.step.cost.client_host.throttled_seconds = Some(1.0)),
                &["CLIENT_THROTTLED"],
            ),
        ),
        // A worker that waits for its CPU has less of it to use.
        row(
            "CLIENT_BOUND",
            note,
            step(|case| case.worker(0.6, 0.17)),
            step(|case| case.worker(0.6, 0.13)),
            (
                step(|case| {
                    case.worker(1.0, 0.0);
                    case.step.settings.busy_poll = true;
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_BOUND",
            invalid,
            step(|case| case.worker(0.92, 0.0)),
            step(|case| case.worker(0.1, 0.85)),
            (
                step(|case| {
                    case.worker(1.0, 0.0);
                    case.subject = Subject::Both;
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_BOUND",
            invalid,
            bulk(3, 0, 0.96),
            bulk(3, 0, 0.94),
            (bulk(3, 1, 0.1), &["ERRORS"]),
        ),
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(520_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(480_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::NoCallerFree] = always(520_000);
                }),
                &["NO_CALLER_FREE"],
            ),
        ),
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(1_050_000);
                case.step.summary.times[Time::Response] = always(10_000_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(950_000);
                case.step.summary.times[Time::Response] = always(10_000_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::Response] = always(10_000_000);
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| case.starve(0.021, 520_000)),
            step(|case| case.starve(0.019, 520_000)),
            (step(|case| case.starve(0.021, 480_000)), &[]),
        ),
        // Its workers wait for the server, or for each other.
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| case.starve(0.5, 520_000)),
            step(|case| {
                case.starve(0.5, 520_000);
                case.step.cost.balances[0].cpus.pop();
            }),
            (
                step(|case| {
                    case.starve(0.5, 520_000);
                    case.step.cost.balances[0].server = Some(SideUse::default());
                }),
                &[],
            ),
        ),
        // A virtual CPU that wakes up late: nobody had it.
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| case.starve_by(0.061, 0.5, 520_000)),
            step(|case| case.starve_by(0.059, 0.5, 520_000)),
            (step(|case| case.starve_by(0.0, 0.5, 520_000)), &[]),
        ),
        // The hypervisor had it.
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| case.starve_by_steal(0.1)),
            step(|case| case.starve_by_steal(0.05)),
            (step(|case| case.starve_by_steal(0.0)), &[]),
        ),
        // The client's other threads have its CPU for a while.
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| case.starve_beside_threads(0.088)),
            step(|case| case.starve_beside_threads(0.085)),
            (step(|case| case.starve_beside_threads(0.0)), &[]),
        ),
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| case.balance(0.29, |balance| balance.others_seconds = 0.126)),
            step(|case| case.balance(0.29, |balance| balance.others_seconds = 0.114)),
            (
                step(|case| case.balance(0.31, |balance| balance.others_seconds = 0.126)),
                &[],
            ),
        ),
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| case.balance(0.0, |balance| balance.steal_seconds = 0.146)),
            step(|case| case.balance(0.0, |balance| balance.steal_seconds = 0.134)),
            (
                step(|case| {
                    case.balance(0.0, |balance| {
                        balance.others_seconds = 3.0;
                        balance.has_server_among_others = true;
                    });
                }),
                &[],
            ),
        ),
        // Threads that wait for a cgroup's limit wait longer than others ran.
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| case.balance(5.9, |balance| wait_longer_than_others_ran(balance, 0.061))),
            step(|case| case.balance(5.9, |balance| wait_longer_than_others_ran(balance, 0.059))),
            (
                step(|case| case.balance(5.9, |balance| wait_longer_than_others_ran(balance, 0.0))),
                &[],
            ),
        ),
        // CPU time of programs that ended meanwhile, beyond that of interrupts.
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| {
                case.balance(0.0, |balance| balance.interrupt_seconds = 0.5);
                case.step.cost.balances[0].interrupt_seconds -= 0.146;
            }),
            step(|case| {
                case.balance(0.0, |balance| balance.interrupt_seconds = 0.5);
                case.step.cost.balances[0].interrupt_seconds -= 0.134;
            }),
            (
                step(|case| case.balance(0.0, |balance| balance.interrupt_seconds = 0.5)),
                &[],
            ),
        ),
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| case.balance(3.0, |balance| wait_for_others(balance, 0.0945))),
            step(|case| case.balance(3.0, |balance| wait_for_others(balance, 0.0855))),
            (
                step(|case| {
                    case.balance(3.0, |balance| {
                        wait_for_others(balance, 3.0);
                        balance.others_seconds = 0.0;
                    });
                }),
                &[],
            ),
        ),
        // Of threads whose waiting is not known, that of the whole host is.
        row(
            "FOREIGN_LOAD",
            invalid,
            step(|case| case.balance(3.0, |balance| wait_unknown(balance, Some(0.0945)))),
            step(|case| case.balance(3.0, |balance| wait_unknown(balance, Some(0.0855)))),
            (
                // What is known of the side itself counts.
                step(|case| {
                    case.balance(3.0, |balance| {
                        wait_unknown(balance, Some(3.0));
                        wait_for_others(balance, 0.0);
                    });
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_THROTTLED",
            invalid,
            step(|case| case.step.cost.client_host.throttled_seconds = Some(0.0315)),
            step(|case| case.step.cost.client_host.throttled_seconds = Some(0.0285)),
            (
                step(|case| case.step.cost.client_host.steal_seconds = Some(1.0)),
                &[],
            ),
        ),
        row(
            "NO_CALLER_FREE",
            note,
            step(|case| {
                case.open().step.summary.times[Time::NoCallerFree] = always(520_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::NoCallerFree] = always(480_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::ClientLate] = always(520_000);
                }),
                &["CLIENT_STARVED"],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::Lag] = always(1_050_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::Lag] = always(950_000);
            }),
            // A closed loop has no schedule.
            (
                step(|case| case.step.summary.times[Time::Lag] = always(1_050_000)),
                &[],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.accounting.not_sent = 1;
            }),
            step(|case| {
                case.open().step.summary.accounting.not_sent = 0;
            }),
            (
                step(|case| {
                    case.open().step.summary.accounting.in_flight = 1;
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.rate = 0.9895 * 8000.0;
            }),
            step(|case| {
                case.open().step.summary.rate = 0.9905 * 8000.0;
            }),
            // Random arrivals were fewer than planned, and all were served.
            (
                step(|case| case.step.settings.planned_rate = Some(8200.0)),
                &[],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            // Of 100 replies at either edge, 42 may be missing by chance: of 24,000, 0.2 %.
            step(|case| case.at_the_edges(100, 0.988)),
            step(|case| case.at_the_edges(100, 0.9885)),
            (step(|case| case.at_the_edges(400, 0.987)), &[]),
        ),
        row(
            "NOT_STEADY",
            invalid,
            // 10.5 and 9.5 % less than in the second half.
            step(|case| case.rate(15, 894)),
            step(|case| case.rate(15, 884)),
            // A stretch without a reply, and what came of it.
            (
                step(|case| {
                    case.slots[15..18].fill(slot(0));
                    case.silent([1510, 1790], 8);
                }),
                &["STALLED"],
            ),
        ),
        row(
            "NOT_STEADY",
            invalid,
            // 26 and 24 % longer than in the second half.
            step(|case| case.open().responses(15, 1260)),
            step(|case| case.open().responses(15, 1240)),
            // The rate of an open loop is given.
            (step(|case| case.open().rate(15, 900)), &[]),
        ),
        row(
            "NOT_STEADY",
            invalid,
            step(|case| case.warmup_failed = true),
            step(|case| case.warmup_failed = false),
            (
                step(|case| case.step.summary.precision.rate_half_width = Some(1600.0)),
                &["NOISY"],
            ),
        ),
        row(
            "STALLED",
            note,
            step(|case| {
                case.few(611);
                case.silent([900, 1001], 8);
            }),
            step(|case| {
                case.few(554);
                case.silent([900, 1001], 8);
            }),
            (step(|case| case.silent_at_the_end(1000)), &["SERVER_GONE"]),
        ),
        row(
            "STALLED",
            note,
            // 8.4 and 7.6 median service times.
            step(|case| {
                case.silent([900, 1200], 8);
                case.step.summary.times[Time::Service].quantiles = always(35_714_000).quantiles;
            }),
            step(|case| {
                case.silent([900, 1200], 8);
                case.step.summary.times[Time::Service].quantiles = always(39_474_000).quantiles;
            }),
            (
                step(|case| case.slots[9..12].fill(slot(400))),
                &["NOT_STEADY"],
            ),
        ),
        row(
            "STALLED",
            note,
            step(|case| {
                case.open().step.settings.callers = 100;
                case.silent([2990, 3300], 52);
            }),
            step(|case| {
                case.open().step.settings.callers = 100;
                case.silent([2990, 3300], 48);
            }),
            // One caller's reply was lost.
            (step(|case| case.silent([2990, 3300], 1)), &[]),
        ),
        row(
            "SERVER_GONE",
            invalid,
            step(|case| case.silent_at_the_end(510)),
            step(|case| case.silent_at_the_end(490)),
            (
                step(|case| {
                    case.silent([2490, 3010], 8);
                }),
                &["STALLED"],
            ),
        ),
        row(
            "SERVER_RESTARTED",
            invalid,
            step(|case| case.server_restarted = true),
            step(|case| case.server_restarted = false),
            (step(|case| case.silent_at_the_end(1000)), &["SERVER_GONE"]),
        ),
        // 2 % of 10,000, and 16.
        row(
            "SERVER_SHARED",
            invalid,
            step(|case| case.counts(10_217, false)),
            step(|case| case.counts(10_216, false)),
            // The others may be clients of the same run.
            (step(|case| case.counts(20_000, true)), &[]),
        ),
        row(
            "COUNTERS_DISAGREE",
            invalid,
            step(|case| case.counts(9783, true)),
            step(|case| case.counts(9784, true)),
            (step(|case| case.counts(20_000, false)), &["SERVER_SHARED"]),
        ),
        row(
            "UNEVEN_SERVER",
            note,
            step(|case| case.server_workers(4, 0.91, 0.67)),
            step(|case| case.server_workers(4, 0.91, 0.69)),
            // A thread that has time to spare limits nobody.
            (step(|case| case.server_workers(4, 0.89, 0.3)), &[]),
        ),
        row(
            "BLOCKED_BY_PEER",
            note,
            step(|case| case.hold_back(200, 1_210_000_000)),
            step(|case| case.hold_back(200, 1_190_000_000)),
            // Each message, but for a moment.
            (step(|case| case.hold_back(24_000, 24_000_000)), &[]),
        ),
        row(
            "NOISY",
            note,
            step(|case| case.step.summary.precision.rate_half_width = Some(840.0)),
            step(|case| case.step.summary.precision.rate_half_width = Some(760.0)),
            (step(|case| case.warmup_failed = true), &["NOT_STEADY"]),
        ),
        row(
            "TOO_FEW_SAMPLES",
            note,
            step(|case| {
                case.open().step = fixtures::step(3, |_| vec![8_000_000; 333]);
                case.step.settings.callers = 8;
            }),
            step(|case| case.step = fixtures::step(3, |_| vec![8_000_000; 334])),
            (
                step(|case| {
                    case.step.summary.times[Time::Response] = Distribution::default();
                    case.step.summary.accounting.ok = 0;
                    case.step
                        .summary
                        .accounting
                        .errors
                        .insert(ErrorKind::Refused, 24_000);
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "FEW_RUNS",
            note,
            bulk(2, 0, 0.1),
            bulk(3, 0, 0.1),
            (bulk(3, 1, 0.1), &["ERRORS"]),
        ),
        row(
            "ERRORS",
            invalid,
            step(|case| case.step.summary.accounting.in_flight = 1),
            step(|case| case.step.summary.accounting.in_flight = 0),
            // In the warm-up.
            (
                step(|case| case.step.summary.accounting.outside_errors = 1),
                &[],
            ),
        ),
        row(
            "ERRORS",
            invalid,
            bulk(3, 1, 0.1),
            bulk(3, 0, 0.1),
            (bulk(2, 0, 0.1), &["FEW_RUNS"]),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.outstanding = 0.979),
            step(|case| case.outstanding = 0.981),
            // A caller that opens a connection for each request also closes it.
            (
                step(|case| {
                    case.outstanding = 0.5;
                    case.step.settings.requests_per_connection = Some(1);
                }),
                &[],
            ),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.outstanding = 0.97),
            step(|case| case.outstanding = 1.0),
            // A caller reads the time stamps of a request after its end.
            (
                step(|case| {
                    case.outstanding = 0.9;
                    case.step.settings.anatomy = true;
                }),
                &[],
            ),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.outstanding = 1.021),
            step(|case| case.outstanding = 1.019),
            // In an open loop it holds by definition.
            (step(|case| case.open().outstanding = 0.5), &[]),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.fail_and_pause(Some(0.021))),
            step(|case| case.fail_and_pause(Some(0.019))),
            // Callers wait before they connect anew, which is the server's doing.
            (
                step(|case| {
                    case.outstanding = 0.5;
                    case.fail_and_pause(None);
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "BIMODAL",
            note,
            step(|case| case.alone(&[(10_000, 9000), (15_500, 1000)])),
            step(|case| case.alone(&[(10_000, 9000), (14_500, 1000)])),
            // Eight callers wait for each other.
            (
                step(|case| {
                    case.alone(&[(10_000, 9000), (15_500, 1000)]);
                    case.step.settings.callers = 8;
                }),
                &["SHARED_HOST"],
            ),
        ),
        row(
            "SHARED_HOST",
            note,
            step(|case| case.shared_host = true),
            step(|case| case.shared_host = false),
            (
                step(|case| case.step.cost.client_host.steal_seconds = Some(1.0)),
                &[],
            ),
        ),
        row(
            "CLOCK_STEP",
            note,
            step(|case| case.clock_step = -1),
            step(|case| case.clock_step = 0),
            (
                step(|case| case.server_restarted = true),
                &["SERVER_RESTARTED"],
            ),
        ),
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[1.0, 1.0, 1.0, 1.52]),
            trials(&[1.0, 1.0, 1.0, 1.48]),
            // Three do not tell which of them is the odd one.
            (trials(&[1.0, 1.0, 25.0]), &[]),
        ),
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[1.0, 1.0, 1.0, 1.0 / 1.52]),
            trials(&[1.0, 1.0, 1.0, 1.0 / 1.48]),
            (trials(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), &[]),
        ),
        // The median deviation of these logarithms is 0.05: ten standard deviations are 0.7413.
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[-0.05, -0.05, 0.0, 0.05, 0.05, 0.025 + 0.7413 * 1.05].map(f64::exp)),
            trials(&[-0.05, -0.05, 0.0, 0.05, 0.05, 0.025 + 0.7413 * 0.95].map(f64::exp)),
            (trials(&[1.0, 1.0, 1.0, 25.0, 25.0, 25.0]), &[]),
        ),
        row(
            "SLOW_CONNECTION",
            note,
            step(|case| case.odd_connection(100, 3_010_000)),
            step(|case| case.odd_connection(100, 2_990_000)),
            // A fast one is none.
            (step(|case| case.odd_connection(300, 330_000)), &[]),
        ),
        row(
            "SLOW_CONNECTION",
            note,
            step(|case| case.odd_connection(33, 1_000_000)),
            step(|case| case.odd_connection(34, 1_000_000)),
            // Where both sides are measured, one connection is no subject.
            (
                step(|case| {
                    case.odd_connection(33, 1_000_000);
                    case.subject = Subject::Both;
                }),
                &[],
            ),
        ),
        // A hundredth, or a thousandth, of the requests.
        row(
            "RETRANSMITS",
            note,
            step(|case| case.resend(240, 0.98)),
            step(|case| case.resend(23, 0.98)),
            (step(|case| case.resend(0, 0.98)), &[]),
        ),
        row(
            "RETRANSMITS",
            note,
            step(|case| case.resend(24, 0.998)),
            step(|case| case.resend(23, 0.998)),
            // Where no request took longer, none was held up.
            (step(|case| case.resend(24, 1.0)), &[]),
        ),
        // On a connection that requests share, all of them wait.
        row(
            "RETRANSMITS",
            note,
            step(|case| {
                case.resend(6, 0.998);
                case.outstanding = 4.0;
            }),
            step(|case| {
                case.resend(6, 0.998);
                case.outstanding = 3.9;
            }),
            (step(|case| case.resend(23, 0.5)), &[]),
        ),
        row(
            "UNEQUAL_CONNECTIONS",
            note,
            unequal(&[("a", [64, 64]), ("b", [64, 63])]),
            unequal(&[("a", [64, 64]), ("b", [64, 64])]),
            // One target swept over its connections.
            (unequal(&[("a", [64, 64]), ("a", [64, 1])]), &[]),
        ),
        // Callers that differ are no like load.
        row(
            "UNEQUAL_CONNECTIONS",
            note,
            unequal(&[("a", [64, 1]), ("a", [64, 16]), ("b", [64, 64])]),
            unequal(&[("a", [64, 1]), ("a", [64, 64]), ("b", [64, 64])]),
            (unequal(&[("a", [64, 64]), ("b", [8, 8])]), &[]),
        ),
        row(
            "PARTS_MISSING",
            note,
            merged(&[1, 3], Some(3)),
            merged(&[1, 2], Some(2)),
            // Clients that share nothing.
            (merged(&[1, 3], None), &[]),
        ),
    ]
}

#[test]
fn each_warning_comes_at_its_limit_and_for_no_other_trouble() {
    assert_eq!(names(&Case::new().warnings()), [""; 0]);
    let rows = rows();
    for (at, row) in rows.iter().enumerate() {
        let name = row.name;
        let own = row.brings.iter().find(|warning| warning.name() == name);
        let severity = own.map(Warning::severity);
        let brings = names(&row.brings);
        assert_eq!(severity, Some(row.severity), "row {at}: {name}: {brings:?}");
        let below = names(&row.below);
        assert!(!below.contains(&name), "row {at}: {name} below its limit");
        let (beside, expected) = &row.beside;
        assert_eq!(&names(beside), expected, "row {at}: beside {name}");
        assert!(!expected.contains(&name));
    }
    for name in NAMES {
        assert!(
            rows.iter().any(|row| row.name == *name),
            "{name} is untested"
        );
    }
}

#[test]
fn a_limit_of_the_client_invalidates_from_nine_tenths_on() {
    let severity = |busiest_worker| Warning::from(ClientBound { busiest_worker }).severity();
    assert_eq!(
        [0.89, 0.91].map(severity),
        [Severity::Note, Severity::Invalid]
    );
}

#[test]
fn nothing_measured_is_invalid_and_a_little_is_not() {
    let samples = |samples| Warning::from(TooFewSamples { samples }).severity();
    assert_eq!([0, 1].map(samples), [Severity::Invalid, Severity::Note]);
    let runs = |runs| Warning::from(FewRuns { runs }).severity();
    assert_eq!([0, 1].map(runs), [Severity::Invalid, Severity::Note]);
}

#[test]
fn the_client_is_blamed_for_its_own_pauses_alone() {
    let remedy = |in_system, between| {
        let callers = 8.0;
        let law = LittlesLaw {
            callers,
            in_system,
            between,
        };
        Warning::from(law).remedy()
    };
    let is_blamed =
        |in_system, between: Option<f64>| remedy(in_system, between).contains("(--workers)");
    assert!(is_blamed(7.0, Some(0.52)) && !is_blamed(7.0, Some(0.48)));
    assert!(is_blamed(7.0, None) && !is_blamed(9.0, None));
    assert!(remedy(7.0, Some(0.0)).starts_with("some callers had no request out"));
    assert!(remedy(9.0, Some(0.0)).starts_with("more requests were out"));
}

#[test]
fn a_remedy_names_the_flags_that_are_there() {
    let bimodal = Warning::from(Bimodal {
        low_p50: 1,
        high_p50: 2,
        high_share: 0.5,
    });
    let text = "give client and server cores of their own (taskset), or quote both levels";
    assert_eq!(bimodal.remedy_with(|_| false), text);
    assert_eq!(bimodal.remedy(), text.replace("taskset", "taskset, --pin"));
    let noisy = Warning::from(Noisy { half_width: 0.2 });
    assert_eq!(
        noisy.remedy_with(|flag| flag == "-d"),
        "measure longer (-d), repeat, and look for other load"
    );
}

#[test]
fn a_stall_is_seen_wherever_it_is_and_told_with_its_length() {
    let told = |gap, late| -> Vec<String> {
        let warnings = step(|case| {
            case.few(3000);
            case.silent(gap, late);
        });
        warnings.iter().map(ToString::to_string).collect()
    };
    // Short ones in time, at 1 ms: 50 ms are 50 replies.
    for (gap, sentence) in [
        ([1207, 1257], "no reply for 50 ms, starting at 1.21 s"),
        ([1000, 2500], "no reply for 1.50 s, starting at 1.00 s"),
        (
            [0, 800],
            "no reply for at least 800 ms, from the start of the window",
        ),
    ] {
        assert_eq!(told(gap, 8), [sentence]);
    }
    // From the end of the window on, half of the eight callers wait.
    assert_eq!(
        told([2995, 3200], 4),
        ["no reply for 205 ms, starting at 3.00 s"]
    );
    assert_eq!(told([2995, 3200], 3), [""; 0]);
    assert_eq!(told([1500, 3000], 0), ["no reply since 1.5 s"]);
    // A server that never replied was not there before.
    assert_eq!(told([0, 3000], 0), [""; 0]);
}

/// Returns the stall that is found in these stretches without a reply, in milliseconds.
fn stalled(gaps: &[[u64; 2]], max: u64) -> Stalled {
    let warnings = step(|case| {
        for gap in gaps {
            case.silent(*gap, 8);
        }
        case.step.summary.times[Time::Response].max = Some(max * 1_000_000);
    });
    match &warnings[..] {
        [Warning::Stalled(found)] => found.clone(),
        others => panic!("{others:?}"),
    }
}

#[test]
fn threads_that_wait_for_each_other_do_not_wait_for_other_programs() {
    let with = |others_seconds| {
        step(|case| {
            case.balance(3.0, |balance| {
                wait_for_others(balance, 3.0);
                balance.others_seconds = others_seconds;
            });
        })
    };
    // They waited for half of the time for which they were ready, and others had 1.2 % of the CPU time.
    let names = |warnings: &[Warning]| -> Vec<_> { warnings.iter().map(Warning::name).collect() };
    assert_eq!(names(&with(0.07)), [""; 0]);
    assert_eq!(names(&with(0.13)), ["FOREIGN_LOAD"]);
}

#[test]
fn the_numbers_include_a_stall_if_a_request_waited_for_its_end() {
    let remedy = |max| Warning::from(stalled(&[[0, 800]], max)).remedy();
    assert!(remedy(721).ends_with("the numbers include the stall"));
    assert!(remedy(719).contains("the response times do not include the stall"));
}

#[test]
fn stalls_that_come_regularly_are_told_with_their_period() {
    let every = |times: &[u64]| {
        let gaps: Vec<[u64; 2]> = times.iter().map(|at| [*at, at + 104]).collect();
        stalled(&gaps, 200)
    };
    let regular = every(&[200, 800, 1395, 2000, 2610]);
    assert_eq!(regular.period, Some(0.605));
    assert_eq!(
        Warning::from(regular).to_string(),
        "no reply for 104 ms, starting at 2.61 s: the longest of 5 such pauses, which recur every 605 ms"
    );
    // Three do not tell; of five periods, one may be another.
    assert_eq!(every(&[200, 800, 1400]).period, None);
    assert_eq!(every(&[200, 800, 1400, 2000]).period, Some(0.6));
    assert_eq!(every(&[200, 800, 1400, 1935]).period, None);
    assert_eq!(every(&[0, 300, 600, 900, 1500, 1800]).period, Some(0.3));
    assert_eq!(every(&[0, 300, 600, 1200, 1500, 2100]).period, None);
}

#[test]
fn a_drift_is_more_than_chance_and_has_a_bound() {
    let drift = |slots: Vec<u64>| {
        let warnings = step(|case| case.slots = slots.into_iter().map(slot).collect());
        match &warnings[..] {
            [Warning::NotSteady(found)] => Some(found.clone()),
            others => {
                assert_eq!(names(others), [""; 0]);
                None
            }
        }
    };
    let levels = |low: u64, high: u64| -> Vec<u64> {
        let level = |slot| if slot < 15 { low } else { high };
        (0..30).map(|slot| level(slot) + slot % 3).collect()
    };
    assert_eq!(drift(levels(100, 105)), None);
    // The rate of a single caller may change by more.
    let one = |high: u64| {
        let slots = levels(100, high).into_iter().map(slot).collect();
        let warnings = step(|case| (case.slots, case.step.settings.callers) = (slots, 1));
        names(&warnings).contains(&"NOT_STEADY")
    };
    assert_eq!([130, 140].map(one), [false, true]);
    // Of callers whose requests end together, a stretch has one request more or less.
    let together = |callers: usize| {
        let slots = (0..40).map(|at| slot(if (10..12).contains(&at) { 2 } else { 4 }));
        let warnings = step(|case| {
            (case.slots, case.step.settings.callers) = (slots.collect(), callers);
        });
        names(&warnings).contains(&"NOT_STEADY")
    };
    assert_eq!([4, 3].map(together), [false, true]);
    let found = drift(levels(100, 150)).unwrap();
    assert!((found.drift + 0.33).abs() < 0.02, "{found:?}");
    assert_eq!((found.from, found.to), (Some(0.0), Some(1.5)));
    let burst = |low: u64| {
        let slots = (0..40).map(|slot| if (10..25).contains(&slot) { 88 } else { low });
        Warning::from(drift(slots.collect()).unwrap()).to_string()
    };
    let sentences = [79, 45, 10, 0].map(burst);
    assert_eq!(
        sentences,
        [
            "from 1.0 s to 2.5 s the rate was 11.4% higher than in the rest",
            "from 1.0 s to 2.5 s the rate was 95.6% higher than in the rest",
            "from 1.0 s to 2.5 s the rate was 8.8 times that of the rest",
            "from 1.0 s to 2.5 s the rate was at least 11 times that of the rest",
        ]
    );
}

#[test]
fn a_short_dip_and_a_stall_are_no_other_level() {
    let dip = |slots: usize, ok: u64, stall: Option<[u64; 2]>| {
        let warnings = step(|case| {
            case.slots[10..10 + slots].fill(slot(ok));
            if let Some(gap) = stall {
                case.silent(gap, 8);
            }
        });
        names(&warnings)
    };
    assert_eq!(dip(1, 500, None), [""; 0]);
    assert_eq!(dip(2, 500, None), ["NOT_STEADY"]);
    // Of 300 ms, 120 are missing, at most half of them for another reason.
    let stall = |length: u64| Some([1080, 1080 + length]);
    assert_eq!(dip(3, 480, stall(62)), ["STALLED"]);
    assert_eq!(dip(3, 480, stall(58)), ["NOT_STEADY", "STALLED"]);
}

#[test]
fn response_times_of_an_open_loop_are_told_of_both_levels() {
    let warnings = step(|case| case.open().responses(10, 40_000));
    let [Warning::NotSteady(found)] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(found.response, Some([40_000_000, 1_000_000]));
    assert_eq!(
        warnings[0].to_string(),
        "from 1.0 s to 3.0 s the response time was 40.0 ms, compared with 1.00 ms in the rest"
    );
    // A stall is most of the stretch in which requests waited for its end.
    let warnings = step(|case| {
        case.open().responses(10, 300_000);
        case.responses(16, 1000);
        case.silent([1010, 1590], 8);
    });
    assert_eq!(names(&warnings), ["STALLED"]);
}

#[test]
fn the_slowest_connection_is_named() {
    let told = |change: fn(&mut Case)| match &step(change)[..] {
        [Warning::SlowConnection(own)] => own.clone(),
        others => panic!("{others:?}"),
    };
    let long = told(|case| case.odd_connection(20, 500_000_000));
    assert_eq!(
        Warning::from(long.clone()).to_string(),
        "1 of 16 connections was slow: local port 40001 to 10.0.0.1:8004 had 20 replies after 500 ms on average; \
         the median of the others is 100 after 1.00 ms"
    );
    let few = told(|case| case.odd_connection(1, 1_000_000));
    let sentence = Warning::from(few).to_string();
    assert!(
        sentence.ends_with("had 1 reply; the median of the others is 100"),
        "{sentence}"
    );
    // One without any reply is the slowest, and without a port has a number.
    let none = told(|case| {
        case.odd_connection(0, 0);
        case.connections[9].slow = true;
        case.connections[9].mean = 9e9;
        for own in &mut case.connections {
            own.local_port = None;
        }
    });
    let sentence = Warning::from(none.clone()).to_string();
    assert_eq!(
        sentence,
        "2 of 16 connections were slow: the slowest (number 5 to 10.0.0.1:8004) had no reply in the window; the median of the others is 100"
    );
    let advice = Warning::from(none.clone()).remedy();
    assert!(!advice.contains("--assign"), "{advice}");
    assert!(Warning::from(none).is_worse_than(&long.into()));
    let advised = |assign: Option<&str>| {
        let warnings = step(|case| {
            case.open().odd_connection(100, 9_000_000);
            case.step.settings.assign = assign.map(str::to_owned);
        });
        warnings[0].remedy().contains("--assign")
    };
    assert_eq!(
        [None, Some("any"), Some("fixed")].map(advised),
        [true, true, false]
    );
}

#[test]
fn lost_packets_are_told_with_the_quantile_that_they_make() {
    let told = |packets, fast| {
        let mut warnings = step(|case| case.resend(packets, fast)).into_iter();
        let own = warnings.find(|own| own.name() == "RETRANSMITS");
        own.map(|own| own.to_string()).unwrap_or_default()
    };
    assert_eq!(
        told(250, 0.98),
        "250 packets were sent again (at most 32 on one connection) in 24,000 requests: enough to make p99 \
         (210 ms); one with nothing sent behind it waits for at least 201 ms"
    );
    assert!(told(240, 0.98).contains("enough to make p99 ("));
    assert!(told(239, 0.98).contains("enough to make p99.9 ("));
    assert!(told(250, 0.995).contains("enough to make p99.9 (210 ms)"));
    assert_eq!(told(23, 0.998), "");
    // It is learned of a loss after a round trip, and no earlier.
    let short = |more: u64| {
        let mut case = Case::new();
        case.resend(250, 1.0);
        let times = Counts::from(vec![(1_000_000, 23_000), (1_000_000 + more, 1000)]);
        case.step.summary.times[Time::Response] = Distribution::of(&times);
        names(&case.warnings()).contains(&"RETRANSMITS")
    };
    assert_eq!([198_000, 202_000].map(short), [false, true]);
    let quic = Retransmits {
        packets: 1,
        most: 1,
        connections: 1,
        requests: 90,
        percent: 99.0,
        time: 5_000_000,
        timeout: None,
    };
    let told = Warning::from(quic).to_string();
    assert_eq!(
        told,
        "1 packet was lost in 90 requests: enough to make p99 (5.00 ms)"
    );
}

#[test]
fn a_trial_far_off_the_others_is_named() {
    let medians = [8.06, 8.16, 8.04, 8.23, 8.04, 208.0];
    let trial = |p50: &f64| trial([120_000.0, p50 * 1000.0, 250_000.0]);
    let run = fixtures::run(medians.iter().map(trial).collect());
    let warnings = Warnings::of_run(&run);
    let [found] = &warnings.kinds[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(
        (found.worst.name(), &found.steps[..]),
        ("UNLIKE_TRIALS", &[5][..])
    );
    assert_eq!(
        found.worst.to_string(),
        "the p50 of trial 6 is 25.8 times the median of the others"
    );
    assert!(warnings.is_valid());
}

#[test]
fn of_a_trials_metrics_the_one_furthest_off_is_told() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 5];
    steps[2] = trial([100.0, 2e6, 1e7]);
    steps[4] = trial([1000.0, 1e6, 3e7]);
    // One without a p99 is no reason to judge the others by less.
    steps[0].summary.times[Time::Response].quantiles = Quantiles::of(|_| None);
    let found = Warnings::of_several_steps(&fixtures::run(steps));
    let told: Vec<String> = found
        .iter()
        .map(|(at, own)| format!("{at}: {own}"))
        .collect();
    assert_eq!(
        told,
        [
            "2: the rate of trial 3 is 0.100 times the median of the others",
            "4: the p99 of trial 5 is 3.00 times the median of the others",
        ]
    );
}

#[test]
fn targets_with_unequal_connections_are_told_with_their_numbers() {
    let run = side_by_side(&[
        ("tcp://h:8004", [8, 8]),
        ("tcp://h:8004", [1000, 1000]),
        ("quic://h:8006", [8, 8]),
        ("quic://h:8006", [1000, 10]),
        ("grpc://h:8005", [1000, 1]),
        ("grpc://h:8005", [1000, 16]),
    ]);
    let warnings = Warnings::of_run(&run);
    let [found] = &warnings.kinds[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(found.steps, [1, 3, 4, 5]);
    assert_eq!(
        found.worst.to_string(),
        "tcp://h:8004 had 1,000 connections, quic://h:8006 10 and grpc://h:8005 1 to 16"
    );
    let remedy = found.worst.remedy_with(|flag| flag == "--connections");
    assert!(
        remedy.starts_with("to compare them, give all the same number (--connections);"),
        "{remedy}"
    );
    assert!(warnings.is_valid());
}

#[test]
fn targets_are_named_in_the_order_of_their_measurements() {
    let mut run = side_by_side(&[("a", [8, 8]), ("b", [8, 1])]);
    run.steps.reverse();
    let told = Warnings::of_run(&run).kinds.remove(0).worst.to_string();
    assert_eq!(told, "a had 8 connections and b 1");
}

#[test]
fn where_measurements_are_compared_connections_are_those_of_their_pairs() {
    let targets = [
        ("TCP", [64, 64]),
        ("QUIC", [64, 64]),
        ("QUIC", [64, 4]),
        ("gRPC", [64, 4]),
    ];
    let concerned = |pairs: &[[usize; 2]]| -> Vec<usize> {
        let mut run = side_by_side(&targets);
        run.pairings = pairs
            .iter()
            .map(|[base, new]| Pairing::new(*base, *new))
            .collect();
        let found = Warnings::of_several_steps(&run);
        found.into_iter().map(|(at, _)| at).collect()
    };
    // As a ladder does: like with like, and one rung with itself on fewer connections.
    assert_eq!(concerned(&[[0, 1], [1, 2], [2, 3]]), [0; 0]);
    assert_eq!(concerned(&[[0, 1], [0, 3]]), [0, 1, 3]);
    assert_eq!(concerned(&[[0, 2], [0, 3]]), [0, 2, 3]);
    assert_eq!(concerned(&[[0, 9]]), [0; 0]);
}

#[test]
fn bulk_streams_may_differ_in_streams() {
    let mut steps = fixtures::bulk("grpc://h:1", &[1.0; 3]);
    steps.extend(fixtures::bulk("tcp://h:2", &[1.0; 3]));
    for step in &mut steps[3..] {
        step.settings.connections = 8;
    }
    let mut run = fixtures::run(steps);
    assert_eq!(Warnings::of_several_steps(&run), []);
    run.pairings = vec![Pairing::new(0, 1)];
    assert_eq!(Warnings::of_several_steps(&run), []);
}

#[test]
fn trials_are_compared_within_their_measurement() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 9];
    for step in &mut steps[5..] {
        *step = trial([10.0, 1e8, 1e9]);
    }
    let mut run = fixtures::run(steps);
    assert_eq!(Warnings::of_several_steps(&run).len(), 4);
    for step in &mut run.steps[5..] {
        step.measurement = 1;
    }
    assert_eq!(Warnings::of_several_steps(&run), []);
}

#[test]
fn trials_are_held_against_each_other_by_what_their_kind_of_run_claims() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 6];
    steps[3] = trial([1000.0, 3e6, 9e7]);
    let told = |kind, callers| {
        let mut run = fixtures::run(steps.clone());
        run.kind = kind;
        for step in &mut run.steps {
            step.settings.callers = callers;
        }
        let found = Warnings::of_several_steps(&run).into_iter();
        let told: Vec<String> = found.map(|(_, own)| own.to_string()).collect();
        told.join("; ")
    };
    let by_p99 = "the p99 of trial 4 is 9.00 times the median of the others";
    assert_eq!(told(Kind::Throughput, 8), by_p99);
    let by_p50 = "the p50 of trial 4 is 3.00 times the median of the others";
    assert_eq!(told(Kind::Ladder, 1), by_p50);
    assert_eq!(told(Kind::Ladder, 8), "");
}

/// Returns a number of the standard normal distribution, from a generator of Lehmer's kind and the
/// transformation of Box and Muller.
fn normal(state: &mut u64) -> f64 {
    let mut uniform = || {
        *state = *state * 48_271 % 2_147_483_647;
        *state as f64 / 2_147_483_647.0
    };
    let radius = (-2.0 * uniform().ln()).sqrt();
    radius * (TAU * uniform()).cos()
}

#[test]
fn trials_that_differ_by_chance_are_seldom_called_unlike() {
    let mut state = 7;
    let mut alarms = 0;
    for set in 0..1000 {
        let deviation = 0.02 + 0.18 * f64::from(set) / 1000.0;
        let mut near = |level: f64| level * (deviation * normal(&mut state)).exp();
        let steps = (0..6).map(|_| trial([near(1000.0), near(1e6), near(1e7)]));
        let run = fixtures::run(steps.collect());
        alarms += usize::from(!Warnings::of_several_steps(&run).is_empty());
    }
    assert!(alarms < 10, "{alarms} of 1,000");
}

#[test]
fn the_worst_of_a_kind_speaks_for_it_and_decides() {
    let step = |busiest_worker: f64| {
        let mut step = fixtures::step(3, |_| vec![1_000_000; 1000]);
        step.warnings = vec![ClientBound { busiest_worker }.into()];
        step
    };
    let mut run = fixtures::run([0.75, 0.99, 0.8].map(step).to_vec());
    let warnings = Warnings::of(&run);
    let busiest_worker = 0.99;
    let found = Found {
        worst: ClientBound { busiest_worker }.into(),
        varies: true,
        steps: vec![0, 1, 2],
        invalid: [0].into(),
    };
    assert_eq!(warnings.kinds, [found]);
    assert!(!warnings.is_valid());
    run.steps.truncate(1);
    assert!(Warnings::of(&run).is_valid());
}

#[test]
fn a_kind_is_written_and_read_by_its_name() {
    let mut all: Vec<Warning> = rows().into_iter().flat_map(|row| row.brings).collect();
    all.push(
        Errors {
            share: 0.5,
            time_share: 0.25,
        }
        .into(),
    );
    for warning in all {
        let json = serde_json::to_value(&warning).unwrap();
        assert_eq!(json["name"], warning.name());
        assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
    }
    let shared = serde_json::to_string(&Warning::from(SharedHost)).unwrap();
    assert_eq!(shared, r#"{"name":"SHARED_HOST"}"#);
    let bound = r#"{"name":"CLIENT_BOUND","busiest_worker":0.93}"#;
    let busiest_worker = 0.93;
    assert_eq!(
        serde_json::from_str::<Warning>(bound).unwrap(),
        ClientBound { busiest_worker }.into()
    );
}

#[test]
fn replies_that_outlast_the_warm_up_ask_for_a_longer_one() {
    // Of 24,000 requests, so many seconds' worth of replies are missing, which took 500 ms each; in the second half of
    // the window, by a factor longer.
    let asks = |[warmup, missing, growth]: [f64; 3], [late, not_sent]: [u64; 2]| {
        let warnings = step(|case| {
            let step = &mut case.open().step;
            step.settings.warmup_seconds = warmup;
            step.summary.rate = (3.0 - missing) * 8000.0 / 3.0;
            step.histograms.times[Time::Service] = vec![(500_000_000, 24_000)].into();
            step.summary.accounting.late = late;
            step.summary.accounting.not_sent = not_sent;
            case.responses(0, 500_000);
            case.responses(15, (500_000.0 * growth) as u64);
        });
        let own = warnings.iter().find(|own| own.name() == "BEHIND_SCHEDULE");
        own.unwrap().to_string().contains("longer than the warm-up")
    };
    // Half a second of replies comes after the window, and of them the warm-up's length came into it.
    assert!(asks([0.2, 0.3, 1.0], [4000, 0]));
    assert!(asks([0.0, 0.5, 1.2], [4000, 0]));
    assert!(
        !asks([0.2, 0.4, 1.0], [4000, 0]),
        "more is missing than that"
    );
    assert!(!asks([0.2, 0.3, 1.0], [1000, 0]), "the rest never came");
    assert!(
        !asks([0.6, 0.3, 1.0], [4000, 0]),
        "the warm-up was long enough"
    );
    assert!(
        !asks([0.2, 0.3, 1.3], [4000, 0]),
        "they took longer and longer"
    );
    assert!(!asks([0.2, 0.3, 1.0], [4000, 1]), "one was not sent");
}
