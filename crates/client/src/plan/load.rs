//! The requests of a plan.

use std::{num::NonZeroU64, time::Duration};

use netping_protocol::frame::Reply;

use crate::transport::Kind;

/// The requests that a server gets, and the callers and connections that they come from.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The transport that carries requests.
    pub kind: Kind,
    /// The process by which requests come about.
    pub arrival: Arrival,
    /// The callers that a due request of an open loop is for.
    pub assign: Assign,
    /// Limit on the requests of an open loop that are due and wait for a caller.
    pub max_backlog: usize,
    /// Callers, each with one request outstanding.
    pub callers: usize,
    /// Connections; for a protocol without multiplexing, one for each caller.
    pub connections: usize,
    /// Requests on a connection before it is opened anew; `None`: it is kept.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Bytes of payload in each of netping's own requests.
    pub payload: usize,
    /// The reply that each request asks for.
    pub reply: Reply,
    /// Time limit of a request, and of opening a connection.
    pub timeout: Duration,
}

impl Load {
    /// Returns a closed loop of one caller that has 4 bytes echoed on one connection.
    pub fn one_caller(kind: Kind) -> Self {
        Self {
            kind,
            arrival: Arrival::Closed,
            assign: Assign::Any,
            max_backlog: 0,
            callers: 1,
            connections: 1,
            requests_per_connection: None,
            payload: 4,
            reply: Reply::Echo,
            timeout: Duration::from_secs(5),
        }
    }
}

/// The callers that a due request of an open loop is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assign {
    /// Any caller that is free.
    Any,
    /// Those of one connection, known beforehand.
    Fixed,
}

/// The process by which requests come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Closed loop: a caller sends its next request when it has the last reply.
    Closed,
    /// Requests are due at equal distances; the rate in requests per second.
    Constant(f64),
    /// Requests are due at random, independently of each other: the gaps between them are
    /// exponentially distributed.
    Poisson {
        /// Mean rate, in requests per second.
        rate: f64,
        /// Seed of the random generator; the same seed gives the same times.
        seed: u64,
    },
}

impl Arrival {
    /// Returns the planned rate, in requests per second; `None` in a closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant(rate) | Self::Poisson { rate, .. } => Some(rate),
        }
    }

    /// Returns its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Constant(_) => "constant",
            Self::Poisson { .. } => "poisson",
        }
    }
}
