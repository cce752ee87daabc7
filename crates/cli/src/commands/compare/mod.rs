//! `netping compare`: result files against a base.

pub mod args;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use netping_measure::statistics::difference::Finding;
use netping_report::{
    page,
    table::{Column, Table, wrap},
};
use netping_results::{
    compare::{Change, Comparison, Gate, Pair, compare_runs},
    condition::Answer,
    environment_diff::EnvironmentDiff,
    file::save::write_atomically,
    format::on_one_line,
    metric::Metric,
    run::Run,
    warning::Warnings,
};

use self::args::CompareArgs;
use super::text::{columns, probability};
use crate::{
    error::{Failed, Verdict, tell},
    run::trials::MOST,
};

const COLUMNS: &str = "<|base|new|change|95% interval|p|<shown";

pub fn run(args: &CompareArgs) -> Result<Verdict, Failed> {
    let mut runs = Vec::new();
    for file in args.files()? {
        runs.push((
            on_one_line(&file.display().to_string()),
            Run::load(file).map_err(anyhow::Error::new)?,
        ));
    }
    let (base_name, base) = &runs[0];
    let asked: Vec<&Metric> = args.fail_if.iter().map(Gate::metric).collect();
    let mut failed = false;
    let mut texts = Vec::new();
    for (name, new) in &runs[1..] {
        let comparison = legible(compare_runs(base, new, &asked));
        let broken = broken(&args.fail_if, &comparison);
        let invalid = [(base_name, base), (name, new)];
        let invalid: String = invalid.into_iter().filter_map(invalidated).collect();
        let title = format!("{name} against {base_name}\n{invalid}");
        let text = |table| title.clone() + &describe(&comparison, table);
        // The reader closed the pipe; the exit code says the rest.
        let _ = writeln!(io::stdout(), "{}", wrap(&text(Table::whole), usize::MAX));
        for line in &broken {
            tell(&format!("{name}: {line}"));
        }
        failed |= !broken.is_empty() || comparison.pairs.is_empty();
        texts.push(text(Table::plain));
    }
    if let Some(path) = &args.html {
        let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
        let page = page::comparison(&runs[0], &runs[1..], &texts.join("\n"));
        write_atomically(path, page.as_bytes()).map_err(anyhow::Error::new)?;
        let _ = writeln!(io::stdout(), "wrote {}", path.display());
    }
    Ok(if failed {
        Verdict::Condition
    } else {
        Verdict::Success
    })
}

/// Says that a run is not valid, if it is not, and why.
fn invalidated((name, run): (&String, &Run)) -> Option<String> {
    let wrong = Warnings::of_run(run).invalidating();
    (!wrong.is_empty()).then(|| format!("NOT VALID: {name}: {}\n", wrong.join(", ")))
}

/// Makes the texts of a comparison, which come from files, safe for a terminal.
fn legible(mut comparison: Comparison) -> Comparison {
    let diffs = comparison
        .diffs
        .iter_mut()
        .flat_map(|found| [&mut found.what, &mut found.base, &mut found.new]);
    let names = comparison.pairs.iter_mut().map(|pair| &mut pair.name);
    let alone = comparison
        .only_base
        .iter_mut()
        .chain(&mut comparison.only_new);
    for text in diffs.chain(names).chain(alone) {
        *text = on_one_line(text);
    }
    comparison
}

/// Describes a comparison: first the environment, which may explain differences.
fn describe(comparison: &Comparison, table: fn(&[Column], &[Vec<String>]) -> String) -> String {
    let mut text = differences(&comparison.diffs);
    for pair in &comparison.pairs {
        let rows: Vec<_> = pair.changes.iter().map(row).collect();
        let (name, trials, table) = (&pair.name, trials(pair), table(&columns(COLUMNS), &rows));
        let _ = write!(text, "\n{name}\n{trials}\n{table}\n");
    }
    for (which, names) in [
        ("the base", &comparison.only_base),
        ("the new one", &comparison.only_new),
    ] {
        if !names.is_empty() {
            let _ = write!(text, "\nonly in {which}:\n  {}\n", names.join("\n  "));
        }
    }
    text + "\n" + &conclusion(comparison)
}

fn differences(all: &[EnvironmentDiff]) -> String {
    if all.is_empty() {
        return "same machine, same settings\n".to_owned();
    }
    let mut text = "These differ and may explain a difference:\n".to_owned();
    for diff in all {
        let steps = match diff.steps {
            0 => String::new(),
            1 => " (1 step)".to_owned(),
            steps => format!(" ({steps} steps)"),
        };
        let _ = writeln!(
            text,
            "  {}: {} -> {}{steps}",
            diff.what, diff.base, diff.new
        );
    }
    text
}

/// Returns the number of trials on each side, and their effect on the error bars.
fn trials(pair: &Pair) -> String {
    let what = if pair.is_bulk {
        "measurements"
    } else {
        "trials"
    };
    match (pair.base_trials, pair.new_trials) {
        // Each of their runs counts by itself.
        (1, 1) if pair.is_bulk => "one measurement each, compared by its runs".to_owned(),
        (1, 1) if pair.changes.iter().all(|change| change.interval.is_none()) => {
            "one run each: no error bar; use --trials, or -d 10s and longer".to_owned()
        }
        (1, 1) => "one run each: error bars from within the runs; --trials tell more".to_owned(),
        (base, 1) => format!("{base} {what} and one: their spread is used for both sides"),
        (1, new) => format!("one and {new} {what}: their spread is used for both sides"),
        (base, new) => format!("{base} and {new} {what}"),
    }
}

fn row(change: &Change) -> Vec<String> {
    let metric = change.metric;
    let value =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| metric.show(value));
    let share = |difference: f64| percent(metric, difference);
    let unit = if metric.is_relative() { "%" } else { "pp" };
    let difference = change.difference.map(|difference| share(difference) + unit);
    vec![
        metric.title.to_owned(),
        value(change.base),
        value(change.new),
        difference.unwrap_or_else(|| "-".to_owned()),
        change
            .interval
            .map(|[low, high]| format!("{}..{}", share(low), share(high)))
            .unwrap_or_default(),
        change.p_value.map(probability).unwrap_or_default(),
        match change.finding() {
            Some(Finding::Better) => "better",
            Some(Finding::Worse) => "worse",
            Some(Finding::NoDifference) => "no difference",
            None if change.difference.is_some() && metric.is_claimed() => "no error bar",
            None => "",
        }
        .to_owned(),
    ]
}

/// A difference in per cent, or in percentage points.
fn percent(metric: &Metric, difference: f64) -> String {
    let percent = difference * 100.0;
    match percent.abs() {
        _ if !metric.is_relative() => format!("{percent:+.3}"),
        _ if difference > MOST => format!(">{:+.0}", MOST * 100.0),
        ..9.95 => format!("{percent:+.1}"),
        _ => format!("{percent:+.0}"),
    }
}

/// Counts the findings, and says what they mean.
fn conclusion(comparison: &Comparison) -> String {
    if comparison.pairs.is_empty() {
        return "nothing to compare: no measurement of one file has the settings of one of the other".to_owned();
    }
    let found: Vec<_> = comparison
        .pairs
        .iter()
        .flat_map(|pair| &pair.changes)
        .filter(|change| change.metric.is_claimed())
        .map(Change::finding)
        .collect();
    let count = |finding: Option<Finding>| match found.iter().filter(|one| **one == finding).count()
    {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let measurements = match comparison.pairs.len() {
        1 => "1 measurement".to_owned(),
        many => format!("{many} measurements"),
    };
    format!(
        "{measurements}: {} better, {} worse, {} without a difference, {} without an error bar\n\
         A difference is shown where its interval leaves out 0; with 95 % probability, the intervals of all of these \
         claims hold. Metrics without a claim are there to explain. pp: percentage points.",
        count(Some(Finding::Better)),
        count(Some(Finding::Worse)),
        count(Some(Finding::NoDifference)),
        count(None),
    )
}

/// Returns a line for each condition that holds or cannot be decided, and for each measurement that
/// only the base has.
fn broken(gates: &[Gate], comparison: &Comparison) -> Vec<String> {
    if gates.is_empty() {
        return Vec::new();
    }
    let missing = comparison.only_base.iter();
    let mut lines: Vec<String> = missing
        .map(|name| format!("failed by --fail-if: {name}: the new run has no such measurement"))
        .collect();
    for gate in gates {
        let metric = gate.metric().name;
        let mut asked = false;
        for pair in &comparison.pairs {
            let Some(answer) = gate.check(pair) else {
                continue;
            };
            asked = true;
            let why = match answer {
                Answer::Fails(_) => continue,
                Answer::Holds(difference) => gate.describe(difference),
                Answer::Unknown => format!("{metric} cannot be decided: too few samples"),
            };
            let name = &pair.name;
            lines.push(format!("failed by --fail-if '{gate}': {name}: {why}"));
        }
        if !asked {
            lines.push(format!(
                "failed by --fail-if '{gate}': nothing was compared that has {metric}"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use netping_results::metric;

    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let change = |metric: &&'static Metric| Change {
            metric,
            base: Some(1_236_012.0),
            new: Some(1_055_001.0),
            difference: Some(-0.1464),
            interval: Some([-0.9999, 3.3e24]),
            p_value: Some(0.0001),
        };
        let rows: Vec<_> = metric::COMPARED
            .iter()
            .filter(|metric| metric.is_relative())
            .map(change)
            .map(|c| row(&c))
            .collect();
        let table = Table::whole(&columns(COLUMNS), &rows);
        assert!(
            table.lines().all(|line| line.chars().count() <= 80),
            "{table}"
        );
        assert!(
            table.contains("-100..>+9900") && table.contains("<0.001") && table.contains("-15%"),
            "{table}"
        );
    }

    #[test]
    fn what_only_the_base_measured_fails_a_gate() {
        let change = Change {
            metric: &metric::RATE,
            base: Some(100.0),
            new: Some(100.0),
            difference: Some(0.0),
            interval: None,
            p_value: None,
        };
        let pair = Pair {
            name: "tcp://h:1, 16 callers".to_owned(),
            short_name: String::new(),
            is_bulk: false,
            base_trials: 1,
            new_trials: 1,
            changes: vec![change],
        };
        let mut comparison = Comparison {
            diffs: Vec::new(),
            pairs: vec![pair],
            only_base: vec!["tcp://h:1, 64 callers".to_owned()],
            only_new: vec!["tcp://h:1, 256 callers".to_owned()],
        };
        let gates = ["rate>+5%".parse::<Gate>().unwrap()];
        let lines = broken(&gates, &comparison);
        assert_eq!(
            lines,
            ["failed by --fail-if: tcp://h:1, 64 callers: the new run has no such measurement"]
        );
        assert_eq!(broken(&[], &comparison), [""; 0]);
        comparison.only_base.clear();
        assert_eq!(broken(&gates, &comparison), [""; 0]);
    }

    #[test]
    fn differences_name_the_number_of_steps() {
        let diff = |steps| EnvironmentDiff {
            what: "kernel".to_owned(),
            base: "6.1".to_owned(),
            new: "6.2".to_owned(),
            steps,
        };
        let text = differences(&[diff(0), diff(1), diff(3)]);
        assert!(
            text.ends_with("6.2\n  kernel: 6.1 -> 6.2 (1 step)\n  kernel: 6.1 -> 6.2 (3 steps)\n"),
            "{text}"
        );
    }
}
