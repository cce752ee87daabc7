//! Takes a step whose workers are connected through its phases.

use std::{cmp, mem, sync::mpsc::RecvTimeoutError, time::Duration};

use netping_measure::{
    aggregate::Aggregate,
    cost::{Cost, Hiccups},
    fairness::Fairness,
    histogram::{Histogram, histogram, record},
    sample::LoopKind,
    status::Status,
    window::Window,
};
use netping_system::{counters::HostCounters, host};

use crate::{
    clock::{Clock, TimeOfDay},
    engine::{
        hiccups::HiccupMeter,
        measurement::{Measurement, cost, failures, host_events, messages, phase_times},
        observer::{Observer, Phase},
        rate_meter::{AutoWarmup, RateMeter},
        worker::WorkerReport,
        worker_thread::Event,
        workers::{LOOK, Workers},
    },
    error::StartError,
    interrupt::Interrupt,
    plan::{Plan, Warmup},
    probe::reader::CounterReader,
};

/// Time after an interrupt in which replies are still awaited.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(1);

/// A step whose workers are connected. Its loop never waits for anything but the workers.
pub struct Running<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
    observer: &'a dyn Observer,
    workers: &'a Workers,
    counters: CounterReader,
    /// Runs from the window's start to its end.
    hiccups: Option<HiccupMeter>,
    seen_hiccups: Option<Hiccups>,
    /// The machine's counters at the window's start and end.
    host: (HostCounters, HostCounters),
    /// Start of the warm-up, on the run's clock.
    begun: u64,
    time_of_day: TimeOfDay,
    phase: Phase,
    /// Looks for the end of an automatic warm-up until that has come.
    warmup: Option<AutoWarmup>,
    warmup_failed: bool,
    status: Status,
    rate: RateMeter,
    aggregate: Aggregate,
    reports: Vec<WorkerReport>,
}

impl<'a> Running<'a> {
    /// Prepares to measure; requests do not begin yet.
    ///
    /// # Errors
    /// [`StartError::Worker`] if the system refuses a thread.
    pub fn new(
        plan: &'a Plan,
        interrupt: &'a Interrupt,
        observer: &'a dyn Observer,
        workers: &'a Workers,
    ) -> Result<Self, StartError> {
        let counters = CounterReader::start(&plan.target.server)?;
        let begun = workers.clock.now();
        Ok(Self {
            plan,
            interrupt,
            observer,
            workers,
            counters,
            hiccups: None,
            seen_hiccups: None,
            host: <(HostCounters, HostCounters)>::default(),
            begun,
            time_of_day: TimeOfDay::start(),
            phase: Phase::Connect,
            warmup: None,
            warmup_failed: false,
            status: Status::Complete,
            rate: RateMeter::new(begun),
            aggregate: Aggregate::new(plan.loop_kind()),
            reports: Vec::new(),
        })
    }

    /// Warms up, measures, and waits for the last replies.
    ///
    /// # Errors
    /// [`StartError::Broken`].
    pub fn measure(mut self) -> Result<Measurement, StartError> {
        self.begin_warm_up();
        self.workers.start();
        while self.reports.len() < self.plan.execution.workers {
            self.receive()?;
            let now = self.workers.clock.now();
            self.end_warm_up(now);
            self.cut_if_interrupted(now);
            self.enter_phase(now);
            self.rate.tick(now, &self.workers.replies, self.observer);
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
                self.warmup = Some(AutoWarmup::new(
                    self.begun,
                    self.plan.execution.warmup_max,
                    self.plan.loop_kind(),
                ));
            }
        }
    }

    /// Takes what a worker has sent, if anything comes before the next look, or before the window
    /// begins or ends: its cost is read there.
    fn receive(&mut self) -> Result<(), StartError> {
        let (now, window) = (self.workers.clock.now(), self.workers.timeline.window());
        let edges = [window.start, window.end].into_iter();
        let edge = edges
            .filter_map(|edge| edge.checked_sub(now))
            .find(|left| *left > 0);
        let look = LOOK.min(edge.map_or(LOOK, Duration::from_nanos));
        match self.workers.inbox.recv_timeout(look) {
            Ok(Event::Interval { worker, interval }) => {
                self.observer.interval(&interval);
                self.workers.recycle(worker, self.aggregate.add(*interval));
            }
            Ok(Event::Done(report)) => {
                self.aggregate.add_rest(report.outside, &report.successes);
                self.reports.push(*report);
            }
            Ok(Event::Ready(_) | Event::Failed(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(StartError::Broken);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        Ok(())
    }

    /// Begins the window if an automatic warm-up is over.
    fn end_warm_up(&mut self, now: u64) {
        let replies = &self.workers.replies;
        let ended = self
            .warmup
            .as_mut()
            .and_then(|warmup| warmup.ended(now, replies));
        if let Some(steady) = ended {
            self.warmup = None;
            self.warmup_failed = !steady;
            self.set_window(now);
        }
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
            self.counters.read();
        }
        if phase == Phase::Measure {
            // Without a thread for it, the step has no such number.
            self.hiccups = HiccupMeter::start(self.workers.clock).ok();
            self.host.0 = HostCounters::read();
        }
        if phase == Phase::Drain {
            self.counters.read();
            self.seen_hiccups = self.hiccups.take().and_then(HiccupMeter::finish);
            self.host.1 = HostCounters::read();
        }
        self.phase = phase;
        self.observer.phase(phase, planned);
        self.rate.begin_phase(now);
    }

    fn finish(self) -> Measurement {
        let clock_step = self.time_of_day.step();
        let window = self.workers.timeline.window();
        let warmup = Duration::from_nanos(window.start - self.begun);
        let mut reports = self.reports;
        let in_flight = ages(reports.iter().flat_map(|report| report.in_flight.clone()));
        let backlog = self.workers.backlog.drain();
        let backlog = backlog.into_iter().filter(|due| window.contains(*due));
        let mut not_sent = ages(backlog.map(|intended| window.end - intended));
        for own in reports.iter().filter_map(|report| report.not_sent.as_ref()) {
            // All histograms have the same bounds.
            let _ = not_sent.add(own);
        }
        let connections = reports
            .iter()
            .flat_map(|report| report.connections.iter().copied())
            .collect();
        let sum = |of: fn(&WorkerReport) -> u64| reports.iter().map(of).sum();
        let totals = self.aggregate.finish(window, &in_flight, &not_sent);
        let counters = self.counters.finish();
        let (cost, server_note) = cost(
            &reports,
            &totals,
            &counters,
            self.plan.loop_kind() == LoopKind::Closed,
        );
        let readings = counters.ok();
        let cost = Cost {
            client_hiccups: self.seen_hiccups.or_else(|| self.hiccups?.finish()),
            client_host: host_events(self.host),
            ..cost
        };
        Measurement {
            totals,
            status: self.status,
            warmup,
            warmup_failed: self.warmup_failed,
            window_started_at: self.time_of_day.after(warmup),
            clock_step,
            cost,
            server_note,
            server_restarted: readings
                .as_ref()
                .is_some_and(|(start, end)| start.is_restarted_by(end)),
            server_shares_host: readings.is_some_and(|(_, end)| {
                end.boot_id()
                    .is_some_and(|id| host::boot_id().as_deref() == Some(id))
            }),
            fairness: Fairness::of(connections),
            reconnects: sum(|report| report.reconnects),
            ended_by_server: sum(|report| report.ended_by_server),
            phases: phase_times(&reports),
            messages: messages(&reports),
            negotiated: reports
                .iter_mut()
                .find_map(|report| report.negotiated.take()),
            samples: reports
                .iter_mut()
                .flat_map(|report| mem::take(&mut report.samples))
                .collect(),
            details: failures(reports),
        }
    }
}

fn ages(times: impl Iterator<Item = u64>) -> Histogram {
    let mut ages = histogram();
    times.for_each(|age| record(&mut ages, age));
    ages
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
