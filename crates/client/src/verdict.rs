//! Whether the numbers of an invocation may be believed.

use netping_report::{
    BulkStep, Doubt, Step,
    format::{micros, thousands},
};

/// Every doubt about the steps and the bulk streams, once, with what to do about it; `VALID` where there is none. Then
/// Little's law and fairness for the step with the highest rate.
pub fn text(steps: &[Step], bulk: &[BulkStep]) -> String {
    let mut lines = Vec::new();
    let mut seen: Vec<&Doubt> = Vec::new();
    let doubts: Vec<_> = steps.iter().map(|step| &step.doubts).chain(bulk.iter().map(|step| &step.doubts)).collect();
    for doubt in doubts.iter().copied().flatten() {
        if seen.iter().all(|other| other.name() != doubt.name()) {
            seen.push(doubt);
        }
    }
    for doubt in &seen {
        let concerned = doubts.iter().filter(|own| own.iter().any(|other| other.name() == doubt.name())).count();
        let steps = if doubts.len() == 1 { String::new() } else { format!(" ({concerned} of {} steps)", doubts.len()) };
        lines.push(format!("{}{steps}: {doubt}; {}", doubt.name(), doubt.remedy()));
    }
    if seen.is_empty() && !doubts.is_empty() {
        lines.push("VALID: no doubt about these numbers is known".to_owned());
    }
    let peak = steps.iter().max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate));
    if let Some(step) = peak
        && let (Some(mean), Some(in_system)) = (step.summary.service_time.mean, step.summary.in_system())
    {
        lines.push(format!(
            "Little's law at the highest rate: N = {} callers, X = {} req/s, R = {} us, X*R = {in_system:.2}",
            step.settings.callers,
            thousands(step.summary.rate),
            micros(mean / 1e3),
        ));
    }
    if let Some(step) = peak
        && let Some(fairness) = &step.fairness
    {
        lines.push(format!(
            "requests per connection at the highest rate: min {}, median {}, max {}, Jain's index {:.3}",
            thousands(fairness.min as f64),
            thousands(fairness.median as f64),
            thousands(fairness.max as f64),
            fairness.jain,
        ));
    }
    lines.join("\n")
}
