//! The verdict on a run's numbers, as text.

use netping_measure::{cost::Balance, status::Status};
use netping_results::{
    format::{self, on_one_line, plural, thousands},
    limit::Limit,
    run::{Kind, Run, Step},
    warning::{Found, SharedHost, Warning, Warnings},
};

use crate::{
    distinct, finding::connections, grouped, loads::load_of, partial, path, proof, table::red,
};

/// Most rows that a warning names.
const NAMED: usize = 3;

/// Stands at the head of what is not valid.
const BELOW: &str = "do not rely on the numbers below";

/// Jain's index from which on requests are spread evenly over connections: at 0.98, a caller's rate
/// has a coefficient of variation of 14 %.
const EVEN: f64 = 0.98;

/// Returns what stands below the numbers of a run: what counts of one that did not come to its end; each
/// warning once, with the rows that it is about and its remedy, and the verdict: `VALID`, or `NOT VALID`,
/// which stands above the warnings; then the limit of the highest rate, and its spread over connections
/// where that is uneven. Texts name those flags for which `has_flag` holds.
pub fn describe(run: &Run, has_flag: impl Fn(&str) -> bool) -> String {
    let all = Warnings::of_run(run);
    let mut lines = warnings(run, &all, &has_flag);
    lines.extend(replaced(run));
    lines.extend(cut_short(run));
    let mut lines: Vec<String> = lines.into_iter().map(|[word, text]| word + &text).collect();
    if let Some([word, text]) = verdict(&all) {
        if all.is_valid() {
            lines.push(word + &text);
        } else {
            lines.insert(0, red(&(word + &text)));
        }
    }
    if let Some(line) = partial::describe(run) {
        lines.insert(0, line);
    }
    lines.extend(allowed(run, &all));
    lines.extend(unknown_half(run).map(str::to_owned));
    lines.extend(run.proof.as_ref().map(proof::describe));
    for peak in peaks(run, &all) {
        lines.extend(limit(run, &peak, has_flag("--server-pid")));
        lines.extend(fairness(&peak));
    }
    lines.join("\n")
}

/// Returns true for a run that no warning invalidates.
pub(crate) fn is_valid(run: &Run) -> bool {
    Warnings::of_run(run).invalidating().is_empty()
}

/// Returns the line above the numbers of a run that is not valid.
pub(crate) fn above(run: &Run) -> Option<String> {
    let names = Warnings::of_run(run).invalidating();
    let line = || format!("NOT VALID: {}; {BELOW}", names.join(", "));
    (!names.is_empty()).then(|| red(&line()))
}

/// A step with the highest rate.
struct Peak<'a> {
    step: &'a Step,
    /// The steps of which it is the highest; nothing where these are all.
    among: String,
}

/// Returns the step with the highest rate, or one for each target where rates of unequal connections are
/// not to be ranked. Of a ladder, no load is the highest.
fn peaks<'a>(run: &'a Run, all: &Warnings) -> Vec<Peak<'a>> {
    if run.kind == Kind::Ladder {
        return Vec::new();
    }
    let mut warnings = all.kinds.iter().map(|found| &found.worst);
    let is_unequal = warnings.any(|worst| matches!(worst, Warning::UnequalConnections(_)));
    let name = |step: &'a Step| is_unequal.then(|| step.name());
    let steps = run.measurements().into_iter().flat_map(|own| own.trials);
    let targets = grouped(steps.map(|step| (name(step), step)));
    let peak = |(name, steps): (Option<&str>, Vec<&'a Step>)| {
        let steps = steps.into_iter();
        let step = steps.max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate))?;
        let among = name.map(|name| {
            let connections = connections(&step.settings);
            format!(" of {} on {connections}", on_one_line(name))
        });
        Some(Peak {
            step,
            among: among.unwrap_or_default(),
        })
    };
    targets.into_iter().filter_map(peak).collect()
}

/// A word, and the text that follows it.
type Remark = [String; 2];

/// Returns the name of each kind of warning about a run, and the rows that it is about, its worst
/// case and its remedy.
pub(crate) fn warnings(run: &Run, all: &Warnings, has_flag: &dyn Fn(&str) -> bool) -> Vec<Remark> {
    let line = |found: &Found| {
        let rows = match all.results {
            1 => String::new(),
            results => format!(
                " ({} of {results} steps{})",
                found.steps.len(),
                rows(run, found)
            ),
        };
        let at_worst = if found.varies { "at worst, " } else { "" };
        let (worst, remedy) = (&found.worst, found.worst.remedy_with(has_flag));
        let text = format!("{rows}: {at_worst}{worst}; {remedy}");
        [worst.name().to_owned(), text]
    };
    all.kinds.iter().map(line).collect()
}

/// Returns the verdict of the warnings about a run; `None` for a run without steps.
pub(crate) fn verdict(all: &Warnings) -> Option<Remark> {
    let wrong = all.invalidating();
    let (word, text) = if all.is_valid() && all.kinds.is_empty() {
        ("VALID", ": no warnings".to_owned())
    } else if all.is_valid() {
        ("VALID", ": the warnings are notes".to_owned())
    } else if wrong.is_empty() {
        return None;
    } else if wrong.len() < all.kinds.len() {
        let names = wrong.join(", ");
        (
            "NOT VALID",
            format!(": {names}; the other warnings are notes"),
        )
    } else {
        ("NOT VALID", format!(": {}", wrong.join(", ")))
    };
    Some([word.to_owned(), text])
}

/// Returns the rows that a warning is about, the first few of them; nothing where all rows are.
fn rows(run: &Run, found: &Found) -> String {
    let all = distinct(run.steps.iter().map(|step| row(run, step)));
    let concerned = distinct(found.steps.iter().map(|at| row(run, &run.steps[*at])));
    if concerned.len() == all.len() || concerned.is_empty() {
        return String::new();
    }
    let (named, more) = concerned.split_at(concerned.len().min(NAMED));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(": {}{more}", named.join("; "))
}

/// Returns the name of a step's row: its target or label, where there are several, and its load.
fn row(run: &Run, step: &Step) -> String {
    let load = load_of(&step.settings);
    if run.steps.iter().any(|other| other.name() != step.name()) {
        format!("{} with {load}", on_one_line(step.name()))
    } else {
        load
    }
}

/// Says how many windows were measured again, and why.
pub(crate) fn replaced(run: &Run) -> Option<Remark> {
    let replaced = run.replaced.as_ref()?;
    let were = if replaced.windows == 1 { "was" } else { "were" };
    let count = plural(replaced.windows.into(), "window");
    let worst = Warning::from(replaced.worst.clone());
    Some([
        format!("{count} {were} measured again"),
        format!(" because others had the CPUs; at worst, {worst}"),
    ])
}

/// Names the warnings that would invalidate the run, had it not been told to accept them.
fn allowed(run: &Run, all: &Warnings) -> Option<String> {
    let kinds = all.kinds.iter().map(|found| found.worst.name());
    let names: Vec<&str> = kinds
        .filter(|name| run.allowed.iter().any(|own| own == name))
        .collect();
    (!names.is_empty()).then(|| format!("allowed, so they do not invalidate: {}", names.join(", ")))
}

/// Says that nobody knows who had the server's CPUs, where no window has a balance of them.
fn unknown_half(run: &Run) -> Option<&'static str> {
    let mut balances = run.steps.iter().flat_map(|step| &step.cost.balances);
    let is_known = |own: &Balance| own.server.is_some() || own.has_server_among_others;
    let is_beside = |step: &Step| {
        step.settings.in_process.is_some() || step.warnings.contains(&SharedHost.into())
    };
    let is_elsewhere = balances.clone().next().is_some() && !run.steps.iter().any(is_beside);
    (is_elsewhere && !balances.any(is_known)).then_some(
        "not known: who had the CPUs of the server's host. Only netping's own servers tell; other programs there may have \
         slowed this one",
    )
}

/// Says which steps did not come to their end.
fn cut_short(run: &Run) -> Option<Remark> {
    let steps = run.steps.iter();
    let partial = steps.filter(|step| step.status == Status::Partial);
    let rows: Vec<String> = partial.map(|step| row(run, step)).collect();
    (!rows.is_empty()).then(|| ["cut short".to_owned(), format!(": {}", rows.join("; "))])
}

/// Returns the limit of the step with the highest rate; where that is not known, what may tell.
/// `has_server_pid`: the command has a flag for the server's process.
fn limit(run: &Run, peak: &Peak<'_>, has_server_pid: bool) -> Option<String> {
    let Peak { step, among } = peak;
    let rate = format::rate(step.rate()?);
    let limit = Limit::of(step)?;
    let mut line = format!("limit at the highest rate{among}, {rate} req/s: {limit}");
    let Limit::Other { server, .. } = limit else {
        return Some(line);
    };
    let own = &step.settings;
    let has_more =
        |other: &Step| other.name() == step.name() && other.settings.callers > own.callers;
    let held = step.path.as_ref().and_then(path::limit);
    line.extend(held.into_iter().flat_map(|held| ["; ".to_owned(), held]));
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
        line.extend(["; ", &untried.join(", "), " may raise the rate"]);
    }
    if server.is_none() && has_server_pid {
        line.push_str("; --server-pid would show the server's CPU use");
    }
    Some(line)
}

fn fairness(Peak { step, among }: &Peak<'_>) -> Option<String> {
    step.rate()?;
    let fairness = step.fairness.as_ref().filter(|own| own.jain < EVEN)?;
    Some(format!(
        "requests per connection at the highest rate{among}: min {}, median {}, max {}, Jain's index {:.3}",
        thousands(fairness.min as f64),
        thousands(fairness.median as f64),
        thousands(fairness.max as f64),
        fairness.jain,
    ))
}

#[cfg(test)]
mod tests {
    use netping_measure::{
        cost::SideUse,
        fairness::{Fairness, PerConnection},
    };
    use netping_results::{
        fixtures,
        run::InProcess,
        warning::{Errors, ForeignLoad, SideOfCpus, TooFewSamples},
    };

    use super::*;
    use crate::text::tables;

    fn errors() -> Warning {
        Errors {
            share: 0.5,
            time_share: 0.0,
        }
        .into()
    }

    #[test]
    fn what_is_not_valid_says_so_first() {
        let run = |warnings: &[Warning]| {
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            step.warnings = warnings.to_vec();
            fixtures::run(vec![step])
        };
        let beginning = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        let sound = run(&[SharedHost.into()]);
        assert!(describe(&sound, |_| true).contains("\nVALID: the warnings are notes\n"));
        assert!(!tables(&sound).contains("VALID"));
        let wrong = run(&[SharedHost.into(), errors()]);
        assert_eq!(
            beginning(&describe(&wrong, |_| true)),
            "NOT VALID: ERRORS; the other warnings are notes"
        );
        assert_eq!(
            beginning(&tables(&wrong)),
            "NOT VALID: ERRORS; do not rely on the numbers below"
        );
    }

    #[test]
    fn windows_that_were_measured_again_are_told() {
        let mut run = fixtures::run(vec![fixtures::step(1, |_| vec![1000; 10])]);
        let mut said = || {
            run.count_replaced(ForeignLoad {
                side: SideOfCpus::Server,
                others: 0.25,
                steal: 0.0,
                waited: 0.0,
                busiest: None,
            });
            let text = describe(&run, |_| true);
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            said(),
            "1 window was measured again because others had the CPUs; at worst, other programs had 25.0% of the server's CPUs"
        );
        assert!(said().starts_with("2 windows were measured again because "));
    }

    #[test]
    fn a_server_elsewhere_that_tells_nothing_is_half_of_the_balance_unknown() {
        let of_client = Balance {
            client: Some(SideUse::default()),
            ..Balance::default()
        };
        let said = |change: fn(&mut Step)| {
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            step.cost.balances = vec![of_client.clone()];
            change(&mut step);
            let text = describe(&fixtures::run(vec![step]), |_| true);
            text.contains("not known: who had the CPUs of the server's host")
        };
        assert!(said(|_| {}));
        assert!(!said(|step| step.cost.balances.clear()));
        assert!(!said(|step| {
            step.cost.balances.push(Balance {
                server: Some(SideUse::default()),
                ..Balance::default()
            });
        }));
        assert!(!said(
            |step| step.cost.balances[0].has_server_among_others = true
        ));
        assert!(!said(|step| step.warnings = vec![SharedHost.into()]));
        assert!(!said(
            |step| step.settings.in_process = Some(InProcess::OneThread)
        ));
    }

    #[test]
    fn texts_have_the_flags_of_the_command_alone() {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.warnings = vec![TooFewSamples { samples: 5 }.into()];
        let run = fixtures::run(vec![step]);
        let said = |flags: &[&str]| describe(&run, |flag| flags.contains(&flag));
        let (none, all) = (said(&[]), said(&["-d", "--samples", "--server-pid"]));
        assert!(none.starts_with("TOO_FEW_SAMPLES: too few samples for p99: 5; measure longer\n"));
        assert!(all.contains("; measure longer (-d, --samples)\n"), "{all}");
        assert!(all.contains("--server-pid would") && !none.contains("--server-pid"));
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
            "SHARED_HOST (4 of 5 steps: 2 callers; 4 callers; 8 callers and 1 more): "
        ));
    }

    #[test]
    fn no_target_has_the_highest_rate_where_connections_differ() {
        let limits = |connections| -> Vec<String> {
            let mut run = fixtures::run(Vec::new());
            let steps = [("a", 8, 10), ("a", 8, 20), ("b", connections, 40)];
            for (target, connections, replies) in steps {
                let mut step = fixtures::step(1, |_| vec![1000; replies]);
                step.target = target.to_owned();
                step.settings.connections = connections;
                run.steps.push(step);
            }
            let text = describe(&run, |_| true);
            let lines = text.lines().filter(|line| line.starts_with("limit "));
            lines
                .map(|line| line.split(':').next().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(limits(8), ["limit at the highest rate, 40.0 req/s"]);
        assert_eq!(
            limits(1),
            [
                "limit at the highest rate of a on 8 connections, 20.0 req/s",
                "limit at the highest rate of b on 1 connection, 40.0 req/s",
            ]
        );
    }

    #[test]
    fn uneven_connections_are_told() {
        let told = |jain| {
            let mut step = fixtures::step(1, |_| vec![1000; 10]);
            let all = [4, 6].map(|requests| PerConnection {
                requests,
                mean: 1000.0,
                ..PerConnection::default()
            });
            step.fairness = Fairness::of(all.to_vec()).map(|own| Fairness { jain, ..own });
            let peak = Peak {
                step: &step,
                among: String::new(),
            };
            fairness(&peak).is_some()
        };
        assert_eq!([0.979, 0.981].map(told), [true, false]);
    }
}
