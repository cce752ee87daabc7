//! From a plan and what the engine measured to a step of the result.

use netping_client::{engine::Measurement, plan::Plan};
use netping_measure::{fairness::Fairness, summary::Summary, times::Time};
use netping_results::{
    connect,
    messages::MessageSummary,
    run::{Place, Step},
    warning::{Facts, Warning},
};

/// Returns the step of the result that `plan` came to, at its place in the run.
pub fn step(plan: &Plan, measurement: &Measurement, place: Place) -> Step {
    let settings = plan.settings(measurement.warmup);
    let summary = Summary::of(&measurement.totals);
    let report = &measurement.report;
    let messages = report.messages.as_ref();
    let messages = messages.map(|messages| MessageSummary::of(messages, summary.seconds));
    let histograms = measurement.totals.histograms.clone();
    let warnings = Warning::of_step(&Facts {
        settings: &settings,
        summary: &summary,
        cost: &report.cost,
        slots: measurement.totals.window_slots(),
        drain_slots: measurement.totals.drain_slots(),
        service_time: &histograms.times[Time::Service],
        subject: plan.execution.subject,
        warmup_failed: measurement.warmup_failed,
        shared_host: measurement.server_shares_host || plan.target.is_own_host(),
        server_restarted: measurement.server_restarted,
        clock_step: measurement.clock_step,
    });
    let negotiated = report.negotiated.clone();
    Step {
        target: plan.target.url.to_string(),
        label: plan.target.label.clone(),
        measurement: place.measurement,
        trial: place.trial,
        status: measurement.status,
        window_started_at: measurement.window_started_at,
        settings,
        summary,
        cost: report.cost.clone(),
        security: negotiated.map(|negotiated| plan.target.trust.security(negotiated)),
        connect: connect::phases(&report.phases),
        bulk: None,
        messages,
        fairness: Fairness::of(report.connections.clone()),
        warnings,
        intervals: measurement.totals.intervals.clone(),
        histograms,
    }
}
