//! Callers against a server that fails at random, on a clock that the test moves on.
//!
//! Each seed is a plan and a course of failures: connections that are refused, hang or break,
//! requests that fail, hang or are answered on a connection that the server then ends. After a while
//! the server is well again. Whatever happened, every request is counted once, and every caller goes
//! on.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::pending,
    num::NonZeroU64,
    rc::Rc,
    time::Duration,
};

use netping_measure::{
    connect::ConnectPhase, error_kind::ErrorKind, summary::Summary, window::Window,
};
use netping_protocol::payload::Exchange;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use tokio::time::sleep;

use super::{simulated::one_caller, tests::run_on};
use crate::{
    clock::{Clock, Manual},
    plan::{Arrival, Assign, Extent, Plan},
    transport::{Carried, Connection, Failure, Milestones, Transport},
};

const MS: u64 = 1_000_000;

/// Step of the clock.
const STEP: u64 = MS / 2;

/// The window opens while the server fails.
const WINDOW: Window = Window {
    start: 10 * MS,
    end: 400 * MS,
};

/// The server fails from here on: connections are open then.
const FAILS: u64 = 2 * MS;

/// The server is well from here on. Before the window's end, the longest pause of a caller (it has
/// failed a few times in a row) and its time limit are over.
const WELL: u64 = 60 * MS;

/// From here on every caller must have been answered once more.
const LAST: u64 = 340 * MS;

/// Number of schedules, and of those that are tried with every change.
pub(super) const SCHEDULES: u64 = 10_000;
const FIRST: u64 = 2_500;

/// Numbers of what the server saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub answered: u64,
    failed: BTreeMap<ErrorKind, u64>,
    /// Callers that were answered after [`LAST`].
    last: BTreeSet<u32>,
}

/// A server that fails at random.
#[derive(Clone)]
pub(super) struct Server {
    clock: Manual,
    random: Rc<RefCell<ChaCha8Rng>>,
    /// Callers share a connection.
    shares: bool,
    pub seen: Rc<RefCell<Seen>>,
}

/// A connection to it.
pub(super) struct Link {
    server: Server,
    /// It is broken, for all who share it.
    broken: Rc<Cell<bool>>,
    /// The server has ended it after a reply.
    spent: Rc<Cell<bool>>,
}

impl Server {
    /// Returns a random number below `limit`.
    pub fn draw(&self, limit: u64) -> u64 {
        self.random.borrow_mut().next_u64() % limit
    }

    pub fn is_well(&self) -> bool {
        !(FAILS..WELL).contains(&self.clock.now())
    }

    /// Takes up to 3 ms.
    pub async fn work(&self) {
        sleep(Duration::from_nanos(self.draw(3 * MS))).await;
    }

    /// Counts a failure.
    pub fn failure(&self, kind: ErrorKind, lost: bool) -> Failure {
        *self.seen.borrow_mut().failed.entry(kind).or_default() += 1;
        if lost {
            Failure::lost(kind, "simulated")
        } else {
            Failure::request(kind, "simulated")
        }
    }

    /// Notes that a caller has its answer.
    pub fn has_answer(&self, caller: u32) {
        if self.clock.now() >= LAST {
            self.seen.borrow_mut().last.insert(caller);
        }
    }
}

impl Transport for Server {
    type Connection = Link;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Link, Failure> {
        if !self.is_well() {
            match self.draw(10) {
                0..3 => return Err(self.failure(ErrorKind::Refused, true)),
                3 => pending().await,
                _ => self.work().await,
            }
        }
        milestones.reached(ConnectPhase::Tcp);
        Ok(Link {
            server: self.clone(),
            broken: Rc::default(),
            spent: Rc::default(),
        })
    }
}

impl Connection for Link {
    fn share(&self) -> Option<Self> {
        self.server.shares.then(|| Self {
            server: self.server.clone(),
            broken: Rc::clone(&self.broken),
            spent: Rc::clone(&self.spent),
        })
    }

    fn is_spent(&mut self) -> bool {
        self.spent.get()
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        let server = self.server.clone();
        let fate = if server.is_well() { 9 } else { server.draw(10) };
        server.work().await;
        if self.broken.get() {
            return Err(server.failure(ErrorKind::Eof, true));
        }
        match fate {
            0 => pending().await,
            1 => {
                self.broken.set(true);
                return Err(server.failure(ErrorKind::Reset, true));
            }
            2 => return Err(server.failure(ErrorKind::Mismatch, false)),
            3 => self.spent.set(true),
            _ => {}
        }
        server.seen.borrow_mut().answered += 1;
        server.has_answer(exchange.caller());
        Ok(())
    }
}

/// Returns a plan: 1 to 6 callers on their own or shared connections, closed or open, some with a
/// limit on the requests of a connection, some open ones with requests that belong to connections.
fn plan(server: &Server) -> Plan {
    let mut plan = one_caller(Extent::Time(Duration::from_nanos(
        WINDOW.end - WINDOW.start,
    )));
    plan.load.callers = 1 + server.draw(6) as usize;
    plan.load.connections = if server.shares {
        1 + server.draw(plan.load.callers as u64) as usize
    } else {
        plan.load.callers
    };
    plan.load.timeout = Duration::from_millis(5 + server.draw(15));
    if server.draw(3) == 0 {
        plan.load.requests_per_connection = NonZeroU64::new(1 + server.draw(4));
    }
    if server.draw(2) == 0 {
        plan.load.arrival = Arrival::Constant(1000.0);
        plan.load.max_backlog = 5 + server.draw(100) as usize;
        if server.draw(2) == 0 {
            plan.load.assign = Assign::Fixed;
        }
    }
    plan
}

/// A schedule that was run.
pub(super) struct Simulated {
    pub summary: Summary,
    pub server: Server,
    callers: usize,
    is_closed: bool,
}

/// Runs the schedule of a seed, on a transport to its server. Requests have `patience` beyond what the plan gives them.
pub(super) fn simulate<T: Transport>(
    seed: u64,
    patience: Duration,
    transport: impl FnOnce(Server) -> T,
) -> Simulated {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let shares = random.next_u64().is_multiple_of(2);
    let clock = Manual::default();
    let server = Server {
        clock: clock.clone(),
        random: Rc::new(RefCell::new(random)),
        shares,
        seen: Rc::default(),
    };
    let mut plan = plan(&server);
    plan.load.timeout += patience;
    let is_closed = plan.load.arrival == Arrival::Closed;
    let callers = plan.load.callers;
    let (totals, _) = run_on(&transport(server.clone()), plan, WINDOW, &clock, Some(STEP));
    Simulated {
        summary: Summary::of(&totals),
        server,
        callers,
        is_closed,
    }
}

impl Simulated {
    /// Checks that no caller was lost, and that each request is counted once.
    pub fn check_callers(&self, seed: u64) {
        let (summary, callers) = (&self.summary, self.callers);
        let by_server = self.server.seen.borrow();
        let in_flight = summary.accounting.in_flight;
        assert!(in_flight <= callers as u64, "seed {seed}: in flight");
        if self.is_closed {
            assert_eq!(
                by_server.last.len(),
                callers,
                "seed {seed}: callers at the end"
            );
        } else {
            // A request is due every millisecond.
            let due = (WINDOW.end - WINDOW.start) / MS;
            assert_eq!(summary.scheduled, due, "seed {seed}: due requests");
            assert!(
                !by_server.last.is_empty(),
                "seed {seed}: callers at the end"
            );
        }
    }
}

/// Runs the schedule of a seed, and checks its accounts.
fn check(seed: u64) {
    let run = simulate(seed, Duration::ZERO, |server| server);
    let summary = &run.summary;
    let by_server = run.server.seen.borrow();
    assert_eq!(
        summary.accounting.ok + summary.accounting.outside_ok,
        by_server.answered,
        "seed {seed}: answers"
    );
    // Beside what the server saw, there are only requests that took too long.
    let timeouts = [ErrorKind::Timeout, ErrorKind::ConnectTimeout];
    let others = summary.accounting.errors.iter();
    let others = others.filter(|(kind, _)| !timeouts.contains(kind));
    for (kind, count) in others {
        assert!(*count <= by_server.failed[kind], "seed {seed}: {kind}");
    }
    let failed: u64 = by_server.failed.values().sum();
    let counted = summary.accounting.failed() + summary.accounting.outside_errors;
    assert!(
        counted >= failed,
        "seed {seed}: {counted} of {failed} failures"
    );
    run.check_callers(seed);
}

#[test]
fn accounts_add_up_and_no_caller_is_lost_whatever_fails() {
    (0..FIRST).for_each(check);
}

#[test]
#[ignore = "takes a minute without optimizations"]
fn accounts_add_up_in_the_other_schedules_too() {
    (FIRST..SCHEDULES).for_each(check);
}
