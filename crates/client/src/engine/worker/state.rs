//! The state that the callers of one worker share.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
    time::Duration,
};

use netping_measure::{
    connect::{ConnectPhase, PhaseTimes},
    error_kind::ErrorKind,
    fairness::PerConnection,
    messages::Messages,
    recorder::{Outside, Recorder, Sink},
    sample::Sample,
    window::Window,
};

use super::assignment::{Assignment, WorkerReport};
use crate::{
    clock::Clock,
    engine::{
        dispatch::{Dispatch, Due},
        rate_meter::ReplyCounter,
        schedule::Schedule,
        share::Share,
        timeline::Timeline,
    },
    plan::Plan,
    transport::{Carried, Opened},
};

const IDLE: u64 = u64::MAX;

/// The state that the callers of one worker share; all of them are on one thread.
pub(super) struct Shared<C, S> {
    pub plan: Arc<Plan>,
    pub share: Share,
    pub clock: C,
    pub timeline: Arc<Timeline>,
    /// Distributes the requests of an open loop.
    pub dispatch: Option<Dispatch>,
    pub callers: Vec<CallerState>,
    /// Callers that have not finished.
    pub active: Cell<usize>,
    replies: Arc<ReplyCounter>,
    recorder: RefCell<Recorder<S>>,
    /// Every success, if they are to be kept.
    samples: Option<RefCell<Vec<Sample>>>,
    /// Time of the callers between a reply and the next request, within the window.
    between: Cell<u64>,
    /// Requests are counted.
    counted: bool,
    details: RefCell<BTreeMap<ErrorKind, String>>,
    phases: RefCell<PhaseTimes>,
    messages: RefCell<Option<Messages>>,
}

/// The state of one caller.
#[derive(Debug)]
pub(super) struct CallerState {
    /// Start of its request; [`IDLE`] while none is out.
    pub start: Cell<u64>,
    /// That request.
    pub due: Cell<Due>,
    /// It has a connection.
    pub connected: Cell<bool>,
    /// End of its last request, if that succeeded; 0 otherwise.
    ended: Cell<u64>,
    /// Its successes that count, and the sum of their service times in nanoseconds.
    done: Cell<(u64, u64)>,
}

impl<C: Clock, S: Sink> Shared<C, S> {
    pub fn new(assignment: Assignment, clock: C, sink: S) -> Self {
        let Assignment {
            plan,
            share,
            timeline,
            replies,
            backlog,
        } = assignment;
        let window = timeline.window();
        let expected = if window.end == u64::MAX {
            0
        } else {
            window.end
        };
        let kind = plan.loop_kind();
        let schedule = Schedule::new(plan.load.arrival, share.worker, plan.execution.workers);
        Self {
            recorder: RefCell::new(Recorder::new(kind, expected, sink)),
            between: Cell::new(0),
            samples: plan.execution.keep_samples.then(RefCell::default),
            counted: plan.execution.extent.requests().is_some(),
            dispatch: schedule
                .map(|schedule| Dispatch::new(schedule, timeline.begin(), backlog, share.worker)),
            callers: (0..share.callers).map(|_| CallerState::default()).collect(),
            details: RefCell::default(),
            phases: RefCell::default(),
            messages: RefCell::default(),
            active: Cell::new(share.callers),
            plan,
            share,
            clock,
            timeline,
            replies,
        }
    }

    /// Returns a caller's next request and its start; `None` when there will be no more.
    pub async fn next(&self, number: usize) -> Option<(Due, u64)> {
        let ended = self.callers[number].ended.get();
        if let Some(dispatch) = &self.dispatch {
            let free_since = if ended == 0 { self.clock.now() } else { ended };
            let due = dispatch
                .take(free_since, &self.clock, || self.timeline.window())
                .await?;
            return Some((due, self.clock.now()));
        }
        let now = self.clock.now();
        let window = self.timeline.window();
        if now >= window.end {
            return None;
        }
        if self.counted && now >= window.start && !self.timeline.issue(|| self.clock.now()) {
            return None;
        }
        if ended >= window.start {
            self.between.set(self.between.get() + (now - ended));
        }
        let due = Due {
            intended: now,
            free: now,
        };
        Some((due, now))
    }

    /// Records a request; returns true if it counts.
    pub fn record(&self, number: usize, sample: Sample, outcome: Result<(), ErrorKind>) -> bool {
        let caller = &self.callers[number];
        caller.start.set(IDLE);
        caller
            .ended
            .set(if outcome.is_ok() { sample.end } else { 0 });
        let counts = self
            .recorder
            .borrow_mut()
            .record(self.timeline.window(), sample, outcome);
        if outcome.is_ok() {
            if counts {
                let (requests, sum) = caller.done.get();
                let service_time = sample.end - sample.start;
                caller.done.set((requests + 1, sum + service_time));
            }
            self.replies.add(sample.end - sample.intended);
            if let Some(samples) = &self.samples {
                samples.borrow_mut().push(sample);
            }
        }
        counts
    }

    /// Records the time to open a connection, up to the end of the first request on it.
    pub fn record_opening(&self, opened: &Opened, sample: Sample) {
        let mut phases = self.phases.borrow_mut();
        for (phase, spent) in ConnectPhase::ALL.into_iter().zip(opened.spent) {
            if let Some(spent) = spent {
                phases.record(phase, spent);
            }
        }
        phases.record(ConnectPhase::FirstCall, sample.end - opened.at);
        phases.record(ConnectPhase::Total, sample.end - sample.start);
    }

    /// Records the messages of a successful call that streams; `counts` as [`Shared::record`] has it.
    pub fn record_messages(&self, carried: &Carried<'_>, sample: Sample, counts: bool) {
        if carried.is_empty() {
            return;
        }
        let mut messages = self.messages.borrow_mut();
        let messages = messages.get_or_insert_default();
        if self.timeline.window().contains(sample.end) {
            messages.add_call(carried.sent, carried.received);
        }
        if let Some(first) = carried.first
            && counts
        {
            messages.record_first(first - sample.start);
        }
    }

    /// Keeps the detail of the first failure of a kind.
    pub fn note(&self, kind: ErrorKind, detail: String) {
        self.details.borrow_mut().entry(kind).or_insert(detail);
    }

    /// Returns the results of the callers, which were spread over so many connection slots.
    pub fn report(&self, slots: usize) -> WorkerReport {
        let now = self.clock.now();
        let window = self.timeline.window();
        let in_flight = self
            .callers
            .iter()
            .filter_map(|caller| caller.in_flight(now, window));
        WorkerReport {
            in_flight: in_flight.collect(),
            not_sent: self
                .dispatch
                .as_ref()
                .map(|dispatch| dispatch.not_sent(window)),
            connections: self.per_connection(slots),
            phases: self.phases.take(),
            messages: self.messages.take(),
            details: self.details.take(),
            samples: self.samples.as_ref().map(RefCell::take).unwrap_or_default(),
            between: Duration::from_nanos(self.between.get()),
            ..WorkerReport::default()
        }
    }

    /// Hands the last interval on; returns the requests outside the window, and the successes in
    /// each 100 ms.
    pub fn finish(self) -> (Outside, Vec<u32>) {
        self.recorder.into_inner().finish()
    }

    /// Returns the requests on each of `slots` connection slots.
    fn per_connection(&self, slots: usize) -> Vec<PerConnection> {
        let mut sums = vec![(0, 0); slots];
        for (number, caller) in self.callers.iter().enumerate() {
            let (requests, sum) = caller.done.get();
            let slot: &mut (u64, u64) = &mut sums[number % slots];
            *slot = (slot.0 + requests, slot.1 + sum);
        }
        let connection = |(requests, sum): (u64, u64)| PerConnection {
            requests,
            mean: sum as f64 / requests.max(1) as f64,
        };
        sums.into_iter().map(connection).collect()
    }
}

impl Default for CallerState {
    fn default() -> Self {
        Self {
            start: Cell::new(IDLE),
            due: Cell::new(Due {
                intended: IDLE,
                free: IDLE,
            }),
            connected: Cell::new(false),
            ended: Cell::new(0),
            done: Cell::new((0, 0)),
        }
    }
}

impl CallerState {
    /// Returns the age of its request since the start, if one is out.
    pub fn age(&self, now: u64) -> Option<u64> {
        let start = self.start.get();
        (start != IDLE).then(|| now.saturating_sub(start))
    }

    /// Returns the age of its request since it was due, if one is out and belongs to the window.
    fn in_flight(&self, now: u64, window: Window) -> Option<u64> {
        let Due { intended, .. } = self.due.get();
        self.age(now)
            .filter(|_| window.contains(intended))
            .map(|_| now.saturating_sub(intended))
    }
}
