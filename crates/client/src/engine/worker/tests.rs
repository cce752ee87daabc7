//! The measurement loop against a mock transport on a manual clock.

use std::{cell::Cell, collections::BTreeMap, num::NonZeroU64, sync::Arc, time::Duration};

use netping_measure::{
    aggregate::Totals, connect::ConnectPhase, error_kind::ErrorKind, fairness::PerConnection,
    histogram::Histogram, recorder::Interval, sample::Sample, summary::Summary, times::Time,
    window::Window,
};
use netping_protocol::payload::Exchange;

use super::{
    simulated::{one_caller, requests},
    *,
};
use crate::{
    clock::Manual,
    engine::{backlog::Backlog, share::Share, timeline::Timeline},
    plan::{Arrival, Assign, Extent, Plan},
    transport::{
        Carried, Connection, Failure, Milestones,
        mock::{Behaviour, Mock},
    },
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
    let (totals, report, calls) = measure(closed_loop(), WINDOW, behaviour);
    // Connected at 500 ms; requests begin at 500, 510, ... 2990 ms, of which 1000 to 2990 ms lie in
    // the window.
    assert_eq!(totals.accounting.ok, 200);
    assert_eq!(totals.accounting.outside_ok, 50);
    assert_eq!(calls, 250);
    let connections = PerConnection::of_all(&report.connections, true);
    assert_eq!(connections[0].requests, 200);
    assert!((Summary::of(&totals).rate - 100.0).abs() < 1e-9);
    // The caller waits for a reply at all times.
    assert!((totals.outstanding() - 1.0).abs() < 1e-9);
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
fn a_count_of_requests_is_of_those_after_the_warm_up() {
    let behaviour = Behaviour {
        service: 10 * MS,
        ..Behaviour::default()
    };
    let window = Window {
        end: u64::MAX,
        ..WINDOW
    };
    let (totals, _, calls) = measure(one_caller(Extent::Requests(37)), window, behaviour);
    assert_eq!((totals.accounting.ok, calls), (37, 137));
}

#[test]
fn a_connection_for_each_request_is_timed_and_no_reconnect() {
    let behaviour = Behaviour {
        connect: 15 * MS,
        service: 5 * MS,
        ..Behaviour::default()
    };
    let mut plan = closed_loop();
    plan.load.requests_per_connection = NonZeroU64::new(1);
    let (totals, report, _) = measure(plan, WINDOW, behaviour);
    assert_eq!(
        (totals.accounting.ok, totals.accounting.reconnects),
        (100, 0)
    );
    // Those that were opened in the warm-up are not among them.
    let opened = report.phases.histograms();
    let opened = opened.map(|(phase, times)| (phase, times.len(), times.max().div_ceil(MS) - 1));
    let expected = [
        (ConnectPhase::Tcp, 100, 15),
        (ConnectPhase::FirstCall, 100, 5),
        (ConnectPhase::Total, 100, 20),
    ];
    assert_eq!(opened.collect::<Vec<_>>(), expected);
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
/// Processes a request only when it has been sent for this time; counts how often requests are sent.
#[derive(Clone)]
struct Refusing {
    processed_at: u64,
    sent: Rc<Cell<u64>>,
    clock: Manual,
}

impl Transport for Refusing {
    type Connection = Self;

    async fn connect(&self, _: &mut Milestones<'_>) -> Result<Self, Failure> {
        Ok(self.clone())
    }
}

impl Connection for Refusing {
    async fn call(&mut self, _: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        self.clock.advance(MS);
        self.sent.set(self.sent.get() + 1);
        if self.sent.get().is_multiple_of(self.processed_at) {
            return Ok(());
        }
        Err(Failure::request(ErrorKind::Reset, "refused").unprocessed())
    }
}

#[test]
fn a_request_that_was_not_processed_is_sent_again_within_its_time() {
    // The last is one more than a request is sent: every other one fails, and the next one succeeds at once.
    for (processed_at, ok, sent, time) in [(1, 12, 12, 1), (7, 12, 84, 7), (8, 6, 48, 1)] {
        let clock = Manual::default();
        let refusing = Refusing {
            processed_at,
            sent: Rc::default(),
            clock: clock.clone(),
        };
        let plan = one_caller(Extent::Requests(12));
        let window = Window {
            start: 0,
            end: u64::MAX,
        };
        let (totals, _) = run_on(&refusing, plan, window, &clock, None);
        assert_eq!(totals.accounting.ok, ok, "{processed_at}");
        assert_eq!(refusing.sent.get(), sent, "{processed_at}");
        let service = times(&totals, Time::Service);
        assert_eq!((service.max() + MS / 2) / MS, time, "{processed_at}");
    }
}

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
    let gaps = totals.gaps().into_iter();
    let gaps: Vec<_> = gaps
        .map(|gap| [gap.from, gap.to].map(|time| time.div_ceil(MS)))
        .collect();
    assert_eq!(gaps, [[5000, 5501]]);
    assert!(percent(&lag, 100.0) >= 490);
}

/// Returns what 16 connections measure, one of which takes 500 ms for each request and the others
/// 100 us, at 1,000 requests/s in 10 s.
fn one_slow_connection(assign: Assign, max_backlog: usize) -> (Totals, WorkerReport) {
    let window = Window {
        start: 0,
        end: 10_000 * MS,
    };
    let behaviour = Behaviour {
        service: 2 * STEP,
        service_on_first: 500 * MS,
        side_by_side: true,
        ..Behaviour::default()
    };
    let mut plan = closed_loop();
    (plan.load.callers, plan.load.connections) = (16, 16);
    plan.load.arrival = Arrival::Constant(1000.0);
    (plan.load.assign, plan.load.max_backlog) = (assign, max_backlog);
    let (totals, report, _) = measure(plan, window, behaviour);
    assert_eq!(Summary::of(&totals).scheduled, 10_000);
    let connections = PerConnection::of_all(&report.connections, true);
    let slow: Vec<bool> = connections.iter().map(|own| own.slow).collect();
    assert_eq!(slow, [&[true][..], &[false; 15]].concat());
    (totals, report)
}

#[test]
fn a_slow_connection_is_seen_by_the_requests_that_belong_to_it() {
    let p99 = |totals: &Totals, time| times(totals, time).value_at_quantile(0.99) / MS;
    let (any, _) = one_slow_connection(Assign::Any, 100_000);
    assert_eq!(any.accounting.not_sent, 0);
    assert_eq!(p99(&any, Time::Response), 0);
    let (fixed, report) = one_slow_connection(Assign::Fixed, 100_000);
    // A sixteenth of the requests belong to it: it serves two each second, and the others wait for it, not
    // for the client.
    let accounting = &fixed.accounting;
    assert!(p99(&fixed, Time::Response) > 7000);
    let own = report.connections[0];
    let served = PerConnection::of_all(&[own], true)[0].requests;
    assert!((19..=20).contains(&served), "{served}");
    let belong = served + accounting.in_flight + accounting.not_sent;
    assert!(belong.abs_diff(625) < 100, "{belong}");
    let free = times(&fixed, Time::NoCallerFree).max() / MS;
    let late = times(&fixed, Time::ClientLate).max();
    assert!(free > 7000 && late <= 2 * STEP, "{free} {late}");
    // At most ten wait at a time, each for the ten before it: the others are never sent.
    let (limited, _) = one_slow_connection(Assign::Fixed, 10);
    assert!(limited.accounting.not_sent.abs_diff(accounting.not_sent) <= 1);
    let waits = times(&limited, Time::NoCallerFree);
    let long = waits.count_between(4000 * MS, u64::MAX);
    assert!((8..=12).contains(&long), "{long}");
    let (none, _) = one_slow_connection(Assign::Fixed, 0);
    assert!(times(&none, Time::NoCallerFree).max() < MS);
}

#[test]
fn a_request_without_a_reply_has_waited_since_it_was_due() {
    let window = Window {
        start: 0,
        end: 1000 * MS,
    };
    let behaviour = Behaviour {
        service: 400 * MS,
        side_by_side: true,
        ..Behaviour::default()
    };
    let mut plan = closed_loop();
    plan.load.arrival = Arrival::Constant(100.0);
    plan.load.max_backlog = 1000;
    // Longer than a request takes, and shorter than one waits and takes.
    plan.load.timeout = Duration::from_millis(500);
    let (totals, _, _) = measure(plan, window, behaviour);
    let accounting = &totals.accounting;
    assert_eq!((accounting.ok, accounting.failed()), (2, 0));
    assert_eq!((accounting.in_flight, accounting.not_sent), (1, 97));
    // The third was due at 20 ms and sent at 800 ms; the drain is over at 1010 ms.
    let longest = totals.histograms.censored.max().unwrap() / MS;
    assert!((988..1000).contains(&longest), "{longest}");
}

#[test]
fn requests_that_find_the_backlog_full_have_waited_until_the_end_of_the_window() {
    let window = Window {
        start: 0,
        end: 1000 * MS,
    };
    let behaviour = Behaviour {
        service: MS,
        side_by_side: true,
        stopped: (0, 5000 * MS),
        ..Behaviour::default()
    };
    for max_backlog in [0, 10, 1000] {
        let mut plan = closed_loop();
        plan.load.arrival = Arrival::Constant(100.0);
        plan.load.max_backlog = max_backlog;
        plan.load.timeout = Duration::from_secs(5);
        let (totals, _, _) = measure(plan, window, behaviour);
        assert_eq!(totals.accounting.not_sent, 99, "{max_backlog}");
        // They were due at 10, 20, ... 990 ms.
        let median = times(&totals, Time::Response).value_at_quantile(0.5) / MS;
        assert!((490..520).contains(&median), "{max_backlog}: {median}");
    }
}

#[test]
fn a_request_on_an_open_connection_that_takes_too_long_is_a_timeout() {
    let behaviour = Behaviour {
        service: MS,
        side_by_side: true,
        stopped: (0, 10_000 * MS),
        ..Behaviour::default()
    };
    let mut plan = closed_loop();
    plan.load.timeout = Duration::from_millis(100);
    let (totals, report, _) = measure(plan, WINDOW, behaviour);
    let kinds = totals.accounting.errors.keys();
    assert_eq!(kinds.collect::<Vec<_>>(), [&ErrorKind::Timeout]);
    assert!(report.details.contains_key(&ErrorKind::Timeout));
    // Each counts for the response times with the time that it was given at least.
    let censored = totals.histograms.censored.to_histogram();
    assert_eq!(
        censored.len(),
        totals.accounting.failed() + totals.accounting.in_flight
    );
    assert_eq!(
        censored.count_between(99 * MS, u64::MAX),
        totals.accounting.failed()
    );
}

/// The sink of a test that looks at no interval.
struct Nowhere;

impl Sink for Nowhere {
    fn hand_on(&mut self, _: Interval) {}

    fn spare(&mut self) -> Option<Interval> {
        None
    }
}

/// Returns the state of the callers of a closed loop, without the callers themselves.
fn shared(clock: &Manual) -> Shared<Manual, Nowhere> {
    let plan = closed_loop();
    let timeline = Timeline::new(None);
    timeline.set(0, WINDOW, 0);
    let assignment = Assignment {
        share: Share::of(&plan, 0),
        plan: Arc::new(plan),
        timeline: Arc::new(timeline),
        replies: Arc::default(),
        backlog: Arc::new(Backlog::new(1, 0)),
    };
    Shared::new(assignment, None, clock.clone(), Nowhere)
}

/// A request of a closed loop.
fn request(start: u64, end: u64) -> Sample {
    Sample {
        intended: start,
        free: start,
        start,
        end,
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_time_between_requests_counts_from_the_window_on() {
    let clock = Manual::default();
    let shared = shared(&clock);
    for end in [WINDOW.start - 1, WINDOW.start + 10] {
        clock.advance(end - clock.now());
        assert!(shared.record(0, request(end, end), Ok(())) == (end > WINDOW.start));
        clock.advance(3);
        assert!(shared.next(0).await.is_some());
    }
    assert_eq!(shared.finish(1).between, 3);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn pauses_count_as_far_as_they_are_in_the_window() {
    let clock = Manual::default();
    let shared = shared(&clock);
    for (now, pause) in [
        (WINDOW.start - 5 * MS, 8),
        (WINDOW.start + MS, 500),
        (WINDOW.end - 5 * MS, 10),
        (WINDOW.end + MS, 10),
    ] {
        clock.advance(now - clock.now());
        shared.pause(0, Duration::from_millis(pause)).await;
    }
    let accounting = shared.finish(1).remainder.accounting;
    assert_eq!(accounting.paused_ns, (3 + 500 + 5) * MS);
}

#[test]
fn messages_count_where_their_call_ends_and_the_first_one_where_it_was_due() {
    let shared = shared(&Manual::default());
    for (start, end, sent) in [
        (WINDOW.start - 10, WINDOW.start + 10, 2),
        (WINDOW.end - 10, WINDOW.end + 10, 3),
    ] {
        let first = move || start + 5;
        let mut carried = Carried::start(&first);
        carried.sent = sent;
        carried.receive();
        carried.held_back = 7;
        shared.record_messages(&carried, request(start, end), WINDOW.contains(start));
    }
    let report = shared.finish(1);
    let (messages, held_back) = (report.messages.unwrap(), report.held_back);
    assert_eq!((messages.sent, messages.received), (2, 1));
    assert_eq!((held_back.requests, held_back.total_ns), (1, 7));
    assert_eq!((messages.first.len(), messages.first.max()), (1, 5));
}

#[test]
fn simulated_callers_wait_for_replies_and_for_arrivals() {
    for (callers, open, expected) in [(16, false, 10_000), (16, true, 10_000), (1, false, 625)] {
        let milliseconds = if open { 100 } else { 75 };
        let sent = requests(callers, Duration::from_millis(milliseconds), open);
        assert!(sent.abs_diff(expected) < expected / 20, "{callers}: {sent}");
    }
}
