//! Callers on a transport without a network and a clock that is moved by hand: what remains is the
//! engine's own work. For tests, and for counts of its instructions.

use std::{cell::RefCell, future::Future, rc::Rc, sync::Arc, time::Duration};

use netping_measure::{
    aggregate::{Aggregate, Totals},
    recorder::{Interval, Sink},
    window::Window,
};
use netping_protocol::secure::Connector;
use tokio::{
    runtime::{Builder, LocalOptions, LocalRuntime},
    task::{spawn_local, yield_now},
};

use super::{Assignment, WorkerReport, run};
use crate::{
    clock::Manual,
    engine::{backlog::Backlog, connection_slot::ConnectionSlot, share::Share, timeline::Timeline},
    plan::{Arrival, Destination, Extent, Plan, Trust},
    probe::metrics::ServerSource,
    transport::{
        Kind, Transport,
        mock::{Behaviour, Mock},
    },
};

const MS: u64 = 1_000_000;

#[derive(Clone, Default)]
struct SharedIntervals(Rc<RefCell<Vec<Interval>>>);

impl Sink for SharedIntervals {
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

/// Runs the callers of a plan on a transport and a manual clock, and `moving` beside them.
pub(super) fn run_on<T: Transport>(
    transport: &T,
    plan: Plan,
    window: Window,
    clock: &Manual,
    runtime: &LocalRuntime,
    moving: Option<impl Future<Output = ()> + 'static>,
) -> (Totals, WorkerReport) {
    let timeline = Arc::new(Timeline::new(plan.execution.extent.requests()));
    timeline.set(0, window, 10 * MS);
    let ended = Arc::clone(&timeline);
    let max_backlog = plan.load.max_backlog;
    let limit = plan.load.requests_per_connection;
    let kept = SharedIntervals::default();
    let mut aggregate = Aggregate::new(plan.loop_kind());
    let slots: Vec<_> = (0..plan.load.connections)
        .map(|_| Rc::new(ConnectionSlot::new(Rc::new(transport.clone()), limit)))
        .collect();
    let assignment = Assignment {
        share: Share::of(&plan, 0),
        plan: Arc::new(plan),
        timeline,
        replies: Arc::default(),
        backlog: Arc::new(Backlog::new(1, max_backlog)),
    };
    let backlog = Arc::clone(&assignment.backlog);
    let mut report = runtime.block_on(async {
        for slot in &slots {
            slot.open().await.expect("a mock that connects");
        }
        if let Some(moving) = moving {
            spawn_local(moving);
        }
        run(assignment, None, &slots, clock.clone(), kept.clone()).await
    });
    for interval in kept.0.take() {
        aggregate.add(interval);
    }
    let window = ended.window();
    report.remainder.not_sent.add(&backlog.not_sent(window));
    aggregate.add_remainder(&report.remainder);
    (aggregate.finish(window), report)
}

/// Runs so many callers for a time on a manual clock, against a mock that answers after 100 us; those
/// of an open loop are Poisson arrivals, at five eighths of what the callers could send. Returns the
/// number of successes.
pub fn requests(callers: usize, length: Duration, open: bool) -> u64 {
    const STEP: u64 = 20_000;
    let clock = Manual::default();
    let mock = Mock::new(
        clock.clone(),
        Behaviour {
            service: 5 * STEP,
            side_by_side: true,
            ..Behaviour::default()
        },
    );
    let mut plan = one_caller(Extent::Time(length));
    (plan.load.callers, plan.load.connections) = (callers, callers);
    if open {
        let (rate, seed) = (6250.0 * callers as f64, 1);
        plan.load.arrival = Arrival::Poisson { rate, seed };
        plan.load.max_backlog = 100_000;
    }
    let window = Window {
        start: 0,
        end: length.as_nanos() as u64,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("a runtime");
    let moving = {
        let clock = clock.clone();
        async move {
            loop {
                clock.advance(STEP);
                yield_now().await;
            }
        }
    };
    let (totals, _) = run_on(&mock, plan, window, &clock, &runtime, Some(moving));
    totals.accounting.ok
}
