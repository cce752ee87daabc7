//! The validity of a run's numbers, as text.

use netping_results::{
    bulk::BulkStep,
    format::{micros, thousands},
    limit::Limit,
    run::Step,
    validity::Warnings,
};

/// Returns each warning about the steps and the bulk streams once, with its remedy, or `VALID`;
/// then the limit, Little's law and the fairness of the step with the highest rate.
pub fn describe(steps: &[Step], bulk: &[BulkStep]) -> String {
    let warnings = Warnings::of(steps, bulk);
    let mut lines = Vec::new();
    for (warning, concerned) in &warnings.kinds {
        let steps = if warnings.results == 1 {
            String::new()
        } else {
            format!(" ({concerned} of {} steps)", warnings.results)
        };
        lines.push(format!(
            "{}{steps}: {warning}; {}",
            warning.name(),
            warning.remedy()
        ));
    }
    if warnings.is_valid() {
        let notes = if warnings.kinds.is_empty() {
            "no warnings"
        } else {
            "the warnings above are notes"
        };
        lines.push(format!("VALID: {notes}"));
    }
    let peak = steps
        .iter()
        .max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate));
    lines.extend(peak.and_then(limit));
    lines.extend(peak.and_then(littles_law));
    lines.extend(peak.and_then(fairness));
    lines.join("\n")
}

fn limit(step: &Step) -> Option<String> {
    let rate = thousands(step.summary.rate);
    Limit::of(step).map(|limit| format!("limit at the highest rate, {rate} req/s: {limit}"))
}

fn littles_law(step: &Step) -> Option<String> {
    let (mean, in_system) = (step.summary.service_time.mean?, step.summary.in_system()?);
    Some(format!(
        "Little's law at the highest rate: N = {} callers, X = {} req/s, R = {} us, X*R = {in_system:.2}",
        step.settings.callers,
        thousands(step.summary.rate),
        micros(mean / 1e3),
    ))
}

fn fairness(step: &Step) -> Option<String> {
    let fairness = step.fairness.as_ref()?;
    Some(format!(
        "requests per connection at the highest rate: min {}, median {}, max {}, Jain's index {:.3}",
        thousands(fairness.min as f64),
        thousands(fairness.median as f64),
        thousands(fairness.max as f64),
        fairness.jain,
    ))
}
