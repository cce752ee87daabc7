//! Requests and their replies: rates and times. With one request per connection, opening
//! connections is what is measured.

use std::time::Duration;

use super::{Watch, Workload};
use crate::{
    engine::{self, Measurement},
    error::StartError,
    plan::{Arrival, Extent, Plan, Warmup},
    probe::metrics::ServerSource,
};

/// The requests of one plan.
#[derive(Debug)]
pub struct Requests(Plan);

impl Requests {
    /// Returns the requests of a plan whose target need not be reached beforehand.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.clone())
    }
}

impl Workload for Requests {
    type Plan = Plan;
    type Outcome = Measurement;
    type Error = StartError;

    /// Sends one request to each target, and keeps nothing of it.
    fn open(plans: &[Plan], watch: Watch<'_>) -> Result<Vec<Self>, StartError> {
        let open = |plan: &Plan| {
            engine::run(&one_request(plan), watch.interrupt, watch.observer)?;
            Ok(Self::new(plan))
        };
        plans.iter().map(open).collect()
    }

    fn run(&mut self, watch: Watch<'_>) -> Result<Measurement, StartError> {
        engine::run(&self.0, watch.interrupt, watch.observer)
    }
}

/// Returns a plan for one request to the target of `plan`.
fn one_request(plan: &Plan) -> Plan {
    let mut one = plan.clone();
    one.target.server = ServerSource::Nowhere;
    one.load.arrival = Arrival::Closed;
    one.load.callers = 1;
    one.load.connections = 1;
    one.load.requests_per_connection = None;
    one.execution.workers = 1;
    one.execution.warmup = Warmup::Time(Duration::ZERO);
    one.execution.extent = Extent::Requests(1);
    one
}
