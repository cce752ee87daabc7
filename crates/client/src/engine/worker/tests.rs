//! The measurement loop against a mock transport on a manual clock.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc, time::Duration};

use netping_measure::{
    aggregate::{Aggregate, Totals},
    error_kind::ErrorKind,
    histogram::{Histogram, histogram, record},
    recorder::{Interval, Sink},
    summary::Summary,
    window::Window,
};
use netping_protocol::secure::Connector;

use super::*;
use crate::{
    clock::Manual,
    engine::{backlog::Backlog, share::Share, timeline::Timeline},
    plan::{Arrival, Destination, Extent, Plan, Trust},
    probe::metrics::ServerSource,
    transport::{
        Kind,
        mock::{Behaviour, Mock},
    },
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

/// One caller of a closed loop.
pub(super) fn one_caller(extent: Extent) -> Plan {
    let clear = (Connector::Plain, Trust::default());
    let url = "tcp://localhost".parse().unwrap();
    let mut plan = Plan::new(
        Destination::new(url, ServerSource::Nowhere, clear),
        Kind::Line,
    );
    plan.load.payload = 16;
    plan.load.timeout = Duration::from_secs(1);
    plan.execution.extent = extent;
    // On a manual clock, to wait is to look at it again and again.
    plan.execution.busy_poll = true;
    plan
}

/// A window of two seconds after a warm-up of one.
fn closed_loop() -> Plan {
    one_caller(Extent::Time(Duration::from_secs(2)))
}

/// Runs callers against a mock on a manual clock. A mock of requests one after the other moves the
/// clock itself; otherwise it moves on by `STEP` whenever every task has had a turn.
fn measure(plan: Plan, window: Window, behaviour: Behaviour) -> (Totals, WorkerReport, u64) {
    let clock = Manual::default();
    let mock = Mock::new(clock.clone(), behaviour);
    let step = behaviour.side_by_side.then_some(STEP);
    let (totals, report) = run_on(&mock, plan, window, &clock, step);
    (totals, report, mock.calls())
}

/// Runs the callers of a plan on a transport and a manual clock, which moves on by `step` whenever
/// every task has had a turn, and tokio's timers with it.
pub(super) fn run_on<T: Transport>(
    transport: &T,
    plan: Plan,
    window: Window,
    clock: &Manual,
    step: Option<u64>,
) -> (Totals, WorkerReport) {
    let timeline = Arc::new(Timeline::new(plan.execution.extent.requests()));
    timeline.set(0, window, 10 * MS);
    let ended = Arc::clone(&timeline);
    let max_backlog = plan.load.max_backlog;
    let limit = plan.load.requests_per_connection;
    let kept = Kept::default();
    let mut aggregate = Aggregate::new(plan.loop_kind());
    let slots: Vec<_> = (0..plan.load.connections)
        .map(|_| Rc::new(ConnectionSlot::new(transport.clone(), limit)))
        .collect();
    let assignment = Assignment {
        share: Share::of(&plan, 0),
        plan: Arc::new(plan),
        timeline,
        replies: Arc::default(),
        backlog: Arc::new(Backlog::new(1, max_backlog)),
    };
    let backlog = Arc::clone(&assignment.backlog);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(step.is_some())
        .build_local(tokio::runtime::LocalOptions::default());
    let report = runtime.unwrap().block_on(async {
        for slot in &slots {
            slot.open().await.unwrap();
        }
        if let Some(step) = step {
            let clock = clock.clone();
            tokio::task::spawn_local(async move {
                loop {
                    clock.advance(step);
                    tokio::time::advance(Duration::from_nanos(step)).await;
                }
            });
        }
        run(assignment, &slots, clock.clone(), kept.clone()).await
    });
    aggregate.add_rest(report.outside, &report.successes);
    for interval in kept.0.take() {
        aggregate.add(interval);
    }
    let window = ended.window();
    let mut in_flight = histogram();
    for age in &report.in_flight {
        record(&mut in_flight, *age);
    }
    let mut not_sent = report.not_sent.clone().unwrap_or_else(histogram);
    for due in backlog.drain() {
        if window.contains(due) {
            record(&mut not_sent, window.end - due);
        }
    }
    let totals = aggregate.finish(window, &in_flight, &not_sent);
    (totals, report)
}

#[test]
fn neither_connecting_nor_warm_up_counts() {
    let behaviour = Behaviour {
        connect: 500 * MS,
        service: 10 * MS,
        ..Behaviour::default()
    };
    let (totals, _, calls) = measure(closed_loop(), WINDOW, behaviour);
    // Connected at 500 ms; requests begin at 500, 510, ... 2990 ms, of which 1000 to 2990 ms lie in
    // the window.
    assert_eq!(totals.accounting.ok, 200);
    assert_eq!(totals.outside.ok, 50);
    assert_eq!(calls, 250);
    assert!((Summary::of(&totals).rate - 100.0).abs() < 1e-9);
    assert!(totals.service.equivalent(totals.service.max(), 10 * MS));
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
    let (totals, _, calls) = measure(one_caller(Extent::Requests(37)), window, behaviour);
    assert_eq!((totals.accounting.ok, calls), (37, 37));
    // The window ends as the last of them begins, and its reply counts for the times alone.
    assert_eq!((totals.window.end, totals.late), (360 * MS + 1, 1));
}

#[test]
fn every_failed_request_is_accounted_for() {
    let behaviour = Behaviour {
        service: 10 * MS,
        fail_every: 7,
        ..Behaviour::default()
    };
    let (totals, report, calls) = measure(closed_loop(), WINDOW, behaviour);
    let summary = Summary::of(&totals);
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

/// A server that stops for half a second at 1,000 requests/s. Four callers see four slow requests;
/// the five hundred requests that were due meanwhile show in the response times, and none is lost.
#[test]
fn requests_due_while_the_server_stands_still_are_in_the_response_times() {
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
    let mut plan = closed_loop();
    plan.load.callers = 4;
    plan.load.connections = 4;
    plan.load.arrival = Arrival::Constant(1000.0);
    plan.load.max_backlog = 100_000;
    let (totals, report, calls) = measure(plan, window, behaviour);
    let slow = |histogram: &Histogram| histogram.count_between(2 * MS, u64::MAX);
    let summary = Summary::of(&totals);
    assert_eq!(
        (
            summary.accounting.ok,
            calls,
            report.in_flight.len(),
            summary.accounting.not_sent
        ),
        (10_000, 10_000, 0, 0)
    );
    assert_eq!(slow(&totals.service), 4);
    assert!(
        (500..520).contains(&slow(&totals.response)),
        "{}",
        slow(&totals.response)
    );
    let percent = |histogram: &Histogram, percent| histogram.value_at_percentile(percent) / MS;
    // The worst hundredth was due in the first 100 ms of the half second, and then waited its turn.
    assert!(
        (398..405).contains(&percent(&totals.response, 99.0)),
        "{}",
        percent(&totals.response, 99.0)
    );
    assert!((498..502).contains(&percent(&totals.response, 100.0)));
    assert_eq!(percent(&totals.service, 99.0), 0);
    assert!(percent(&totals.lag, 100.0) >= 490);
}
