//! The measurement loop against a mock transport on a manual clock.

use std::{collections::BTreeMap, time::Duration};

use netping_measure::{
    aggregate::Totals, error_kind::ErrorKind, histogram::Histogram, summary::Summary, times::Time,
    window::Window,
};

use super::{
    simulated::{one_caller, requests},
    *,
};
use crate::{
    clock::Manual,
    plan::{Arrival, Extent, Plan},
    transport::mock::{Behaviour, Mock},
};

const MS: u64 = 1_000_000;
const STEP: u64 = MS / 20;
const WINDOW: Window = Window {
    start: 1000 * MS,
    end: 3000 * MS,
};

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

/// Returns the histogram of a kind of time.
fn times(totals: &Totals, time: Time) -> Histogram {
    totals.histograms.times[time].to_histogram()
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(step.is_some())
        .build_local(tokio::runtime::LocalOptions::default());
    let moving = step.map(|step| {
        let clock = clock.clone();
        async move {
            loop {
                clock.advance(step);
                tokio::time::advance(Duration::from_nanos(step)).await;
            }
        }
    });
    simulated::run_on(transport, plan, window, clock, &runtime.unwrap(), moving)
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
    assert_eq!(totals.accounting.outside_ok, 50);
    assert_eq!(calls, 250);
    assert!((Summary::of(&totals).rate - 100.0).abs() < 1e-9);
    let service = times(&totals, Time::Service);
    assert!(service.equivalent(service.max(), 10 * MS));
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
    assert_eq!(
        (totals.window.end, totals.accounting.late),
        (360 * MS + 1, 1)
    );
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
        summary.scheduled + summary.accounting.outside_ok + summary.accounting.outside_errors,
        calls
    );
    assert_eq!(summary.times[Time::Failed].count, 28);
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
    let (totals, _, calls) = measure(plan, window, behaviour);
    let [service, response, lag] =
        [Time::Service, Time::Response, Time::Lag].map(|time| times(&totals, time));
    let slow = |histogram: &Histogram| histogram.count_between(2 * MS, u64::MAX);
    let summary = Summary::of(&totals);
    assert_eq!(
        (
            summary.accounting.ok,
            calls,
            summary.accounting.in_flight,
            summary.accounting.not_sent
        ),
        (10_000, 10_000, 0, 0)
    );
    assert_eq!(slow(&service), 4);
    assert!((500..520).contains(&slow(&response)), "{}", slow(&response));
    let percent = |histogram: &Histogram, percent| histogram.value_at_percentile(percent) / MS;
    // The worst hundredth was due in the first 100 ms of the half second, and then waited its turn.
    assert!(
        (398..405).contains(&percent(&response, 99.0)),
        "{}",
        percent(&response, 99.0)
    );
    assert!((498..502).contains(&percent(&response, 100.0)));
    assert_eq!(percent(&service, 99.0), 0);
    assert!(percent(&lag, 100.0) >= 490);
}

#[test]
fn simulated_callers_wait_for_replies_and_for_arrivals() {
    for (callers, open, expected) in [(16, false, 10_000), (16, true, 10_000), (1, false, 625)] {
        let milliseconds = if open { 100 } else { 75 };
        let sent = requests(callers, Duration::from_millis(milliseconds), open);
        assert!(sent.abs_diff(expected) < expected / 20, "{callers}: {sent}");
    }
}
