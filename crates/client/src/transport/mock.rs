//! A transport without a network: every call takes its time by moving a manual clock.

use std::{cell::Cell, rc::Rc};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::payload::Exchange;

use super::{Carried, Connection, Failure, Milestones, Transport};
use crate::clock::{Clock, Manual};

/// The behaviour of a mock. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// Time to connect.
    pub connect: u64,
    /// Service time of each request.
    pub service: u64,
    /// The distance between requests that fail; 0: none does.
    pub fail_every: u64,
    /// Service time on the first connection, if it differs; 0: it does not.
    pub service_on_first: u64,
    /// Requests run side by side, on a clock that something else moves.
    pub side_by_side: bool,
    /// Beginning and end of a pause of the server, for requests side by side.
    pub stopped: (u64, u64),
}

/// A transport to no server.
#[derive(Debug, Clone)]
pub struct Mock {
    clock: Manual,
    behaviour: Behaviour,
    calls: Rc<Cell<u64>>,
    /// Connections that were opened, and the number of this one.
    opened: Rc<Cell<u64>>,
    number: u64,
}

impl Mock {
    /// Returns a mock that moves `clock`.
    pub fn new(clock: Manual, behaviour: Behaviour) -> Self {
        Self {
            clock,
            behaviour,
            calls: Rc::default(),
            opened: Rc::default(),
            number: 0,
        }
    }

    /// Returns the number of requests so far.
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    async fn serve(&self) {
        let service = match self.behaviour.service_on_first {
            longer if longer > 0 && self.number == 1 => longer,
            _ => self.behaviour.service,
        };
        if !self.behaviour.side_by_side {
            return self.clock.advance(service);
        }
        let (from, until) = self.behaviour.stopped;
        let begun = self.clock.now();
        let is_stopped = begun < until && begun + service > from;
        let end = service + if is_stopped { until } else { begun };
        while self.clock.now() < end {
            tokio::task::yield_now().await;
        }
    }
}

impl Transport for Mock {
    type Connection = Self;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Self, Failure> {
        self.clock.advance(self.behaviour.connect);
        milestones.reached(ConnectPhase::Tcp);
        self.opened.set(self.opened.get() + 1);
        Ok(Self {
            number: self.opened.get(),
            ..self.clone()
        })
    }
}

impl Connection for Mock {
    async fn call(&mut self, _: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        self.serve().await;
        self.calls.set(self.calls() + 1);
        let every = self.behaviour.fail_every;
        if every > 0 && self.calls().is_multiple_of(every) {
            return Err(Failure::request(ErrorKind::Mismatch, "mock"));
        }
        Ok(())
    }
}
