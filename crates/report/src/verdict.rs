//! The verdict on a run's numbers, as text.

use netping_measure::status::Status;
use netping_results::{
    format::{on_one_line, plural, thousands},
    limit::Limit,
    run::{Kind, Run, Step},
    warning::{Found, SharedHost, Warnings},
};

/// Most rows that a warning names.
const NAMED: usize = 3;

/// Jain's index from which on requests are spread evenly over connections: at 0.98, a caller's rate
/// has a coefficient of variation of 14 %.
const EVEN: f64 = 0.98;

/// Returns each warning about a run once, with the rows that it is about and its remedy, and the
/// verdict, `VALID` or `NOT VALID`; then the limit of the highest rate, and its spread over
/// connections where that is uneven. Texts name those flags for which `has_flag` holds.
pub fn describe(run: &Run, has_flag: impl Fn(&str) -> bool) -> String {
    let warnings = Warnings::of_run(run);
    let mut lines = Vec::new();
    for found in &warnings.kinds {
        let rows = match warnings.results {
            1 => String::new(),
            all => format!(
                " ({} of {all} steps{})",
                found.steps.len(),
                rows(run, found)
            ),
        };
        let at_worst = if found.varies { "at worst, " } else { "" };
        let (name, worst) = (found.worst.name(), &found.worst);
        let remedy = worst.remedy_with(&has_flag);
        lines.push(format!("{name}{rows}: {at_worst}{worst}; {remedy}"));
    }
    lines.extend(cut_short(run));
    let wrong = warnings.invalidating();
    if !wrong.is_empty() {
        let others = if wrong.len() < warnings.kinds.len() {
            "; the other warnings are notes"
        } else {
            ""
        };
        lines.push(format!("NOT VALID: {}{others}", wrong.join(", ")));
    }
    if warnings.is_valid() {
        let notes = if lines.is_empty() {
            "no warnings"
        } else {
            "the warnings above are notes"
        };
        lines.push(format!("VALID: {notes}"));
    }
    // Of a ladder, no load is the highest.
    let is_ladder = run.kind == Kind::Ladder;
    let steps = run.steps.iter().filter(|_| !is_ladder);
    let peak = steps.max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate));
    lines.extend(peak.and_then(|peak| limit(run, peak, has_flag("--server-pid"))));
    lines.extend(peak.and_then(fairness));
    lines.join("\n")
}

/// Returns the rows that a warning is about, the first few of them; nothing where all rows are.
fn rows(run: &Run, found: &Found) -> String {
    let all = distinct(run.steps.iter().map(|step| row(run, step)));
    let mut concerned = distinct(found.steps.iter().map(|at| row(run, &run.steps[*at])));
    if concerned.len() == all.len() || concerned.is_empty() {
        return String::new();
    }
    let more = concerned.len().saturating_sub(NAMED);
    concerned.truncate(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(": {}{more}", concerned.join(", "))
}

/// Returns names in their order, each once.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Returns the name of a step's row: its target or label, where there are several, and its load.
fn row(run: &Run, step: &Step) -> String {
    let several = run.steps.iter().any(|other| other.target != step.target);
    let name = on_one_line(step.name());
    let callers = plural(step.settings.callers as u64, "caller");
    let load = match step.settings.planned_rate {
        Some(rate) => format!("{} req/s", thousands(rate)),
        None if step.settings.connections < step.settings.callers => {
            let connections = plural(step.settings.connections as u64, "connection");
            format!("{callers} on {connections}")
        }
        None => callers,
    };
    if several {
        format!("{name} with {load}")
    } else {
        load
    }
}

/// Says which steps did not come to their end.
fn cut_short(run: &Run) -> Option<String> {
    let partial = run
        .steps
        .iter()
        .filter(|step| step.status == Status::Partial);
    let rows: Vec<String> = partial.map(|step| row(run, step)).collect();
    (!rows.is_empty()).then(|| format!("cut short: {}", rows.join(", ")))
}

/// Returns the limit of the step with the highest rate; where that is not known, what may tell.
/// `has_server_pid`: the command has a flag for the server's process.
fn limit(run: &Run, step: &Step, has_server_pid: bool) -> Option<String> {
    let rate = thousands(step.rate()?);
    let limit = Limit::of(step)?;
    let mut line = format!("limit at the highest rate, {rate} req/s: {limit}");
    let Limit::Other { server, .. } = limit else {
        return Some(line);
    };
    let own = &step.settings;
    let has_more =
        |other: &Step| other.target == step.target && other.settings.callers > own.callers;
    let mut untried = Vec::new();
    // A rate that fell with more callers does not rise with them.
    if !run.steps.iter().any(has_more) {
        untried.push("more callers");
    }
    if own.connections < own.callers {
        untried.push("more connections");
    }
    if !step.warnings.contains(&SharedHost.into()) {
        untried.push("another network");
    }
    if !untried.is_empty() {
        line.extend(["; ", &untried.join(", "), " may give more"]);
    }
    if server.is_none() && has_server_pid {
        line.push_str("; --server-pid tells the server's part");
    }
    Some(line)
}

fn fairness(step: &Step) -> Option<String> {
    step.rate()?;
    let fairness = step.fairness.as_ref().filter(|own| own.jain < EVEN)?;
    Some(format!(
        "requests per connection at the highest rate: min {}, median {}, max {}, Jain's index {:.3}",
        thousands(fairness.min as f64),
        thousands(fairness.median as f64),
        thousands(fairness.max as f64),
        fairness.jain,
    ))
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, warning::TooFewSamples};

    use super::*;

    #[test]
    fn texts_have_the_flags_of_the_command_alone() {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.warnings = vec![TooFewSamples { samples: 5 }.into()];
        let run = fixtures::run(vec![step]);
        let said = |flags: &[&str]| describe(&run, |flag| flags.contains(&flag));
        let (none, all) = (said(&[]), said(&["-d", "--samples", "--server-pid"]));
        assert!(none.starts_with("TOO_FEW_SAMPLES: too few samples for p99: 5; measure longer\n"));
        assert!(all.contains("; measure longer (-d, --samples)\n"), "{all}");
        assert!(all.contains("--server-pid tells") && !none.contains("--server-pid"));
    }

    #[test]
    fn a_warning_names_the_rows_that_it_is_about() {
        let mut run = fixtures::run(Vec::new());
        for callers in [1, 2, 4, 8, 16] {
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            step.settings.callers = callers;
            step.settings.connections = callers;
            step.warnings = vec![SharedHost.into()];
            run.steps.push(step);
        }
        let said = |run: &Run| {
            describe(run, |_| true)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        assert!(said(&run).starts_with("SHARED_HOST (5 of 5 steps): "));
        run.steps[0].warnings.clear();
        assert!(said(&run).starts_with(
            "SHARED_HOST (4 of 5 steps: 2 callers, 4 callers, 8 callers and 1 more): "
        ));
    }
}
