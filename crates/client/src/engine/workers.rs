//! The worker threads of a step, and the engine's ends of their channels.

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc, OnceLock,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use futures_util::future::join_all;

use netping_measure::path::PathReading;
use netping_protocol::tls::Negotiated;
use netping_system::{cores, memory};
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::watch,
};

use crate::{
    clock::Monotonic,
    engine::{
        backlog::Backlog,
        rate_meter::ReplyCounter,
        share::Share,
        timeline::Timeline,
        turns::{Turn, Turns},
        worker::Assignment,
        worker_part::{Event, Outbox, Part, WorkerPart},
    },
    error::StartError,
    interrupt::Interrupt,
    plan::{Arrival, Plan},
    transport::{QuicPaths, Transport, Visitor},
};

/// Time between looks at interrupts, at the phases' ends and at the rate.
pub const LOOK: Duration = Duration::from_millis(20);

/// The worker threads of a step, and the engine's ends of their channels. Each thread has a part of every
/// plan.
#[derive(Debug)]
pub struct Workers {
    pub clock: Monotonic,
    pub timeline: Arc<Timeline>,
    /// One for each plan.
    pub parties: Vec<Party>,
    pub inbox: Receiver<(usize, Event)>,
    go: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// The counters and the backlog of a plan, which its workers share.
#[derive(Debug)]
pub struct Party {
    pub replies: Vec<Arc<ReplyCounter>>,
    pub backlog: Arc<Backlog>,
    /// The account of its connections, if they are QUIC's.
    quic_paths: OnceLock<QuicPaths>,
}

impl Party {
    /// Returns the account of its QUIC connections that are open.
    pub fn quic_paths(&self) -> BTreeMap<u64, PathReading> {
        self.quic_paths
            .get()
            .map(QuicPaths::read)
            .unwrap_or_default()
    }
}

/// Makes every worker's part of a plan.
struct Division<'a> {
    plan: Arc<Plan>,
    party: &'a Party,
    clock: Monotonic,
    timeline: &'a Arc<Timeline>,
    outbox: Outbox,
    started: watch::Receiver<bool>,
}

impl Visitor for Division<'_> {
    type Output = Vec<Part>;

    fn visit<T: Transport + Send>(self, transport: T) -> Vec<Part> {
        if let Some(paths) = transport.quic_paths() {
            self.party.quic_paths.get_or_init(|| paths.clone());
        }
        let part = |worker: usize| -> Part {
            let part = WorkerPart {
                transport: transport.clone(),
                assignment: Assignment {
                    plan: Arc::clone(&self.plan),
                    share: Share::of(&self.plan, worker),
                    timeline: Arc::clone(self.timeline),
                    replies: Arc::clone(&self.party.replies[worker]),
                    backlog: Arc::clone(&self.party.backlog),
                },
                clock: self.clock,
                started: self.started.clone(),
                outbox: self.outbox.clone(),
            };
            Box::new(move |turn| Box::pin(part.work(turn)))
        };
        (0..self.plan.execution.workers).map(part).collect()
    }
}

/// Runs the parts that one thread has of all plans. Callers of a closed loop take turns with those of the
/// other plans.
fn run(
    core: Option<usize>,
    parts: Vec<Part>,
    turns: Option<(usize, u64)>,
    events: &Sender<(usize, Event)>,
) {
    if let Some(core) = core {
        cores::pin(core);
    }
    match Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
    {
        Ok(runtime) => {
            let turns =
                turns.map(|(callers, seed)| Rc::new(Turns::new(callers, parts.len(), seed)));
            let turn = |party| -> Option<Turn> { Some(turns.as_ref()?.of(party)) };
            let parts = parts.into_iter().enumerate();
            let parts = parts.map(|(party, part)| part(turn(party)));
            runtime.block_on(join_all(parts));
        }
        Err(error) => drop(events.send((0, Event::Ready(Err(error.into()))))),
    }
}

impl Workers {
    /// Starts the workers of these plans, which then connect. Plans that are run together differ in their
    /// targets alone.
    ///
    /// # Errors
    /// [`StartError`] if a name is not known, or the system refuses a thread.
    pub fn launch(plans: &[Plan]) -> Result<Self, StartError> {
        // A worker's requests wait while it touches memory for the first time.
        memory::refuse_huge_pages();
        let Plan {
            load, execution, ..
        } = &plans[0];
        let (events, inbox) = mpsc::channel();
        let (go, started) = watch::channel(false);
        let requests = execution.extent.requests();
        let requests = requests.map(|count| count.saturating_mul(plans.len() as u64));
        let shared = |plan: &Plan| Party {
            replies: (0..execution.workers).map(|_| Arc::default()).collect(),
            backlog: Arc::new(Backlog::new(execution.workers, plan.load.max_backlog)),
            quic_paths: OnceLock::new(),
        };
        let mut workers = Self {
            clock: Monotonic::start(),
            timeline: Arc::new(Timeline::new(requests)),
            parties: plans.iter().map(shared).collect(),
            inbox,
            go,
            threads: Vec::new(),
        };
        let mut threads: Vec<Vec<Part>> = (0..execution.workers).map(|_| Vec::new()).collect();
        for (number, plan) in plans.iter().enumerate() {
            let division = Division {
                plan: Arc::new(plan.clone()),
                party: &workers.parties[number],
                clock: workers.clock,
                timeline: &workers.timeline,
                outbox: Outbox::new(number, events.clone()),
                started: started.clone(),
            };
            let parts = plan.load.kind.visit(plan.target.endpoint()?, division);
            for (thread, part) in threads.iter_mut().zip(parts) {
                thread.push(part);
            }
        }
        let turns = execution
            .together
            .filter(|_| load.arrival == Arrival::Closed);
        let cores = execution.pin.then(cores::own).unwrap_or_default();
        for (worker, parts) in threads.into_iter().enumerate() {
            let core = cores.iter().copied().cycle().nth(worker);
            let share = Share::of(&plans[0], worker);
            let turns = turns.map(|together| {
                // Each caller of the step has an order of its own.
                let seed = together.order_seed.wrapping_add(share.first_caller.into());
                (share.callers, seed)
            });
            let events = events.clone();
            let thread = thread::Builder::new()
                .name(format!("client-{worker}"))
                .spawn(move || run(core, parts, turns, &events))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }
    /// Waits until all workers are connected, and returns the security of their connections for each plan.
    /// Workers that are never started end when this is dropped.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn connected(&self, interrupt: &Interrupt) -> Result<Vec<Option<Negotiated>>, StartError> {
        let mut negotiated = vec![None; self.parties.len()];
        let mut waiting = self.threads.len() * self.parties.len();
        while waiting > 0 {
            let has_lost_one = self.has_lost_one();
            match self.inbox.recv_timeout(LOOK) {
                Ok((party, Event::Ready(ready))) => {
                    let (own, ready) = (&mut negotiated[party], ready?);
                    *own = own.take().or(ready);
                    waiting -= 1;
                }
                Err(RecvTimeoutError::Timeout) if interrupt.is_set() => {
                    return Err(StartError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if !has_lost_one => {}
                _ => return Err(StartError::Broken),
            }
        }
        Ok(negotiated)
    }

    /// Returns true if a thread has ended, which none does before [`Workers::join`] unless it cannot connect, or has
    /// panicked. One that could not connect has said so before.
    pub fn has_lost_one(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Lets the callers begin.
    pub fn start(&self) {
        // Workers hold the other end until they are done.
        let _ = self.go.send(true);
    }

    /// Waits for the threads' end.
    ///
    /// # Errors
    /// [`StartError::Broken`] if one has panicked.
    pub fn join(self) -> Result<(), StartError> {
        // A worker that waits for its start learns that none will come.
        drop((self.go, self.inbox));
        for thread in self.threads {
            thread.join().map_err(|_| StartError::Broken)?;
        }
        Ok(())
    }
}
