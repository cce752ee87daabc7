//! One worker's part of a step: its assignment and its results.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use netping_measure::{
    connect::PhaseTimes, error_kind::ErrorKind, fairness::PerConnection, histogram::Histogram,
    recorder::Outside,
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
    /// Security of connections with a limited number of requests; `None` in the clear, or without
    /// any.
    pub negotiated: Option<Negotiated>,
    /// The first failure of each kind, for people.
    pub details: BTreeMap<ErrorKind, String>,
    /// CPU time of this thread over the window.
    pub cpu: Duration,
    /// Time over the window for which this thread was ready to run but did not.
    pub run_delay: Duration,
}
