//! The measurement loop: the callers of one worker, on one thread.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use netping_measure::{
    connect::{ConnectPhase, PhaseTimes},
    error_kind::ErrorKind,
    fairness::PerConnection,
    recorder::{Outside, Recorder, Sink},
    sample::{LoopKind, Sample},
    window::Window,
};
use netping_protocol::{frame::Reply, payload::Exchange, tls::Negotiated};
use netping_system::cpu;
use tokio::{task::JoinHandle, time};

use crate::{
    clock::Clock,
    engine::{
        connection_slot::ConnectionSlot, dispatch::Dispatch, pacer::Pacer, schedule::Schedule,
        timeline::Timeline,
    },
    transport::{Connection, Opened, Transport},
};

/// Pauses of a caller whose connection failed twice or more in a row: a server that is gone must not make it spin.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How often a worker looks whether its callers are done.
const LOOK: Duration = Duration::from_millis(5);

/// How often in each request's time limit a worker looks for requests over it: it is kept to within 2 %.
const PATROLS: u64 = 50;

/// What the callers of a worker do.
#[derive(Debug, Clone)]
pub struct Job {
    /// How requests come about.
    pub kind: LoopKind,
    /// The number of the worker's first caller.
    pub first_caller: u32,
    /// How many callers there are.
    pub callers: usize,
    /// Bytes of payload in each request.
    pub payload: usize,
    /// What each request asks to get back.
    pub reply: Reply,
    /// The most a request may take.
    pub timeout: Duration,
    /// Requests to send within the window, where they are counted.
    pub quota: u64,
    /// When requests are due, in an open loop.
    pub schedule: Option<Schedule>,
    /// The most requests that may be due and wait for a caller.
    pub max_backlog: usize,
    /// Whether the runtime polls all the time.
    pub busy_poll: bool,
}

/// A worker's count of replies, for whoever watches. Only the worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress(AtomicU64);

impl Progress {
    /// Replies so far, warm-up and all.
    pub fn replies(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker knows in the end, beside what its recorder has handed on.
#[derive(Debug, Default)]
pub struct WorkerReport {
    /// Requests outside the window.
    pub outside: Outside,
    /// Successes in each 100 ms since the run's clock began.
    pub slots: Vec<u32>,
    /// The age, in nanoseconds since it was due, of each request without a reply.
    pub in_flight: Vec<u64>,
    /// Requests that were due but never handed to the transport.
    pub not_sent: u64,
    /// What each connection, or each place of one, has served.
    pub connections: Vec<PerConnection>,
    /// Connections opened in place of lost ones.
    pub reconnects: u64,
    /// Connections opened because the server had ended the one before.
    pub ended_by_server: u64,
    /// What it took to open connections within the window.
    pub phases: PhaseTimes,
    /// How connections with a limited number of requests were secured; `None` in the clear, or without any.
    pub negotiated: Option<Negotiated>,
    /// The first failure of each kind, as people read it.
    pub details: BTreeMap<ErrorKind, String>,
    /// CPU time of this thread over the window.
    pub cpu: Duration,
    /// When the last request that counts ended.
    pub last_end: u64,
}

/// What the callers of a worker share; all of them are on one thread.
struct Shared<C, S> {
    job: Job,
    clock: C,
    timeline: Arc<Timeline>,
    progress: Arc<Progress>,
    recorder: RefCell<Recorder<S>>,
    left: Cell<u64>,
    /// In an open loop, who gets which request.
    dispatch: Option<Dispatch>,
    /// What each caller is doing.
    slots: Vec<Slot>,
    details: RefCell<BTreeMap<ErrorKind, String>>,
    phases: RefCell<PhaseTimes>,
    last_end: Cell<u64>,
    /// Callers that have not finished.
    active: Cell<usize>,
}

/// What one caller is doing, for those who look after all.
#[derive(Debug)]
struct Slot {
    /// When its request started; [`IDLE`] while none is out.
    start: Cell<u64>,
    /// When that was due.
    intended: Cell<u64>,
    /// Whether it has a connection.
    connected: Cell<bool>,
    /// Its successes that count, and the sum of their service times in nanoseconds.
    done: Cell<(u64, u64)>,
}

const IDLE: u64 = u64::MAX;

/// Runs the callers of one worker, spread over `lanes`, until the window ends and the drain is over.
pub async fn run<T, C, S>(
    mut job: Job,
    lanes: &[Rc<ConnectionSlot<T>>],
    clock: C,
    timeline: Arc<Timeline>,
    progress: Arc<Progress>,
    sink: S,
) -> WorkerReport
where
    T: Transport,
    C: Clock,
    S: Sink + 'static,
{
    let window = timeline.window();
    let expected = if window.end == u64::MAX {
        0
    } else {
        window.end
    };
    let shared = Rc::new(Shared {
        recorder: RefCell::new(Recorder::new(job.kind, expected, sink)),
        left: Cell::new(job.quota),
        dispatch: job
            .schedule
            .take()
            .map(|schedule| Dispatch::new(schedule, timeline.begin(), job.max_backlog)),
        slots: (0..job.callers).map(|_| Slot::default()).collect(),
        details: RefCell::default(),
        phases: RefCell::default(),
        last_end: Cell::new(0),
        active: Cell::new(job.callers),
        job,
        clock,
        timeline,
        progress,
    });
    let start = |number: usize| {
        let lane = Rc::clone(&lanes[number % lanes.len()]);
        tokio::task::spawn_local(call(Rc::clone(&shared), lane, number))
    };
    let mut callers: Vec<_> = (0..shared.job.callers).map(start).collect();
    let pacer = tokio::task::spawn_local(pace(Rc::clone(&shared)));

    let cpu = shared.look_after(&mut callers, start).await;
    pacer.abort();
    let _ = pacer.await;
    for caller in &callers {
        caller.abort();
    }
    for caller in callers {
        if let Err(error) = caller.await
            && error.is_panic()
        {
            // A caller that is missing would falsify the result.
            std::panic::resume_unwind(error.into_panic());
        }
    }

    let now = shared.clock.now();
    let window = shared.timeline.window();
    let in_flight = shared
        .slots
        .iter()
        .filter_map(|slot| slot.in_flight(now, window, shared.job.kind))
        .collect();
    let not_sent = shared
        .dispatch
        .as_ref()
        .map_or(0, |dispatch| dispatch.not_sent(window));
    let reconnects = lanes.iter().map(|lane| lane.reconnects()).sum();
    let ended_by_server = lanes.iter().map(|lane| lane.ended_by_server()).sum();
    let mut report = WorkerReport {
        in_flight,
        not_sent,
        connections: shared.per_connection(lanes.len()),
        reconnects,
        ended_by_server,
        details: shared.details.take(),
        phases: shared.phases.take(),
        negotiated: lanes.iter().find_map(|lane| lane.negotiated()),
        cpu,
        last_end: shared.last_end.get(),
        ..WorkerReport::default()
    };
    // Every caller is gone, and with it every other owner.
    if let Some(shared) = Rc::into_inner(shared) {
        (report.outside, report.slots) = shared.recorder.into_inner().finish();
    }
    report
}

impl<C: Clock, S: Sink> Shared<C, S> {
    /// Waits until all callers are done or the drain is over, and meanwhile replaces each caller whose request takes
    /// too long: no request pays for a timer. Gives the thread's CPU time over the window.
    async fn look_after(
        &self,
        callers: &mut [JoinHandle<()>],
        start: impl Fn(usize) -> JoinHandle<()>,
    ) -> Duration {
        let mut tick = time::interval(LOOK);
        let timeout = self.job.timeout.as_nanos() as u64;
        let mut next_patrol = 0;
        let (mut at_start, mut at_end) = (None, None);
        loop {
            tick.tick().await;
            let now = self.clock.now();
            let window = self.timeline.window();
            let done = self.active.get() == 0;
            if now >= window.start {
                at_start.get_or_insert_with(cpu::thread_time);
            }
            if done || now >= window.end {
                at_end.get_or_insert_with(cpu::thread_time);
            }
            if done || now >= self.timeline.drain_until() {
                let at_end = at_end.unwrap_or_else(cpu::thread_time);
                return at_end.saturating_sub(at_start.unwrap_or(at_end));
            }
            if now < next_patrol {
                continue;
            }
            next_patrol = now + timeout / PATROLS;
            for (number, slot) in self.slots.iter().enumerate() {
                if slot.age(now).is_some_and(|age| age >= timeout) {
                    callers[number].abort();
                    self.give_up(number, now);
                    callers[number] = start(number);
                }
            }
        }
    }

    /// Records that a caller's request took too long.
    fn give_up(&self, number: usize, now: u64) {
        let slot = &self.slots[number];
        let (kind, detail) = if slot.connected.replace(false) {
            (ErrorKind::Timeout, "no whole reply within --timeout")
        } else {
            (
                ErrorKind::ConnectTimeout,
                "the connection was not there within --timeout",
            )
        };
        let sample = Sample {
            intended: slot.intended.get(),
            start: slot.start.get(),
            end: now,
        };
        self.record(number, sample, Err(kind));
        self.details
            .borrow_mut()
            .entry(kind)
            .or_insert_with(|| detail.to_owned());
    }

    /// What the callers on each of `lanes` connections have done together.
    fn per_connection(&self, lanes: usize) -> Vec<PerConnection> {
        let mut sums = vec![(0, 0); lanes];
        for (number, slot) in self.slots.iter().enumerate() {
            let (requests, sum) = slot.done.get();
            let lane: &mut (u64, u64) = &mut sums[number % lanes];
            *lane = (lane.0 + requests, lane.1 + sum);
        }
        let mean = |(requests, sum): (u64, u64)| {
            if requests > 0 {
                sum as f64 / requests as f64
            } else {
                0.0
            }
        };
        sums.into_iter()
            .map(|done| PerConnection {
                requests: done.0,
                mean: mean(done),
            })
            .collect()
    }

    /// The next request: when it is due, and when it starts. `None` when there will be no more.
    async fn next(&self) -> Option<(u64, u64)> {
        if let Some(dispatch) = &self.dispatch {
            let intended = dispatch
                .take(&self.clock, || self.timeline.window())
                .await?;
            return Some((intended, self.clock.now()));
        }
        let now = self.clock.now();
        let window = self.timeline.window();
        if now >= window.end {
            return None;
        }
        if self.job.kind == LoopKind::Counted && now >= window.start {
            let left = self.left.get();
            self.left.set(left.checked_sub(1)?);
        }
        Some((now, now))
    }

    /// Records a request, and says whether it counts.
    fn record(&self, number: usize, sample: Sample, outcome: Result<(), ErrorKind>) -> bool {
        let slot = &self.slots[number];
        slot.start.set(IDLE);
        let counts = self
            .recorder
            .borrow_mut()
            .record(self.timeline.window(), sample, outcome);
        if outcome.is_ok() {
            if counts {
                let (requests, sum) = slot.done.get();
                slot.done
                    .set((requests + 1, sum + (sample.end - sample.start)));
            }
            self.progress
                .0
                .store(self.progress.replies() + 1, Ordering::Relaxed);
        }
        if self.job.kind == LoopKind::Counted && counts {
            self.last_end.set(sample.end);
        }
        counts
    }

    /// Records what it took to open a connection, up to the end of the first request on it.
    fn record_opening(&self, opened: &Opened, sample: Sample) {
        let mut phases = self.phases.borrow_mut();
        for (phase, spent) in ConnectPhase::ALL.into_iter().zip(opened.spent) {
            if let Some(spent) = spent {
                phases.record(phase, spent);
            }
        }
        phases.record(ConnectPhase::FirstCall, sample.end - opened.at);
        phases.record(ConnectPhase::Total, sample.end - sample.start);
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            start: Cell::new(IDLE),
            intended: Cell::new(IDLE),
            connected: Cell::new(false),
            done: Cell::new((0, 0)),
        }
    }
}

impl Slot {
    /// How long its request has been out.
    fn age(&self, now: u64) -> Option<u64> {
        let start = self.start.get();
        (start != IDLE).then(|| now.saturating_sub(start))
    }

    /// How long ago its request was due, if that is out and is one of the window's.
    fn in_flight(&self, now: u64, window: Window, kind: LoopKind) -> Option<u64> {
        let intended = self.intended.get();
        let counts = intended < window.end && (kind != LoopKind::Open || intended >= window.start);
        self.age(now)
            .filter(|_| counts)
            .map(|_| now.saturating_sub(intended))
    }
}

/// Wakes callers when requests are due, in an open loop.
async fn pace<C: Clock, S: Sink>(shared: Rc<Shared<C, S>>) {
    let Some(dispatch) = &shared.dispatch else {
        return;
    };
    match Pacer::new(shared.clock.clone(), shared.job.busy_poll) {
        Ok(mut pacer) => {
            dispatch
                .pace(&mut pacer, &shared.clock, || shared.timeline.window())
                .await
        }
        // Without it nothing would ever be due, and the accounts would show it: all requests not sent.
        Err(error) => drop(
            shared
                .details
                .borrow_mut()
                .insert(ErrorKind::Other, format!("no timer: {error}")),
        ),
    }
}

/// One caller: a request, its reply, the next request.
async fn call<T: Transport, C: Clock, S: Sink>(
    shared: Rc<Shared<C, S>>,
    lane: Rc<ConnectionSlot<T>>,
    number: usize,
) {
    let job = &shared.job;
    let slot = &shared.slots[number];
    let mut exchange = Exchange::new(job.first_caller + number as u32, job.payload, job.reply);
    let mut held = None;
    let mut pause = Duration::ZERO;
    loop {
        let Some((intended, start)) = shared.next().await else {
            shared.active.set(shared.active.get() - 1);
            return;
        };
        slot.start.set(start);
        slot.intended.set(intended);
        let mut opened = None;
        let now = || shared.clock.now();
        let answer = match lane
            .handle(&mut held, &slot.connected, &mut opened, &now)
            .await
        {
            Ok(connection) => connection.call(&exchange).await,
            Err(failure) => Err(failure),
        };
        let sample = Sample {
            intended,
            start,
            end: shared.clock.now(),
        };
        match answer {
            Ok(()) => {
                let counts = shared.record(number, sample, Ok(()));
                if let Some(opened) = &opened
                    && counts
                {
                    shared.record_opening(opened, sample);
                }
                lane.release(&mut held);
                pause = Duration::ZERO;
            }
            Err(failure) => {
                shared.record(number, sample, Err(failure.kind));
                shared
                    .details
                    .borrow_mut()
                    .entry(failure.kind)
                    .or_insert(failure.detail);
                if failure.lost {
                    lane.discard(&mut held);
                    time::sleep(pause).await;
                    pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                } else {
                    lane.release(&mut held);
                }
            }
        }
        exchange.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Manual,
        transport::mock::{Behaviour, Mock},
    };
    use netping_measure::{
        aggregate::{Aggregate, Totals},
        histogram::Histogram,
        recorder::Interval,
    };

    const MS: u64 = 1_000_000;
    const STEP: u64 = MS / 20;
    const WINDOW: Window = Window {
        start: 1000 * MS,
        end: 3000 * MS,
    };

    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<Interval>>>);

    impl Sink for Kept {
        fn hand_on(&mut self, interval: Interval) {
            self.0.borrow_mut().push(interval);
        }

        fn spare(&mut self) -> Option<Interval> {
            None
        }
    }

    /// One caller of a closed loop, with at most `quota` requests where they are counted.
    fn one_caller(kind: LoopKind, quota: u64) -> Job {
        Job {
            kind,
            first_caller: 0,
            callers: 1,
            payload: 16,
            reply: Reply::Echo,
            timeout: Duration::from_secs(1),
            quota,
            schedule: None,
            max_backlog: 0,
            // On a manual clock, to wait is to look at it again and again.
            busy_poll: true,
        }
    }

    /// Runs callers against a mock on a manual clock. A mock of requests one after the other moves the clock itself;
    /// otherwise it moves on by `STEP` whenever everybody has had a turn.
    fn measure(job: Job, window: Window, behaviour: Behaviour) -> (Totals, WorkerReport, u64) {
        let clock = Manual::default();
        let mock = Mock::new(clock.clone(), behaviour);
        let timeline = Arc::new(Timeline::new());
        timeline.set(0, window, 10 * MS);
        let kept = Kept::default();
        let kind = job.kind;
        let lanes: Vec<_> = (0..job.callers)
            .map(|_| Rc::new(ConnectionSlot::new(mock.clone(), None)))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default());
        let report = runtime.unwrap().block_on(async {
            for lane in &lanes {
                lane.open().await.unwrap();
            }
            if behaviour.side_by_side {
                let clock = clock.clone();
                tokio::task::spawn_local(async move {
                    loop {
                        clock.advance(STEP);
                        tokio::task::yield_now().await;
                    }
                });
            }
            run(job, &lanes, clock, timeline, Arc::default(), kept.clone()).await
        });
        let mut collector = Aggregate::new(kind);
        collector.add_rest(report.outside, &report.slots);
        for interval in kept.0.take() {
            collector.add(interval);
        }
        let window = if window.end == u64::MAX {
            Window {
                end: report.last_end,
                ..window
            }
        } else {
            window
        };
        (
            collector.finish(window, &report.in_flight, report.not_sent),
            report,
            mock.calls(),
        )
    }

    #[test]
    fn neither_connecting_nor_warm_up_counts() {
        let behaviour = Behaviour {
            connect: 500 * MS,
            service: 10 * MS,
            ..Behaviour::default()
        };
        let (collected, _, calls) = measure(one_caller(LoopKind::Closed, 0), WINDOW, behaviour);
        // Connected at 500 ms; requests end at 510, 520, ... 3000 ms, of which 1000 to 2990 ms lie in the window.
        assert_eq!(collected.accounting.ok, 200);
        assert_eq!(collected.outside.ok, 50);
        assert_eq!(calls, 250);
        assert!((netping_measure::summary::Summary::of(&collected).rate - 100.0).abs() < 1e-9);
        assert!(
            collected
                .service
                .equivalent(collected.service.max(), 10 * MS)
        );
    }

    #[test]
    fn a_count_of_requests_is_kept_exactly() {
        let behaviour = Behaviour {
            service: 10 * MS,
            ..Behaviour::default()
        };
        let window = Window {
            start: 0,
            end: u64::MAX,
        };
        let (collected, report, calls) =
            measure(one_caller(LoopKind::Counted, 37), window, behaviour);
        assert_eq!((collected.accounting.ok, calls), (37, 37));
        assert_eq!(report.last_end, 370 * MS);
    }

    #[test]
    fn every_failed_request_is_accounted_for() {
        let behaviour = Behaviour {
            service: 10 * MS,
            fail_every: 7,
            ..Behaviour::default()
        };
        let (collected, report, calls) =
            measure(one_caller(LoopKind::Closed, 0), WINDOW, behaviour);
        let summary = netping_measure::summary::Summary::of(&collected);
        assert_eq!(summary.scheduled, 200);
        assert_eq!(
            summary.accounting.errors,
            BTreeMap::from([(ErrorKind::Mismatch, 28)])
        );
        assert_eq!(
            summary.scheduled + summary.outside_ok + summary.outside_errors,
            calls
        );
        assert_eq!(summary.failed_time.count, 28);
        assert_eq!(report.details[&ErrorKind::Mismatch], "mock");
    }

    /// A server that stops for half a second at 1,000 requests/s. Four callers see four slow requests; the five hundred
    /// that were due meanwhile are in the response time, and none is lost.
    #[test]
    fn what_was_due_while_the_server_stood_still_waited() {
        let window = Window {
            start: 0,
            end: 10_000 * MS,
        };
        let behaviour = Behaviour {
            service: 2 * STEP,
            side_by_side: true,
            stopped: (5000 * MS, 5500 * MS),
            ..Behaviour::default()
        };
        let job = Job {
            callers: 4,
            schedule: Schedule::new(crate::plan::Arrival::Constant(1000.0), 0, 1),
            max_backlog: 100_000,
            ..one_caller(LoopKind::Open, 0)
        };
        let (collected, report, calls) = measure(job, window, behaviour);
        let slow = |histogram: &Histogram| histogram.count_between(2 * MS, u64::MAX);
        let summary = netping_measure::summary::Summary::of(&collected);
        assert_eq!(
            (
                summary.accounting.ok,
                calls,
                report.in_flight.len(),
                report.not_sent
            ),
            (10_000, 10_000, 0, 0)
        );
        assert_eq!(slow(&collected.service), 4);
        assert!(
            (500..520).contains(&slow(&collected.response)),
            "{}",
            slow(&collected.response)
        );
        let percent = |histogram: &Histogram, percent| histogram.value_at_percentile(percent) / MS;
        // The worst hundredth was due in the first 100 ms of the half second, and then waited its turn.
        assert!(
            (398..405).contains(&percent(&collected.response, 99.0)),
            "{}",
            percent(&collected.response, 99.0)
        );
        assert!((498..502).contains(&percent(&collected.response, 100.0)));
        assert_eq!(percent(&collected.service, 99.0), 0);
        assert!(percent(&collected.lag, 100.0) >= 490);
    }
}
