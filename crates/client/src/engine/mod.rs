//! Runs one step: connect, warm up, measure, drain, collect.
//!
//! Each worker is an OS thread with its own single-threaded runtime, its own connections and its own recorder. Workers
//! send finished intervals here over a channel; on the way of a request they share only the [`Timeline`].

mod connection_slot;
mod dispatch;
mod observer;
mod pacer;
mod rate_meter;
mod schedule;
mod timeline;
mod worker;
mod worker_thread;

pub use self::observer::{Observer, Phase};

use std::{
    cmp,
    collections::BTreeMap,
    num::NonZeroU64,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use netping_measure::{
    aggregate::{Aggregate, Totals},
    connect::PhaseTimes,
    cost::Cost,
    error_kind::ErrorKind,
    fairness::Fairness,
    recorder::Interval,
    sample::LoopKind,
    status::Status,
    window::Window,
};
use netping_protocol::tls::Negotiated;
use netping_system::cores;
use tokio::sync::watch;

use crate::{
    clock::{self, Clock, Monotonic},
    engine::{
        rate_meter::{AutoWarmup, Live},
        schedule::Schedule,
        timeline::Timeline,
        worker::{Job, Progress, WorkerReport},
        worker_thread::{Event, Loop, WorkerThread},
    },
    error::StartError,
    interrupt::Interrupt,
    plan::{Arrival, Extent, Plan, Warmup},
    probe::metrics::{Probe, Reading},
    resolve::resolve,
    transport::{Endpoint, Transport, Visitor},
};

/// How long after an interrupt replies are still waited for.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(1);

/// How often the engine looks up: at interrupts, at the phases' ends, at the live rate.
const LOOK: Duration = Duration::from_millis(20);

/// A window shorter than this many seconds, ten looks, is too short to tell what it cost.
const LEAST_FOR_COST: f64 = 0.2;

/// What came of a step.
#[derive(Debug)]
pub struct Outcome {
    /// What was recorded.
    pub collected: Totals,
    /// Whether it ran to its end.
    pub status: Status,
    /// How long the warm-up was.
    pub warmup: Duration,
    /// Whether an automatic warm-up found no steady rate in its time.
    pub warmup_failed: bool,
    /// When the window began, in nanoseconds since 1970, UTC.
    pub window_started_at: Option<u64>,
    /// By how much the time of day was set meanwhile, in nanoseconds.
    pub clock_step: i64,
    /// What it used of the machines.
    pub cost: Cost,
    /// Why the server's counters could not be read, where they were to be expected.
    pub server_note: Option<String>,
    /// How evenly requests were spread over connections; `None` with fewer than two.
    pub fairness: Option<Fairness>,
    /// Connections opened in place of lost ones.
    pub reconnects: u64,
    /// Connections opened because the server had ended the one before.
    pub ended_by_server: u64,
    /// What it took to open connections within the window.
    pub phases: PhaseTimes,
    /// How connections were secured.
    pub negotiated: Option<Negotiated>,
    /// The first failure of each kind, as people read it.
    pub details: BTreeMap<ErrorKind, String>,
}

/// Runs `plan`.
///
/// # Errors
/// [`StartError`], and then no request was sent.
pub fn run(
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<Outcome, StartError> {
    let addresses = resolve(&plan.target)?;
    let (target, resolve_each, connector) = (
        plan.target.clone(),
        plan.resolve_each,
        plan.connector.clone(),
    );
    let reply_length = plan.reply_length.clone().unwrap_or_default();
    let endpoint = Endpoint {
        target,
        addresses,
        resolve_each,
        connector,
        reply_length,
    };
    plan.kind.visit(
        endpoint,
        Step {
            plan,
            interrupt,
            observer,
        },
    )
}

struct Step<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
    observer: &'a dyn Observer,
}

impl Visitor for Step<'_> {
    type Output = Result<Outcome, StartError>;

    fn visit<T: Transport + Send>(self, transport: T) -> Self::Output {
        let plan = self.plan;
        let (events, inbox) = mpsc::channel();
        let clock = Monotonic::start();
        let timeline = Arc::new(Timeline::new());
        let (go, going) = watch::channel(false);
        let cores = if plan.pin { cores::own() } else { Vec::new() };
        let mut spares = Vec::new();
        let mut progress = Vec::new();
        let mut threads = Vec::new();
        self.observer.phase(Phase::Connect, None);
        let mut first_caller = 0;
        for worker in 0..plan.workers {
            let (spare, empty) = mpsc::channel();
            let counter = Arc::new(Progress::default());
            let callers = share(plan.callers, plan.workers, worker);
            let crew = WorkerThread {
                transport: transport.clone(),
                job: Job {
                    kind: self.loop_kind(),
                    first_caller,
                    callers,
                    payload: plan.payload,
                    reply: plan.reply,
                    timeout: plan.timeout,
                    quota: match plan.extent {
                        Extent::Time(_) => 0,
                        Extent::Requests(requests) => {
                            share(requests as usize, plan.workers, worker) as u64
                        }
                    },
                    schedule: Schedule::new(plan.arrival, worker, plan.workers),
                    max_backlog: share(plan.max_backlog, plan.workers, worker),
                    busy_poll: plan.busy_poll,
                },
                lanes: share(plan.connections, plan.workers, worker),
                requests_per_connection: plan.requests_per_connection.map(NonZeroU64::get),
                core: (!cores.is_empty()).then(|| cores[worker % cores.len()]),
                clock,
                timeline: Arc::clone(&timeline),
                progress: Arc::clone(&counter),
                go: going.clone(),
                channels: Loop {
                    worker,
                    full: events.clone(),
                    empty,
                },
            };
            first_caller += callers as u32;
            threads.push(
                thread::Builder::new()
                    .name(format!("client-{worker}"))
                    .spawn(move || crew.run())?,
            );
            spares.push(spare);
            progress.push(counter);
        }
        drop((events, going));

        // Without the word to go, workers end.
        let negotiated = self.await_connections(&inbox)?;
        let probe = Probe::new(plan.server.clone());
        let running = Running {
            step: &self,
            clock,
            timeline,
            progress,
            spares,
            probe,
            negotiated,
        };
        let outcome = running.measure(&go, &inbox);
        for thread in threads {
            thread.join().map_err(|_| StartError::Broken)?;
        }
        outcome
    }
}

impl Step<'_> {
    fn loop_kind(&self) -> LoopKind {
        match self.plan.extent {
            _ if self.plan.arrival != Arrival::Closed => LoopKind::Open,
            Extent::Time(_) => LoopKind::Closed,
            Extent::Requests(_) => LoopKind::Counted,
        }
    }

    /// Waits until all workers are connected, and says how the connections are secured.
    fn await_connections(&self, inbox: &Receiver<Event>) -> Result<Option<Negotiated>, StartError> {
        let mut negotiated = None;
        let mut waiting = self.plan.workers;
        while waiting > 0 {
            match inbox.recv_timeout(LOOK) {
                Ok(Event::Ready(Ok(secured))) => {
                    negotiated = negotiated.or(secured);
                    waiting -= 1;
                }
                Ok(Event::Ready(Err(failure))) => {
                    return Err(StartError::Connect {
                        target: self.plan.target.clone(),
                        failure,
                    });
                }
                Ok(Event::Failed(error)) => return Err(error.into()),
                Ok(Event::Interval { .. } | Event::Done(_))
                | Err(RecvTimeoutError::Disconnected) => {
                    return Err(StartError::Broken);
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_set() => {
                    return Err(StartError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(negotiated)
    }
}

/// The engine's view of a step whose workers are connected.
struct Running<'a> {
    step: &'a Step<'a>,
    clock: Monotonic,
    timeline: Arc<Timeline>,
    progress: Vec<Arc<Progress>>,
    spares: Vec<Sender<Interval>>,
    probe: Probe,
    negotiated: Option<Negotiated>,
}

impl Running<'_> {
    fn measure(
        self,
        go: &watch::Sender<bool>,
        inbox: &Receiver<Event>,
    ) -> Result<Outcome, StartError> {
        let plan = self.step.plan;
        let begun = self.clock.now();
        let time_of_day = clock::TimeOfDay::start();
        let mut auto = None;
        match plan.warmup {
            Warmup::Time(warmup) => self.set_window(begun, begun + nanos(warmup)),
            Warmup::Auto => {
                self.timeline.set(
                    begun,
                    Window {
                        start: u64::MAX,
                        end: u64::MAX,
                    },
                    0,
                );
                auto = Some(AutoWarmup::new(begun));
            }
        }
        // Workers hold the other end until they are done.
        let _ = go.send(true);

        let mut collector = Aggregate::new(self.step.loop_kind());
        let mut reports: Vec<WorkerReport> = Vec::new();
        let mut at_start = None;
        let mut at_end = None;
        let mut status = Status::Complete;
        let mut warmup_failed = false;
        let mut live = Live::new(begun);
        let mut phase = Phase::Connect;
        while reports.len() < plan.workers {
            match inbox.recv_timeout(LOOK) {
                Ok(Event::Interval { worker, interval }) => {
                    self.step.observer.interval(&interval);
                    // A worker that is done no longer wants it.
                    let _ = self.spares[worker].send(collector.add(*interval));
                }
                Ok(Event::Done(report)) => {
                    collector.add_rest(report.outside, &report.slots);
                    reports.push(report);
                }
                Ok(Event::Ready(_) | Event::Failed(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(StartError::Broken);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.clock.now();
            if let Some(steady) = auto
                .as_mut()
                .and_then(|auto| auto.ended(now, &self.progress))
            {
                auto = None;
                warmup_failed = !steady;
                self.set_window(begun, now);
            }
            if status == Status::Complete
                && self.step.interrupt.is_set()
                && now < self.timeline.window().end
            {
                status = Status::Partial;
                self.timeline
                    .cut(now, nanos(cmp::min(plan.timeout, INTERRUPTED_DRAIN)));
            }
            let window = self.timeline.window();
            let current = match now {
                _ if now < window.start => Phase::Warmup,
                _ if now < window.end => Phase::Measure,
                _ => Phase::Drain,
            };
            if current != phase {
                phase = current;
                let planned = match phase {
                    Phase::Warmup => plan.warmup.duration(),
                    Phase::Measure => plan.extent.duration(),
                    Phase::Connect | Phase::Drain => None,
                };
                self.step.observer.phase(phase, planned);
                live.begin_phase(now);
            }
            if phase != Phase::Warmup && at_start.is_none() {
                at_start = Some(self.probe.read());
            }
            if phase == Phase::Drain && at_end.is_none() {
                at_end = Some(self.probe.read());
            }
            live.tick(now, &self.progress, self.step.observer);
        }

        let mut window = self.timeline.window();
        if window.end == u64::MAX {
            window.end = reports
                .iter()
                .map(|report| report.last_end)
                .max()
                .unwrap_or(0)
                .max(window.start);
        }
        let at_end = at_end.unwrap_or_else(|| self.probe.read());
        let in_flight: Vec<u64> = reports
            .iter()
            .flat_map(|report| report.in_flight.iter().copied())
            .collect();
        let not_sent = reports.iter().map(|report| report.not_sent).sum();
        let collected = collector.finish(window, &in_flight, not_sent);
        let read = at_start
            .unwrap_or_else(|| Err(String::new()))
            .and_then(|start| Ok((start, at_end?)));
        let (cost, server_note) = cost(&reports, &collected, read);
        let (details, phases) = gathered(&mut reports);
        let fairness = Fairness::of(
            reports
                .iter()
                .flat_map(|report| report.connections.iter().copied())
                .collect(),
        );
        let reconnects = reports.iter().map(|report| report.reconnects).sum();
        let ended_by_server = reports.iter().map(|report| report.ended_by_server).sum();
        let warmup = Duration::from_nanos(window.start - begun);
        let clock_step = time_of_day.step();
        // What was measured says more than what was opened before.
        let negotiated = reports
            .iter_mut()
            .find_map(|report| report.negotiated.take())
            .or(self.negotiated);
        Ok(Outcome {
            collected,
            status,
            warmup,
            warmup_failed,
            window_started_at: time_of_day.after(warmup),
            clock_step,
            cost,
            server_note,
            fairness,
            reconnects,
            ended_by_server,
            phases,
            negotiated,
            details,
        })
    }
}

/// What failed, and what opening connections took, over all workers.
fn gathered(reports: &mut [WorkerReport]) -> (BTreeMap<ErrorKind, String>, PhaseTimes) {
    let mut details = BTreeMap::new();
    let mut phases = PhaseTimes::default();
    for report in reports {
        details.append(&mut report.details);
        phases.merge(&report.phases);
    }
    (details, phases)
}

impl Running<'_> {
    /// Begins the window, and with it the end of the run.
    fn set_window(&self, begun: u64, start: u64) {
        let plan = self.step.plan;
        let end = match plan.extent {
            Extent::Time(duration) => start + nanos(duration),
            Extent::Requests(_) => u64::MAX,
        };
        self.timeline.set(
            begun,
            Window { start, end },
            nanos(plan.timeout) + nanos(LOOK),
        );
    }
}

/// What a step used of the machines, with the server's counters at the window's start and end; and why those tell nothing,
/// where they were to be expected.
fn cost(
    reports: &[WorkerReport],
    collected: &Totals,
    read: Result<(Reading, Reading), String>,
) -> (Cost, Option<String>) {
    let server = read.and_then(|(start, end)| start.demand_until(&end, collected.arrived()));
    let note = server
        .as_ref()
        .err()
        .filter(|note| !note.is_empty())
        .cloned();
    if collected.window.seconds() < LEAST_FOR_COST {
        return (Cost::default(), note);
    }
    let cpu: Vec<f64> = reports
        .iter()
        .map(|report| report.cpu.as_secs_f64())
        .collect();
    let handled = collected.arrived() + collected.accounting.failed();
    let cost = Cost {
        client_cpu_us_per_request: (handled > 0)
            .then(|| cpu.iter().sum::<f64>() * 1e6 / handled as f64),
        server: server.ok().flatten(),
        client_worker_cpu_seconds: cpu,
    };
    (cost, note)
}

/// One of `parts` nearly equal shares of `whole`.
fn share(whole: usize, parts: usize, number: usize) -> usize {
    whole / parts + usize::from(number < whole % parts)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (whole, parts) in [(10, 3), (2, 2), (1, 4), (0, 3)] {
            let shares: Vec<_> = (0..parts)
                .map(|number| share(whole, parts, number))
                .collect();
            assert_eq!(shares.iter().sum::<usize>(), whole);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
