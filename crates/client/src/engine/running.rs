//! Takes a step whose workers are connected through its phases.

use std::{
    cmp, mem,
    sync::{Arc, mpsc::RecvTimeoutError},
    thread,
    time::Duration,
};

use netping_measure::{
    accounting::Accounting,
    aggregate::{Aggregate, Totals},
    cost::{Cost, ServerDemand},
    counts::Counts,
    sample::LoopKind,
    statistics::warm_up::WarmUpDetector,
    status::Status,
    window::{INTERVAL, Window},
};
use netping_system::counters::HostCounters;

use crate::{
    clock::{Clock, TimeOfDay},
    engine::{
        balance::{BalanceMeter, Counted, Processes, complete_balances},
        hiccups::{HiccupMeter, Lateness},
        measured::{Measured, complete, counted_requests, host_events},
        observer::{Observer, Phase},
        paths::{PathReadings, PathSeconds},
        rate_meter::RateMeter,
        worker::WorkerReport,
        worker_part::Event,
        workers::{self, LOOK, Workers},
    },
    error::StartError,
    interrupt::Interrupt,
    plan::{PartNumber, Plan, Warmup},
    probe::{metrics::Reading, reader::CounterReader},
};

/// Time after an interrupt in which replies are still awaited.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(1);

/// The connections and processes of a step, and memory for its wake-ups. To find them takes milliseconds, which no request
/// must wait for: it is done before requests begin, and before the moment of a common start.
pub struct Prepared {
    /// The account of the connections so far.
    opened: PathReadings,
    processes: Processes,
    lateness: Lateness,
}

impl Prepared {
    /// Finds it once the workers are connected.
    pub fn find(plans: &[Plan], workers: &Workers) -> Self {
        let targets = plans.iter().map(|plan| &plan.target);
        Self {
            opened: PathReadings::read(plans.iter().zip(&workers.parties)),
            processes: Processes::find(targets, plans[0].execution.in_step),
            lateness: Lateness::default(),
        }
    }
}

/// A step whose workers are connected. Its loop never waits for anything but the workers.
pub struct Running<'a> {
    /// The plan of the first party, of which the others differ in their targets alone.
    plan: &'a Plan,
    parties: Vec<Party<'a>>,
    interrupt: &'a Interrupt,
    observer: &'a dyn Observer,
    workers: &'a Workers,
    /// Runs from the window's start to its end.
    hiccups: Option<HiccupMeter>,
    /// The machine's counters at the window's start.
    host: HostCounters,
    /// Processes and memory for the window's start; `None` once that has come.
    prepared: Option<Prepared>,
    /// Runs as long.
    balance: Option<BalanceMeter>,
    /// The account of the connections at the window's start and end.
    paths: [PathReadings; 2],
    /// The account of each second.
    path_seconds: PathSeconds,
    /// Start of the warm-up, on the run's clock.
    begun: u64,
    time_of_day: TimeOfDay,
    phase: Phase,
    phase_start: u64,
    /// Looks for the end of an automatic warm-up until that has come.
    warmup: Option<WarmUpDetector>,
    warmup_failed: bool,
    status: Status,
    meter: RateMeter,
    /// The current rate, in replies per second.
    rate: f64,
    /// The machine's part of the cost: its CPUs, hiccups and counters over the window.
    machine: Cost,
    /// The number of workers' parts that are done.
    done: usize,
}

/// The sums and counters of one plan while it is measured.
struct Party<'a> {
    plan: &'a Plan,
    counters: CounterReader,
    aggregate: Aggregate,
    /// The sum over the workers that are done.
    report: WorkerReport,
}

/// The totals and reports of one plan, once its window is over.
struct Ended<'a> {
    plan: &'a Plan,
    readings: Result<(Reading, Reading), String>,
    totals: Totals,
    report: WorkerReport,
}

impl<'a> Running<'a> {
    /// Prepares to measure; requests do not begin yet.
    ///
    /// # Errors
    /// [`StartError::Worker`] if the system refuses a thread.
    pub fn new(
        plans: &'a [Plan],
        interrupt: &'a Interrupt,
        observer: &'a dyn Observer,
        workers: &'a Workers,
        mut prepared: Prepared,
    ) -> Result<Self, StartError> {
        let party = |plan: &'a Plan| -> Result<Party<'a>, StartError> {
            let own = plans.iter().zip(&workers.parties);
            let own = own.filter(|(other, _)| plan.target.is_same_server(&other.target));
            let replies = own.flat_map(|(_, party)| &party.replies);
            let replies: Vec<_> = replies.map(Arc::clone).collect();
            let count = move || replies.iter().map(|counter| counter.count()).sum();
            Ok(Party {
                plan,
                counters: CounterReader::start(
                    &plan.target.server,
                    plan.execution.perf_events,
                    count,
                )?,
                aggregate: Aggregate::new(plan.loop_kind()),
                report: WorkerReport::default(),
            })
        };
        let parties = plans.iter().map(party).collect::<Result<_, _>>()?;
        // At the moment itself: where the client is late, its first requests are, too.
        let time_of_day = plans[0]
            .execution
            .start_at
            .map_or_else(TimeOfDay::start, TimeOfDay::since);
        let begun = workers.clock.now().saturating_sub(time_of_day.elapsed());
        Ok(Self {
            plan: &plans[0],
            parties,
            interrupt,
            observer,
            workers,
            hiccups: None,
            host: HostCounters::default(),
            balance: None,
            paths: [mem::take(&mut prepared.opened), PathReadings::default()],
            prepared: Some(prepared),
            path_seconds: PathSeconds::default(),
            begun,
            time_of_day,
            phase: Phase::Connect,
            phase_start: begun,
            warmup: None,
            warmup_failed: false,
            status: Status::Complete,
            meter: RateMeter::new(begun),
            rate: 0.0,
            machine: Cost::default(),
            done: 0,
        })
    }

    /// Warms up, measures, and waits for the last replies.
    ///
    /// # Errors
    /// [`StartError::Broken`].
    pub fn measure(mut self) -> Result<Vec<Measured>, StartError> {
        self.begin_warm_up();
        self.workers.start();
        // A window without a warm-up has begun.
        self.enter_phase(self.workers.clock.now());
        while self.done < self.plan.execution.workers * self.parties.len() {
            self.receive()?;
            let now = self.workers.clock.now();
            self.look(now);
            self.cut_if_interrupted(now);
            self.enter_phase(now);
            self.read_second(now);
        }
        Ok(self.finish())
    }

    fn begin_warm_up(&mut self) {
        match self.plan.execution.warmup {
            Warmup::Time(warmup) => self.set_window(self.begun + nanos(warmup)),
            Warmup::Auto => {
                let unknown = Window {
                    start: u64::MAX,
                    end: u64::MAX,
                };
                self.workers.timeline.set(self.begun, unknown, 0);
                self.warmup = Some(WarmUpDetector::default());
            }
        }
    }

    /// Takes what a worker has sent, if it is this client's turn and anything comes before the next look, or before the window
    /// begins or ends, or a second of it: its cost is read there.
    fn receive(&mut self) -> Result<(), StartError> {
        let (now, window) = (self.workers.clock.now(), self.workers.timeline.window());
        let second = window.start.saturating_add(self.path_seconds.next());
        let edges = [window.start, second, window.end].into_iter();
        let edge = edges
            .filter_map(|edge| edge.checked_sub(now))
            .find(|left| *left > 0);
        let look = LOOK.min(edge.map_or(LOOK, Duration::from_nanos));
        if window.contains(now) && !is_turn(self.plan.whole().client, now - window.start) {
            thread::sleep(look);
            return Ok(());
        }
        let has_lost_one = self.workers.has_lost_one();
        match self.workers.inbox.recv_timeout(look) {
            Ok((party, Event::Interval(interval, spare))) => {
                self.observer.interval(&interval);
                // A worker that is done no longer wants it.
                let _ = spare.send(self.parties[party].aggregate.add(*interval));
            }
            Ok((party, Event::Done(report))) => {
                self.parties[party].report.add(*report);
                self.done += 1;
            }
            Err(RecvTimeoutError::Timeout) if !has_lost_one => {}
            _ => return Err(StartError::Broken),
        }
        Ok(())
    }

    /// Tells the observer the rate, ten times a second, and begins the window if an automatic warm-up
    /// is over.
    fn look(&mut self, now: u64) {
        let replies = self.workers.parties.iter().flat_map(|party| &party.replies);
        let Some(look) = self.meter.look(now, replies) else {
            return;
        };
        // Smoothed over about a second.
        self.rate = if self.rate == 0.0 {
            look.rate
        } else {
            self.rate + (look.rate - self.rate) * look.elapsed.min(1.0)
        };
        let elapsed = Duration::from_nanos(now - self.phase_start);
        self.observer.tick(elapsed, self.rate);
        let Some(detector) = &mut self.warmup else {
            return;
        };
        // The rate of an open loop is given, and shows nothing.
        let ended = detector.add(match self.plan.loop_kind() {
            LoopKind::Closed => look.rate,
            LoopKind::Open => look.mean,
        });
        if ended.is_some() || now - self.begun >= nanos(self.plan.execution.warmup_max) {
            self.warmup = None;
            self.warmup_failed = ended.is_none();
            // Ahead of every worker, so that each request of the window is issued as one of it.
            self.set_window(self.workers.clock.now() + nanos(LOOK));
        }
    }

    /// Reads the account of the connections if a second of the window is over.
    fn read_second(&mut self, now: u64) {
        let window = self.workers.timeline.window();
        let elapsed = now.min(window.end).saturating_sub(window.start);
        self.path_seconds.read(elapsed, &self.workers.parties[0]);
    }

    /// Sets the window, and with it the end of the run.
    fn set_window(&self, start: u64) {
        let length = self.plan.execution.extent.duration();
        let end = length.map_or(u64::MAX, |length| start + nanos(length));
        let drain = nanos(self.plan.load.timeout) + nanos(LOOK);
        self.workers
            .timeline
            .set(self.begun, Window { start, end }, drain);
    }

    /// Ends the window, or the wait for the last replies, if the user wants no more.
    fn cut_if_interrupted(&mut self, now: u64) {
        if self.status == Status::Complete && (self.interrupt.is_set() || self.observer.ends_step())
        {
            self.status = Status::Partial;
            // No window begins any more.
            self.warmup = None;
            let drain = cmp::min(self.plan.load.timeout, INTERRUPTED_DRAIN);
            self.workers.timeline.cut(now, nanos(drain));
        }
    }

    /// Enters the phase that `now` lies in, and has the server's counters read at the window's
    /// start and end.
    fn enter_phase(&mut self, now: u64) {
        let window = self.workers.timeline.window();
        let (phase, planned) = match now {
            _ if now < window.start => (Phase::Warmup, self.plan.execution.warmup.duration()),
            _ if now < window.end => (Phase::Measure, self.plan.execution.extent.duration()),
            _ => (Phase::Drain, None),
        };
        if phase == self.phase {
            return;
        }
        if phase != Phase::Warmup && self.phase != Phase::Measure {
            self.read_counters();
        }
        if phase == Phase::Measure {
            self.host = HostCounters::read();
            if let Some(prepared) = self.prepared.take() {
                // Without a thread for it, the step has no such number.
                self.hiccups = HiccupMeter::start(self.workers.clock, prepared.lateness).ok();
                self.balance = Some(BalanceMeter::start(prepared.processes));
            }
            // With many connections this takes a while, by which the CPUs' accounts must not begin or end late.
            if self.phase == Phase::Warmup {
                self.paths[0] = self.paths[0].again(self.parties());
            }
            self.path_seconds = PathSeconds::start(&self.paths[0]);
        }
        if phase == Phase::Drain {
            self.read_counters();
            let cost = &mut self.machine;
            cost.balances = self
                .balance
                .take()
                .map_or_else(Vec::new, BalanceMeter::finish);
            cost.client_host = host_events(&self.host, &HostCounters::read());
            // After the others, since its thread may still sleep.
            cost.client_hiccups = self.hiccups.take().and_then(HiccupMeter::finish);
            self.paths[1] = PathReadings::read(self.parties());
        }
        self.phase = phase;
        self.observer.phase(phase, planned);
        self.phase_start = now;
    }

    /// Returns every plan with what its workers share.
    fn parties(&self) -> impl Iterator<Item = (&Plan, &workers::Party)> + Clone {
        let plans = self.parties.iter().map(|party| party.plan);
        plans.zip(&self.workers.parties)
    }

    fn read_counters(&mut self) {
        for party in &mut self.parties {
            party.counters.read();
        }
    }

    fn finish(self) -> Vec<Measured> {
        let clock_step = self.time_of_day.step();
        let window = self.workers.timeline.window();
        let warmup = Duration::from_nanos(window.start - self.begun);
        let shared = self.workers.parties.iter();
        let parties = self.parties.into_iter().zip(shared);
        let ended: Vec<Ended<'_>> = parties
            .map(|(party, shared)| party.end(window, &shared.backlog.not_sent(window)))
            .collect();
        // The server's counters are of all its requests, and do not tell those of two targets apart.
        let of_server = |of: &Ended<'_>| {
            let (mut sum, mut is_one_target) = (Accounting::default(), true);
            for other in &ended {
                let (own, other_target) = (&of.plan.target, &other.plan.target);
                if own.is_same_server(other_target) {
                    sum += &other.totals.accounting;
                    is_one_target &= own.url == other_target.url;
                }
            }
            let demand = of.demand(&sum)?;
            Ok(demand.map(|own| {
                if is_one_target {
                    own
                } else {
                    own.without_each_request()
                }
            }))
        };
        let demands: Vec<_> = ended.iter().map(of_server).collect();
        let mut machine = self.machine;
        // Without one of the client's, the step was too short for any.
        if !machine.balances.is_empty() {
            complete_balances(&mut machine.balances, &counted(&ended, &demands));
        }
        let is_alone = ended.len() == 1;
        let plans: Vec<&Plan> = ended.iter().map(|own| own.plan).collect();
        let measured = ended.into_iter().zip(demands).enumerate();
        let measured = measured.map(|(number, (own, demand))| {
            let mut own = own.measured(demand, &machine);
            let [start, end] = &self.paths;
            own.path = start.account(end, &plans, number, &own.report.connections);
            self.path_seconds.complete(&mut own.totals.intervals);
            own.status = self.status;
            own.warmup = warmup;
            own.warmup_failed = self.warmup_failed;
            own.window_started_at = self.time_of_day.after(warmup);
            own.clock_step = clock_step;
            if !is_alone {
                // The threads' time is that of all targets.
                own.report.cost.client_cpu_us_per_request = None;
            }
            own
        });
        measured.collect()
    }
}

impl<'a> Party<'a> {
    /// Returns what it was at the end of `window`, in which these requests found no caller.
    fn end(mut self, window: Window, not_sent: &Counts) -> Ended<'a> {
        self.report.remainder.not_sent.add(not_sent);
        self.aggregate.add_remainder(&self.report.remainder);
        Ended {
            plan: self.plan,
            readings: self.counters.finish(),
            totals: self.aggregate.finish(window),
            report: self.report,
        }
    }
}

impl Ended<'_> {
    /// Returns what its server had by its counters, where `requests` are all requests to it; or why that is not
    /// known.
    fn demand(&self, requests: &Accounting) -> Result<Option<ServerDemand>, String> {
        let (start, end) = self.readings.as_ref().map_err(Clone::clone)?;
        // Where the server does not count its requests, one of several clients knows only its own.
        let is_one_of_several = self.plan.execution.in_step;
        let own = if is_one_of_several {
            0
        } else {
            requests.arrived()
        };
        let demand = start.demand_until(end, own)?;
        let requests = counted_requests(self.plan, [start, end], requests);
        Ok(demand.map(|demand| ServerDemand { requests, ..demand }))
    }

    /// Returns what was measured, where its server had this, and the machine that.
    fn measured(self, demand: Result<Option<ServerDemand>, String>, machine: &Cost) -> Measured {
        let Self {
            plan,
            readings,
            totals,
            mut report,
        } = self;
        let server_note = demand.as_ref().err().filter(|note| !note.is_empty());
        let server_note = server_note.cloned();
        let is_closed = plan.loop_kind() == LoopKind::Closed;
        let between = is_closed.then_some(report.between);
        let cost = Cost {
            balances: machine.balances.clone(),
            client_hiccups: machine.client_hiccups,
            client_host: machine.client_host,
            ..mem::take(&mut report.cost)
        };
        report.cost = complete(cost, &totals, between, demand.ok().flatten());
        let readings = readings.ok();
        Measured {
            totals,
            status: Status::Complete,
            warmup: Duration::ZERO,
            warmup_failed: false,
            window_started_at: None,
            clock_step: 0,
            server_note,
            server_restarted: readings
                .as_ref()
                .is_some_and(|(start, end)| start.is_restarted_by(end)),
            server_shares_host: readings.is_some_and(|(_, end)| end.is_of_this_host()),
            path: None,
            report,
        }
    }
}

/// Returns what the counters of these plans' servers tell, of each server once.
fn counted<'a>(
    ended: &'a [Ended<'_>],
    demands: &'a [Result<Option<ServerDemand>, String>],
) -> Vec<Counted<'a>> {
    let mut all: Vec<Counted<'_>> = Vec::new();
    for (own, demand) in ended.iter().zip(demands) {
        let target = &own.plan.target;
        if !all.iter().any(|other| target.is_same_server(other.target)) {
            all.push(Counted {
                target,
                demand: demand.as_ref().ok().and_then(Option::as_ref),
                readings: own.readings.as_ref().ok(),
            });
        }
    }
    all
}

/// Returns true where it is a client's turn to add up its seconds, so many nanoseconds after the window's start: one after
/// the other in the first half of a second. All at once, they would hold up requests where they share a machine.
fn is_turn(client: PartNumber, elapsed: u64) -> bool {
    let before = (client.number - 1) as u64;
    let begin = INTERVAL / 2 * before / client.of as u64;
    // A wait that begins later would take the next second as soon as it is there.
    let end = INTERVAL - nanos(LOOK);
    before == 0 || (begin..end).contains(&(elapsed % INTERVAL))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_load_add_up_their_seconds_one_after_another() {
        let begins = |number, of| {
            let mut times = (0..1000).map(|ms| 3 * INTERVAL + ms * 1_000_000);
            let first = times.find(|at| is_turn(PartNumber { number, of }, *at));
            first.map(|at| at / 1_000_000 - 3000)
        };
        assert_eq!(begins(1, 1), Some(0));
        let each: Vec<_> = (1..=4).map(|number| begins(number, 4)).collect();
        assert_eq!(each, [Some(0), Some(125), Some(250), Some(375)]);
        assert_eq!(begins(1000, 1000), Some(500));
        let [only, last] = [1, 4].map(|of| PartNumber { number: of, of });
        assert!(is_turn(only, INTERVAL - 1) && !is_turn(last, INTERVAL - nanos(LOOK)));
    }
}
