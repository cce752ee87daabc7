//! The first call: a request before a measurement, to see that its target answers.

use std::{sync::Arc, time::Duration};

use netping_measure::error_kind::ErrorKind;

use crate::{
    engine::{self, Observer},
    error::{FIRST_CALL_FAILED, FIRST_FRAME_FAILED, StartError, UNIMPLEMENTED},
    explain::explained,
    interrupt::Interrupt,
    plan::{Destination, Extent, Plan, Warmup},
    probe::metrics::ServerSource,
    service,
    transport::{Failure, Kind},
};

/// Least time that a first call may take, however impatient the measured requests are.
const FIRST_CALL: Duration = Duration::from_secs(1);

/// Sends one request to the target of a plan that is to answer a first call, or those whose replies
/// are shown. Nothing is kept of them but these replies.
///
/// # Errors
/// [`StartError`] if there is no answer.
pub fn first_call(
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<(), StartError> {
    if !plan.target.first_call {
        return Ok(());
    }
    call(plan, interrupt, observer).map_err(|error| match error {
        StartError::Server(_, failure) => without_answer(&plan.target, failure),
        other => other,
    })
}

/// Returns the error of a server that has not answered a first request as it should.
pub(super) fn without_answer(server: &Destination, failure: Failure) -> StartError {
    let has_named = !server.url.path.is_empty();
    if failure.kind == ErrorKind::Grpc(UNIMPLEMENTED) && !has_named {
        return StartError::NoOwnMethod {
            target: server.url.clone(),
            methods: service::paths(server).ok(),
        };
    }
    explained(server, failure)
}

fn call(plan: &Plan, interrupt: &Interrupt, observer: &dyn Observer) -> Result<(), StartError> {
    let one = engine::run(&one_request(plan), interrupt, observer)?;
    if interrupt.is_set() {
        return Err(StartError::Interrupted);
    }
    if one.totals.accounting.ok > 0 {
        return Ok(());
    }
    // The end of the run may come just before that of the request's time.
    let unanswered = || (ErrorKind::Timeout, "no whole reply in time".to_owned());
    let failed = one.report.details.into_iter().next();
    let (kind, detail) = failed.unwrap_or_else(unanswered);
    // A status other than success is an answer: the run counts such replies by kind.
    let is_status = matches!(kind, ErrorKind::Http(_) | ErrorKind::Grpc(_));
    if is_status && kind != ErrorKind::Grpc(UNIMPLEMENTED) {
        return Ok(());
    }
    let place = match plan.load.kind {
        Kind::Frame => FIRST_FRAME_FAILED,
        _ => FIRST_CALL_FAILED,
    };
    let failure = Failure::request(kind, detail).at(place);
    Err(StartError::Server(plan.target.url.clone(), failure))
}

/// Returns a plan for one request to the target of `plan`, or for those whose replies are shown.
fn one_request(plan: &Plan) -> Plan {
    let mut one = Plan::new(plan.target.clone(), plan.load.kind);
    one.target.server = ServerSource::Nowhere;
    one.load.payload = plan.load.payload;
    one.load.reply = plan.load.reply;
    one.load.timeout = plan.load.timeout.max(FIRST_CALL);
    one.execution.warmup = Warmup::Time(Duration::ZERO);
    let kept = plan.target.kept.clone();
    one.execution.extent = Extent::Requests(kept.as_ref().map_or(1, |kept| kept.requests));
    Arc::make_mut(&mut one.target.prepared).kept = kept;
    one
}
