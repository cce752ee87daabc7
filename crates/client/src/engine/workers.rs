//! The worker threads of a step, and the engine's ends of their channels.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netping_protocol::tls::Negotiated;
use netping_system::cores;
use tokio::sync::watch;

use crate::{
    clock::Monotonic,
    engine::{
        backlog::Backlog,
        rate_meter::ReplyCounter,
        share::Share,
        timeline::Timeline,
        worker::Assignment,
        worker_thread::{Event, IntervalChannels, WorkerThread},
    },
    error::StartError,
    interrupt::Interrupt,
    plan::Plan,
    transport::{Transport, Visitor},
};

/// Time between looks at interrupts, at the phases' ends and at the rate.
pub const LOOK: Duration = Duration::from_millis(20);

/// The worker threads of a step, and the engine's ends of their channels.
#[derive(Debug)]
pub struct Workers {
    pub clock: Monotonic,
    pub timeline: Arc<Timeline>,
    pub replies: Vec<Arc<ReplyCounter>>,
    pub backlog: Arc<Backlog>,
    pub inbox: Receiver<Event>,
    go: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts the workers of a plan, which then connect.
pub struct Launch(pub Arc<Plan>);

impl Visitor for Launch {
    type Output = io::Result<Workers>;

    fn visit<T: Transport + Send>(self, transport: T) -> io::Result<Workers> {
        let Self(plan) = self;
        let execution = plan.execution;
        let (events, inbox) = mpsc::channel();
        let (go, started) = watch::channel(false);
        let cores = execution.pin.then(cores::own).unwrap_or_default();
        let mut workers = Workers {
            clock: Monotonic::start(),
            timeline: Arc::new(Timeline::new(execution.extent.requests())),
            replies: Vec::new(),
            backlog: Arc::new(Backlog::new(execution.workers, plan.load.max_backlog)),
            inbox,
            go,
            threads: Vec::new(),
        };
        for worker in 0..execution.workers {
            let (spare, empty) = mpsc::channel();
            let replies = Arc::new(ReplyCounter::default());
            let thread = WorkerThread {
                transport: transport.clone(),
                assignment: Assignment {
                    plan: Arc::clone(&plan),
                    share: Share::of(&plan, worker),
                    timeline: Arc::clone(&workers.timeline),
                    replies: Arc::clone(&replies),
                    backlog: Arc::clone(&workers.backlog),
                },
                core: cores.iter().copied().cycle().nth(worker),
                clock: workers.clock,
                started: started.clone(),
                channels: IntervalChannels {
                    full: events.clone(),
                    spare,
                    empty,
                },
            };
            let thread = thread::Builder::new()
                .name(format!("client-{worker}"))
                .spawn(move || thread.run())?;
            workers.threads.push(thread);
            workers.replies.push(replies);
        }
        Ok(workers)
    }
}

impl Workers {
    /// Waits until all workers are connected, and returns the security of their connections.
    /// Workers that are never started end when this is dropped.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn connected(&self, interrupt: &Interrupt) -> Result<Option<Negotiated>, StartError> {
        let mut negotiated = None;
        let mut waiting = self.threads.len();
        while waiting > 0 {
            match self.inbox.recv_timeout(LOOK) {
                Ok(Event::Ready(ready)) => {
                    negotiated = negotiated.or(ready?);
                    waiting -= 1;
                }
                Err(RecvTimeoutError::Timeout) if !interrupt.is_set() => {}
                Err(RecvTimeoutError::Timeout) => return Err(StartError::Interrupted),
                _ => return Err(StartError::Broken),
            }
        }
        Ok(negotiated)
    }

    /// Returns a function that counts the replies so far.
    pub fn reply_count(&self) -> impl Fn() -> u64 + Send + use<> {
        let counters = self.replies.clone();
        move || counters.iter().map(|counter| counter.count()).sum()
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
