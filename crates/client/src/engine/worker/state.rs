//! The state that the callers of one worker share.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use netping_measure::{
    accounting::Accounting,
    connect::ConnectPhase,
    counts::Counts,
    error_kind::ErrorKind,
    fairness::{ConnectionSums, ServiceSums},
    histogram::record,
    recorder::{Recorder, Remainder, Sink},
    sample::Sample,
    window::Window,
};
use tokio::time;

use super::{
    assignment::{Assignment, WorkerReport},
    stamps::Dissection,
};
use crate::{
    clock::Clock,
    engine::{
        dispatch::Dispatch,
        fixed_dispatch::FixedDispatch,
        schedule::{FixedSchedule, Schedule},
        turns::Turn,
    },
    plan::Assign,
    transport::{Carried, Milestones, Stamps},
};

/// The state that the callers of one worker share; all of them are on one thread.
pub(super) struct Shared<C, S> {
    pub assignment: Assignment,
    pub clock: C,
    pub supply: Supply,
    pub callers: Vec<CallerState>,
    /// Callers that have not finished.
    pub active: Cell<usize>,
    /// Time of the window in which callers paused after a failure, in nanoseconds.
    paused: Cell<u64>,
    recorder: RefCell<Recorder<S>>,
    /// Takes requests apart; `None` if the plan does not ask for that.
    dissection: Option<RefCell<Dissection<C>>>,
    /// The results so far.
    report: RefCell<WorkerReport>,
}

/// The supply of requests.
pub(super) enum Supply {
    /// A closed loop: there is always one, or, where callers take turns with those of other plans, when it
    /// is this one's.
    Closed(Option<Turn>),
    /// An open loop, whose requests are for any caller.
    Any(Dispatch),
    /// An open loop, whose requests each belong to a connection.
    Fixed(FixedDispatch),
}

impl Supply {
    fn new(assignment: &Assignment, turn: Option<Turn>) -> Self {
        let Assignment { plan, share, .. } = assignment;
        let (timeline, backlog) = (assignment.timeline.clone(), assignment.backlog.clone());
        let worker = [share.worker, plan.execution.workers];
        let together = plan.execution.together;
        let whole = plan.whole();
        let supply = match plan.load.assign {
            Assign::Any => Schedule::new(plan.load.arrival, worker, whole.client, together)
                .map(|own| own.with_bursts(plan.load.bursts))
                .map(|schedule| Dispatch::new(schedule, timeline, backlog, share.worker))
                .map(Self::Any),
            Assign::Fixed => FixedSchedule::new(whole.arrival, *share, whole.connections, together)
                .map(|own| own.with_bursts(plan.load.bursts))
                .map(|own| FixedDispatch::new(own, share.connections, timeline, backlog))
                .map(Self::Fixed),
        };
        supply.unwrap_or(Self::Closed(turn))
    }
}

/// The state of one caller.
#[derive(Debug, Default)]
pub(super) struct CallerState {
    /// Its request, which has not ended yet; `None` while none is out.
    pub request: Cell<Option<Sample>>,
    /// It has a connection.
    pub connected: Cell<bool>,
    /// End of its last request, if that succeeded; 0 otherwise.
    ended: Cell<u64>,
    /// Its successes that count.
    served: Cell<ServiceSums>,
}

impl<C: Clock, S: Sink> Shared<C, S> {
    pub fn new(assignment: Assignment, turn: Option<Turn>, clock: C, sink: S) -> Self {
        let (plan, share) = (&assignment.plan, assignment.share);
        Self {
            recorder: RefCell::new(Recorder::new(plan.loop_kind(), sink)),
            supply: Supply::new(&assignment, turn),
            callers: (0..share.callers).map(|_| CallerState::default()).collect(),
            report: RefCell::default(),
            dissection: plan
                .execution
                .anatomy
                .then(|| RefCell::new(Dissection::new(clock.clone()))),
            active: Cell::new(share.callers),
            paused: Cell::default(),
            clock,
            assignment,
        }
    }

    /// Returns the window, in which requests count.
    pub fn window(&self) -> Window {
        self.assignment.timeline.window()
    }

    /// Starts a caller's next request; `None` when there will be no more.
    pub async fn next(&self, number: usize) -> Option<Sample> {
        let ended = self.callers[number].ended.get();
        let free_since = || if ended == 0 { self.clock.now() } else { ended };
        let turn = match &self.supply {
            Supply::Closed(turn) => turn.as_ref(),
            Supply::Any(dispatch) => return dispatch.take(free_since(), &self.clock).await,
            Supply::Fixed(dispatch) => {
                let connection = number % self.assignment.share.connections;
                let taken = dispatch.take(connection, free_since(), &self.clock);
                return taken.await;
            }
        };
        if let Some(turn) = turn {
            turn.next(number).await;
        }
        let now = self.clock.now();
        let window = self.window();
        let Assignment { plan, timeline, .. } = &self.assignment;
        let is_counted = plan.execution.extent.requests().is_some() && now >= window.start;
        let is_over = now >= window.end || (is_counted && !timeline.issue(|| self.clock.now()));
        if is_over {
            if let Some(turn) = turn {
                turn.leave(number);
            }
            return None;
        }
        if ended >= window.start {
            self.report.borrow_mut().between += now - ended;
        }
        Some(Sample {
            intended: now,
            free: now,
            start: now,
            end: now,
        })
    }

    /// Lets a caller pause before its next request; it holds up nobody with whom it takes turns.
    pub async fn pause(&self, number: usize, pause: Duration) {
        let (now, window) = (self.clock.now(), self.window());
        let end = now.saturating_add(pause.as_nanos() as u64).min(window.end);
        let paused = end.saturating_sub(now.max(window.start));
        self.paused.set(self.paused.get() + paused);
        let Supply::Closed(Some(turn)) = &self.supply else {
            return time::sleep(pause).await;
        };
        turn.leave(number);
        time::sleep(pause).await;
        turn.rejoin(number);
    }

    /// Records a request; returns true if it counts.
    pub fn record(&self, number: usize, sample: Sample, outcome: Result<(), ErrorKind>) -> bool {
        let caller = &self.callers[number];
        caller.request.set(None);
        caller
            .ended
            .set(if outcome.is_ok() { sample.end } else { 0 });
        let counts = self
            .recorder
            .borrow_mut()
            .record(self.window(), sample, outcome);
        if outcome.is_ok() {
            if counts {
                let service_time = sample.end - sample.start;
                caller.served.set(caller.served.get().with(service_time));
            }
            self.assignment.replies.add(sample.end - sample.intended);
            if self.assignment.plan.execution.keep_samples {
                self.report.borrow_mut().samples.push(sample);
            }
        }
        counts
    }

    /// Records the time to open a connection, up to the end of the first request on it.
    pub fn record_opening(&self, opened: &Milestones<'_>, sample: Sample) {
        let phases = &mut self.report.borrow_mut().phases;
        for (phase, spent) in ConnectPhase::ALL.into_iter().zip(opened.spent) {
            if let Some(spent) = spent {
                phases.record(phase, spent);
            }
        }
        phases.record(ConnectPhase::FirstCall, sample.end - opened.last);
        phases.record(ConnectPhase::Total, sample.end - sample.start);
    }

    /// Records the messages of a successful call that streams, and for how long the server held it back; `counts` as
    /// [`Shared::record`] has it.
    pub fn record_messages(&self, carried: &Carried<'_>, sample: Sample, counts: bool) {
        if carried.held_back > 0 && counts {
            let mut report = self.report.borrow_mut();
            report.held_back.record(carried.held_back);
        }
        if carried.sent == 0 && carried.received == 0 {
            return;
        }
        let mut report = self.report.borrow_mut();
        let messages = report.messages.get_or_insert_default();
        if self.window().contains(sample.end) {
            messages.sent += carried.sent;
            messages.received += carried.received;
        }
        if let Some(first) = carried.first
            && counts
        {
            record(&mut messages.first, first - sample.start);
            for gap in &carried.gaps {
                record(&mut messages.gap, *gap);
            }
        }
    }

    /// Takes a success apart by its time stamps, `None` where one is missing, and by the times that the server told;
    /// `counts` as [`Shared::record`] has it.
    pub fn record_parts(
        &self,
        sample: Sample,
        stamps: Option<Stamps>,
        server_times: Option<(u64, u64)>,
        counts: bool,
    ) {
        if let Some(dissection) = &self.dissection {
            let mut dissection = dissection.borrow_mut();
            dissection.add(sample, (stamps, server_times), counts);
        }
    }

    /// Keeps the detail of the first failure of a kind.
    pub fn note(&self, kind: ErrorKind, detail: String) {
        let details = &mut self.report.borrow_mut().details;
        details.entry(kind).or_insert(detail);
    }

    /// Hands the last interval on; returns the results of the callers, which were spread over so
    /// many connection slots.
    pub fn finish(self, slots: usize) -> WorkerReport {
        let (now, window) = (self.clock.now(), self.window());
        let callers = self.callers.iter();
        let not_sent = match &self.supply {
            Supply::Closed(_) => Counts::default(),
            Supply::Any(dispatch) => dispatch.not_sent(window),
            Supply::Fixed(dispatch) => dispatch.not_sent(window),
        };
        WorkerReport {
            remainder: Remainder {
                in_flight: callers
                    .filter_map(|own| own.in_flight(now, window))
                    .collect(),
                not_sent,
                course: self.recorder.into_inner().finish(),
                accounting: Accounting {
                    paused_ns: self.paused.get(),
                    ..Accounting::default()
                },
            },
            connections: per_connection(&self.callers, slots),
            anatomy: self.dissection.map(|own| own.into_inner().finish()),
            ..self.report.into_inner()
        }
    }
}

/// Returns the successes of the callers on each of `slots` connection slots.
fn per_connection(callers: &[CallerState], slots: usize) -> Vec<ConnectionSums> {
    let mut sums = vec![ConnectionSums::default(); slots];
    for (number, caller) in callers.iter().enumerate() {
        let slot = &mut sums[number % slots];
        slot.callers += 1;
        slot.served.add(caller.served.get());
    }
    sums
}

impl CallerState {
    /// Returns the age of its request since it was due, if one is out and belongs to the window.
    fn in_flight(&self, now: u64, window: Window) -> Option<u64> {
        let Sample { intended, .. } = self.request.get()?;
        let counts = window.contains(intended);
        counts.then(|| now.saturating_sub(intended))
    }
}
