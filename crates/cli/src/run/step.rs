//! From a plan and what the engine measured to a step of the result.

use netping_client::{engine::Measured, plan::Plan};
use netping_measure::{
    fairness::{Fairness, PerConnection},
    times::Time,
};
use netping_results::{
    anatomy::AnatomySummary,
    connect,
    messages::MessageSummary,
    run::{Place, Step},
    warning::{Facts, Warning},
};

/// Returns the step of the result that `plan` came to, at its place in the run.
pub fn step(plan: &Plan, measurement: &Measured, place: Place) -> Step {
    let report = &measurement.report;
    let target = plan.target.url.to_string();
    let settings = plan.settings(measurement.warmup);
    let mut step = Step::of(target, place, settings, &measurement.totals);
    step.label.clone_from(&plan.target.label);
    step.status = measurement.status;
    step.window_started_at = measurement.window_started_at;
    step.cost = report.cost.clone();
    if plan.target.is_on_worker() {
        // It is the server's, too.
        step.cost.client_cpu_us_per_request = None;
    }
    let negotiated = report.negotiated.clone();
    step.security = negotiated.map(|negotiated| plan.target.trust.security(negotiated));
    step.connect = connect::phases(&report.phases);
    let messages = report.messages.as_ref();
    step.messages = messages.map(|own| MessageSummary::of(own, step.summary.seconds));
    step.held_back = Some(report.held_back).filter(|own| own.requests > 0);
    step.anatomy = report.anatomy.as_ref().map(AnatomySummary::of);
    let are_kept = plan.load.requests_per_connection.is_none();
    let connections = PerConnection::of_all(&report.connections, are_kept);
    step.fairness = Fairness::of(connections.clone());
    step.path.clone_from(&measurement.path);
    step.warnings = Warning::of_step(&Facts {
        settings: &step.settings,
        summary: &step.summary,
        cost: &step.cost,
        slots: measurement.totals.slots(),
        gaps: &measurement.totals.gaps(),
        outstanding: measurement.totals.outstanding(),
        connections: &connections,
        path: step.path.as_ref(),
        held_back: step.held_back,
        service_time: &step.histograms.times[Time::Service],
        subject: plan.execution.subject,
        warmup_failed: measurement.warmup_failed,
        shared_host: !plan.target.is_on_worker()
            && (measurement.server_shares_host || plan.target.is_own_host()),
        server_restarted: measurement.server_restarted,
        clock_step: measurement.clock_step,
    });
    step
}
