//! Requests and their replies: rates and times. With one request per connection, opening
//! connections is what is measured.

use std::{sync::Arc, time::Duration};

use netping_measure::error_kind::ErrorKind;

use super::{Watch, Workload};
use crate::{
    engine::{self, Measurement},
    error::{StartError, UNIMPLEMENTED},
    interrupt::Interrupt,
    plan::{Arrival, Extent, Plan, Warmup},
    probe::metrics::ServerSource,
    transport::Failure,
};

/// Least time that a first call may take, however impatient the measured requests are.
const FIRST_CALL: Duration = Duration::from_secs(1);

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

    /// Sends one request to each target that is to answer a first call, or those whose replies are
    /// shown. Nothing is kept of them but these replies.
    fn open(plans: &[Plan], watch: Watch<'_>) -> Result<Vec<Self>, StartError> {
        let open = |plan: &Plan| {
            if plan.target.first_call {
                let one = engine::run(&one_request(plan), watch.interrupt, watch.observer)?;
                answered(plan, one, watch.interrupt)?;
            }
            Ok(Self::new(plan))
        };
        plans.iter().map(open).collect()
    }

    fn run(&mut self, watch: Watch<'_>) -> Result<Measurement, StartError> {
        engine::run(&self.0, watch.interrupt, watch.observer)
    }
}

/// Checks that a first call was answered. A status other than success is an answer: the run counts
/// such replies by kind.
fn answered(plan: &Plan, one: Measurement, interrupt: &Interrupt) -> Result<(), StartError> {
    if interrupt.is_set() {
        return Err(StartError::Interrupted);
    }
    if one.totals.accounting.ok > 0 {
        return Ok(());
    }
    // The end of the run may come just before that of the request's time.
    let unanswered = || (ErrorKind::Timeout, "no whole reply in time".to_owned());
    let (kind, detail) = one.details.into_iter().next().unwrap_or_else(unanswered);
    if is_answer(kind) {
        return Ok(());
    }
    Err(StartError::FirstCall {
        target: plan.target.url.clone(),
        failure: Failure::request(kind, detail),
    })
}

fn is_answer(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Http(_) => true,
        ErrorKind::Grpc(code) => code != UNIMPLEMENTED,
        _ => false,
    }
}

/// Returns a plan for one request to the target of `plan`, or for those whose replies are shown.
fn one_request(plan: &Plan) -> Plan {
    let mut one = plan.clone();
    one.target.server = ServerSource::Nowhere;
    one.load.arrival = Arrival::Closed;
    one.load.callers = 1;
    one.load.connections = 1;
    one.load.requests_per_connection = None;
    one.load.timeout = plan.load.timeout.max(FIRST_CALL);
    one.execution.workers = 1;
    one.execution.start_at = None;
    one.execution.warmup = Warmup::Time(Duration::ZERO);
    let kept = plan.target.kept.clone();
    one.execution.extent = Extent::Requests(kept.as_ref().map_or(1, |kept| kept.requests));
    Arc::make_mut(&mut one.target.prepared).kept = kept;
    one
}
