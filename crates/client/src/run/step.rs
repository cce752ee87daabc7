//! From a plan and what the engine measured to a step of the result.

use netping_measure::summary::Summary;
use netping_results::{
    connect::PhaseSummary,
    run::{Histograms, Step},
    warning::{Facts, Warning},
};

use crate::{engine::Outcome, environment, plan::Plan};

/// Returns the step of the result that `plan` came to.
pub fn step(plan: &Plan, outcome: &Outcome, trial: u32) -> Step {
    let settings = plan.settings(outcome.warmup);
    let summary = Summary::of(&outcome.collected);
    let doubts = Warning::about(&Facts {
        settings: &settings,
        summary: &summary,
        cost: &outcome.cost,
        slots: outcome.collected.window_slots(),
        warmup_failed: outcome.warmup_failed,
        shared_host: environment::is_own(&plan.target),
        clock_step: outcome.clock_step,
    });
    let negotiated = outcome.negotiated.clone();
    Step {
        target: plan.target.to_string(),
        label: plan.label.clone(),
        trial,
        status: outcome.status,
        window_started_at: outcome.window_started_at,
        settings,
        summary,
        cost: outcome.cost.clone(),
        reconnects: outcome.reconnects,
        ended_by_server: outcome.ended_by_server,
        security: negotiated.map(|negotiated| plan.trust.security(negotiated)),
        connect: PhaseSummary::of(&outcome.phases),
        fairness: outcome.fairness.clone(),
        doubts,
        intervals: outcome.collected.intervals.clone(),
        histograms: Histograms::of(&outcome.collected),
    }
}
