//! One worker's part of a plan: its connections, and its ends of the channels to the engine.

use std::{
    pin::Pin,
    rc::Rc,
    sync::mpsc::{self, Receiver, Sender},
};

use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};
use netping_measure::{
    error_kind::ErrorKind,
    recorder::{Interval, Sink},
};
use netping_protocol::tls::Negotiated;
use tokio::{sync::watch, time};

use crate::{
    clock::Monotonic,
    engine::{
        connection_slot::ConnectionSlot,
        turns::Turn,
        worker::{self, Assignment, WorkerReport},
    },
    error::{CANNOT_CONNECT, StartError},
    plan::OwnServer,
    transport::{Failure, Transport},
};

/// Connections that a worker opens at the same time.
const OPENING_AT_ONCE: usize = 64;

/// A message from a worker to the engine.
#[derive(Debug)]
pub enum Event {
    /// The worker has its connections, with this security, or could not start or open one.
    Ready(Result<Option<Negotiated>, StartError>),
    /// The worker's interval is full; an empty one is wanted back.
    Interval(Box<Interval>, Sender<Interval>),
    /// The worker is done.
    Done(Box<WorkerReport>),
}

/// A worker's end of the channel to the engine, which says whose messages they are.
#[derive(Debug, Clone)]
pub struct Outbox {
    party: usize,
    events: Sender<(usize, Event)>,
}

impl Outbox {
    /// Returns the end for messages about the plan with this number.
    pub fn new(party: usize, events: Sender<(usize, Event)>) -> Self {
        Self { party, events }
    }

    /// Sends a message. The engine waits for its workers; if it is gone, the result is not wanted.
    pub fn send(&self, event: Event) {
        let _ = self.events.send((self.party, event));
    }
}

/// A worker's ends of the two channels on which intervals go round.
#[derive(Debug)]
struct IntervalChannels {
    full: Outbox,
    spare: Sender<Interval>,
    empty: Receiver<Interval>,
}

impl IntervalChannels {
    /// Makes the two intervals between which a worker changes, ahead of its requests: these would wait for the memory.
    fn new(full: Outbox) -> Self {
        let (spare, empty) = mpsc::channel();
        for _ in 0..2 {
            // The other end is there.
            let _ = spare.send(Interval::new(0));
        }
        Self { full, spare, empty }
    }
}

impl Sink for IntervalChannels {
    fn hand_on(&mut self, interval: Interval) {
        let full = Event::Interval(Box::new(interval), self.spare.clone());
        self.full.send(full);
    }

    fn spare(&mut self) -> Option<Interval> {
        self.empty.try_recv().ok()
    }
}

/// One worker's part of a plan, before it runs on the worker's thread.
pub type Part = Box<dyn FnOnce(Option<Turn>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The same, while the type of its transport is known.
pub struct WorkerPart<T> {
    pub transport: T,
    pub assignment: Assignment,
    pub clock: Monotonic,
    /// Becomes true when the callers may begin.
    pub started: watch::Receiver<bool>,
    pub outbox: Outbox,
}

impl<T: Transport> WorkerPart<T> {
    /// Connects, and runs the callers once they may begin: by turns with those of other plans, if there
    /// are any.
    pub async fn work(mut self, turn: Option<Turn>) {
        let events = self.outbox.clone();
        let channels = IntervalChannels::new(self.outbox.clone());
        if self.assignment.plan.execution.busy_poll {
            tokio::task::spawn_local(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
        }
        if let Some(OwnServer::OnWorker(server)) = &self.assignment.plan.target.in_process
            && let Err(error) = server.start()
        {
            events.send(Event::Ready(Err(error.into())));
            return;
        }
        let (slots, ready) = match self.connect().await {
            Ok((slots, negotiated)) => (slots, Ok(negotiated)),
            Err(failure) => {
                let target = self.assignment.plan.target.url.clone();
                let failure = failure.at(CANNOT_CONNECT);
                (Vec::new(), Err(StartError::Server(target, failure)))
            }
        };
        let connected = ready.is_ok();
        events.send(Event::Ready(ready));
        // If the engine is gone, it never starts either.
        if !connected || self.started.wait_for(|started| *started).await.is_err() {
            return;
        }
        let report = worker::run(self.assignment, turn, &slots, self.clock, channels).await;
        events.send(Event::Done(Box::new(report)));
        // Connections stay open until their account has been read, which the end of the channel shows.
        while self.started.changed().await.is_ok() {}
        let last_words: Vec<_> = slots.iter().map(|slot| slot.last_words()).collect();
        drop(slots);
        join_all(last_words).await;
    }

    /// Opens this worker's connections. With a limited number of requests on each, only the first
    /// is tried: the others would be opened anew at once, and opening them belongs to the requests.
    async fn connect(&self) -> Result<(Vec<Rc<ConnectionSlot<T>>>, Option<Negotiated>), Failure> {
        let load = &self.assignment.plan.load;
        let limit = load.requests_per_connection;
        let stamped = self.assignment.plan.execution.anatomy;
        let connections = self.assignment.share.connections;
        let slots = ConnectionSlot::several(connections, &self.transport, limit, stamped);
        let opened = if limit.is_some() {
            ConnectionSlot::several(1, &self.transport, limit, stamped)
        } else {
            slots.clone()
        };
        let negotiated: Vec<_> = stream::iter(opened)
            .map(|slot| async move {
                let opening = time::timeout(load.timeout, slot.open());
                let overdue =
                    || Failure::lost(ErrorKind::ConnectTimeout, "no connection within --timeout");
                opening.await.unwrap_or_else(|_| Err(overdue()))
            })
            .buffer_unordered(OPENING_AT_ONCE)
            .try_collect()
            .await?;
        Ok((slots, negotiated.into_iter().flatten().next()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_the_memory_of_two_intervals_before_it_begins() {
        let (events, _inbox) = mpsc::channel();
        let mut channels = IntervalChannels::new(Outbox::new(0, events));
        let intervals = [(); 3].map(|()| channels.spare().is_some());
        assert_eq!(intervals, [true, true, false]);
    }
}
