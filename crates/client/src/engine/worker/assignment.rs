//! One worker's part of a step: its assignment and its results.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use netping_measure::{
    connect::PhaseTimes, error_kind::ErrorKind, fairness::PerConnection, histogram::Histogram,
    messages::Messages, recorder::Outside, sample::Sample,
};
use netping_protocol::tls::Negotiated;

use crate::{
    engine::{backlog::Backlog, rate_meter::ReplyCounter, share::Share, timeline::Timeline},
    plan::Plan,
};

/// The part of a step that one worker has to run.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub plan: Arc<Plan>,
    pub share: Share,
    pub timeline: Arc<Timeline>,
    pub replies: Arc<ReplyCounter>,
    pub backlog: Arc<Backlog>,
}

/// A thread's use of CPU cores over the window.
#[derive(Debug, Default)]
pub struct ThreadUse {
    /// CPU time.
    pub cpu: Duration,
    /// Time for which it was ready to run but did not.
    pub run_delay: Duration,
    /// The cores on which it was seen.
    pub cores: BTreeSet<usize>,
    /// The number of times it was seen to have moved to another core.
    pub moves: u64,
}

/// The results of a worker, besides the intervals that its recorder has handed on.
#[derive(Debug, Default)]
pub struct WorkerReport {
    /// Requests outside the window.
    pub outside: Outside,
    /// Successes in each 100 ms since the run's clock began.
    pub successes: Vec<u32>,
    /// Age of each request without a reply, in nanoseconds since it was due.
    pub in_flight: Vec<u64>,
    /// Age at the window's end of each request that was due but never handed to the transport;
    /// those in the backlog are not among them.
    pub not_sent: Option<Histogram>,
    /// Requests of each connection slot.
    pub connections: Vec<PerConnection>,
    /// Connections opened in place of lost ones.
    pub reconnects: u64,
    /// Connections opened because the server had ended the previous one.
    pub ended_by_server: u64,
    /// Time to open connections within the window, by phase.
    pub phases: PhaseTimes,
    /// Messages of calls that stream; `None` without such.
    pub messages: Option<Messages>,
    /// Security of connections with a limited number of requests; `None` in the clear, or without
    /// any.
    pub negotiated: Option<Negotiated>,
    /// The first failure of each kind, for people.
    pub details: BTreeMap<ErrorKind, String>,
    /// Every success, if the plan asks for them.
    pub samples: Vec<Sample>,
    /// Time of the callers of a closed loop between a reply and the next request.
    pub between: Duration,
    /// The thread's use of CPU cores over the window.
    pub thread: ThreadUse,
}
