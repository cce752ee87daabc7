//! From a plan and what the engine measured to a step of the result.

use netping_client::{engine::Measurement, plan::Plan};
use netping_measure::summary::Summary;
use netping_results::{
    connect,
    messages::MessageSummary,
    run::{Histograms, Place, Step},
    warning::Facts,
};

/// Returns the step of the result that `plan` came to, at its place in the run.
pub fn step(plan: &Plan, measurement: &Measurement, place: Place) -> Step {
    let settings = plan.settings(measurement.warmup);
    let summary = Summary::of(&measurement.totals);
    let messages = measurement.messages.as_ref();
    let messages = messages.map(|messages| MessageSummary::of(messages, summary.seconds));
    let histograms = Histograms::of(&measurement.totals);
    let warnings = Facts {
        settings: &settings,
        summary: &summary,
        cost: &measurement.cost,
        slots: measurement.totals.window_slots(),
        drain_slots: measurement.totals.drain_slots(),
        service_time: &histograms.service_time,
        subject: plan.execution.subject,
        warmup_failed: measurement.warmup_failed,
        shared_host: measurement.server_shares_host || plan.target.is_own_host(),
        server_restarted: measurement.server_restarted,
        clock_step: measurement.clock_step,
    }
    .warnings();
    let negotiated = measurement.negotiated.clone();
    Step {
        target: plan.target.url.to_string(),
        label: plan.target.label.clone(),
        measurement: place.measurement,
        trial: place.trial,
        status: measurement.status,
        window_started_at: measurement.window_started_at,
        settings,
        summary,
        cost: measurement.cost.clone(),
        reconnects: measurement.reconnects,
        ended_by_server: measurement.ended_by_server,
        security: negotiated.map(|negotiated| plan.target.trust.security(negotiated)),
        connect: connect::phases(&measurement.phases),
        bulk: None,
        messages,
        fairness: measurement.fairness.clone(),
        warnings,
        intervals: measurement.totals.intervals.clone(),
        histograms,
    }
}
