//! A transport without a network: every call takes its time by moving a manual clock.

use std::{cell::Cell, rc::Rc};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::payload::Exchange;

use super::{
    connection::{Carried, Connection, Milestones, Transport},
    failure::Failure,
};
use crate::clock::{Clock, Manual};

/// The behaviour of a mock. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// Time to connect.
    pub connect: u64,
    /// Service time of each request.
    pub service: u64,
    /// One in so many requests fails; 0: none.
    pub fail_every: u64,
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
}

impl Mock {
    /// Returns a mock that moves `clock`.
    pub fn new(clock: Manual, behaviour: Behaviour) -> Self {
        Self {
            clock,
            behaviour,
            calls: Rc::default(),
        }
    }

    /// Returns the number of requests so far.
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }
}

impl Mock {
    async fn serve(&self) {
        let Behaviour {
            service,
            side_by_side,
            stopped: (from, until),
            ..
        } = self.behaviour;
        if !side_by_side {
            return self.clock.advance(service);
        }
        let begun = self.clock.now();
        let end = begun + service;
        let end = if begun < until && end > from {
            until.max(begun) + service
        } else {
            end
        };
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
        Ok(self.clone())
    }
}

impl Connection for Mock {
    fn share(&self) -> Option<Self> {
        None
    }

    async fn call(&mut self, _: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        self.serve().await;
        self.calls.set(self.calls.get() + 1);
        if self.behaviour.fail_every > 0
            && self.calls.get().is_multiple_of(self.behaviour.fail_every)
        {
            return Err(Failure::request(ErrorKind::Mismatch, "mock"));
        }
        Ok(())
    }
}
