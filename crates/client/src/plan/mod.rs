//! A validated run of one step. The engine sees only this.

mod execution;
mod load;
mod part;
mod settings;
mod target;
mod together;

pub use self::{
    execution::{Execution, Extent, Warmup},
    load::{Arrival, Assign, Bursts, Load},
    part::{ClientPart, PartNumber, TooFewToShare},
    target::{
        Companion, Destination, OwnServer, ReplyLength, ServerEndpoint, StreamLimits, Trust,
        resolve,
    },
    together::{Together, shuffle, shuffled, together},
};

use netping_measure::sample::LoopKind;

use crate::transport::{Kind, grpc_reply::PREFIX};

/// One step: one target, one set of settings.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub target: Destination,
    /// The requests that it gets.
    pub load: Load,
    /// The way in which the client runs the step.
    pub execution: Execution,
}

impl Plan {
    /// Returns a plan for one caller on one connection with echoes of 4 bytes and no end; commands
    /// change what they want otherwise.
    pub fn new(target: Destination, kind: Kind) -> Self {
        Self {
            target,
            load: Load::one_caller(kind),
            execution: Execution::default(),
        }
    }

    /// Returns the plan of a trial, numbered from 1: random arrivals are not those of the others.
    #[must_use]
    pub fn of_trial(&self, trial: u32) -> Self {
        let mut plan = self.clone();
        let whole = plan.execution.part.as_mut().map(|part| &mut part.arrival);
        for arrival in whole.into_iter().chain([&mut plan.load.arrival]) {
            if let Arrival::Poisson { seed, .. } = arrival {
                *seed = seed.wrapping_add(u64::from(trial) - 1);
            }
        }
        plan
    }

    /// Returns the bytes of payload in each request, on average where they differ.
    pub fn payload_bytes(&self) -> usize {
        let mean = self.target.prepared.bodies.mean_length();
        match self.load.kind {
            Kind::GrpcCall | Kind::GrpcMessages => mean.saturating_sub(PREFIX),
            kind if kind.is_prepared() => mean,
            _ => self.load.payload,
        }
    }

    /// Returns the way in which requests follow each other.
    pub fn loop_kind(&self) -> LoopKind {
        match self.load.arrival {
            Arrival::Closed => LoopKind::Closed,
            _ => LoopKind::Open,
        }
    }
}
