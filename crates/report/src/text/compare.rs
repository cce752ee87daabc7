//! Result files side by side.

use std::fmt::Write as _;

use netping_results::{
    compare::FileComparison,
    comparison::{Compared, Comparison, Finding, Standing},
    environment_diff::EnvironmentDiff,
    format::{on_one_line, plural},
};

use crate::{
    finding::{change, change_interval, claims, reading_of, shown, value},
    table::{Column, Layout, Table},
};

const COLUMNS: [Column; 7] = [
    Column::text(""),
    Column::number("base"),
    Column::number("new"),
    Column::number("change"),
    Column::number("95% interval").spare(1),
    Column::number("p").spare(2),
    Column::text("shown"),
];

/// What nobody can know of files that do not overlap in time.
pub const APART: &str = "measured one after the other: changes of the machine between them are in the differences; netping \
                         ab, or trials of both in one command (--trials 5), leave them out";

/// Describes a comparison for a terminal: first the environment, which may explain differences.
pub fn comparison(comparison: &FileComparison<'_>) -> String {
    describe(comparison, Table::whole)
}

/// Describes a comparison as [`comparison`] does, with every column, whatever the terminal's width.
pub fn comparison_in_full(comparison: &FileComparison<'_>) -> String {
    describe(comparison, Table::plain)
}

fn describe(comparison: &FileComparison<'_>, layout: Layout) -> String {
    let mut text = differences(&comparison.diffs);
    for pair in &comparison.pairs {
        let rows: Vec<_> = pair.comparisons.iter().map(row).collect();
        let (name, trials) = (on_one_line(&pair.base.long_name()), trials(pair));
        let _ = write!(text, "\n{name}\n{trials}\n{}\n", layout(&COLUMNS, &rows));
    }
    for (which, names) in [
        ("the base", &comparison.only_base),
        ("the new one", &comparison.only_new),
    ] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| on_one_line(name)).collect();
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
            steps => format!(" ({})", plural(steps as u64, "step")),
        };
        let [what, base, new] = [&diff.what, &diff.base, &diff.new].map(|text| on_one_line(text));
        let _ = writeln!(text, "  {what}: {base} -> {new}{steps}");
    }
    text
}

/// Returns the number of trials on each side, and their effect on the error bars.
fn trials(pair: &Compared<'_>) -> String {
    let has_intervals = pair.comparisons.iter().any(|own| own.interval.is_some());
    match (pair.base.trials.len(), pair.new.trials.len()) {
        (1, 1) if has_intervals => {
            "one run each: error bars from within the runs; --trials tell more".to_owned()
        }
        (1, 1) => "one run each: no error bar; use --trials, or -d 10s and longer".to_owned(),
        (base, 1) => format!("{base} trials and one: their spread is used for both sides"),
        (1, new) => format!("one and {new} trials: their spread is used for both sides"),
        (base, new) => format!("{base} and {new} trials"),
    }
}

fn row(comparison: &Comparison) -> Vec<String> {
    let metric = comparison.metric;
    let p_value = comparison.p_value.filter(|_| claims(comparison));
    let p = p_value.map(|p| match p {
        ..0.001 => "<0.001".to_owned(),
        _ => format!("{p:.3}"),
    });
    let reading = reading_of(metric, [comparison.base, comparison.new]);
    vec![
        metric.title_in(reading),
        value(reading, comparison.base),
        value(reading, comparison.new),
        change(comparison),
        change_interval(comparison),
        p.unwrap_or_default(),
        shown(comparison),
    ]
}

/// Counts the findings, and says what they mean.
fn conclusion(comparison: &FileComparison<'_>) -> String {
    if comparison.pairs.is_empty() {
        return "nothing to compare: no measurement of one file has the settings of one of the other".to_owned();
    }
    let count = |finding: Option<Finding>| {
        let all = comparison.pairs.iter().flat_map(|pair| &pair.comparisons);
        let claimed = all.filter(|own| own.metric.is_claimed());
        match claimed.filter(|own| own.finding() == finding).count() {
            0 => "none".to_owned(),
            count => count.to_string(),
        }
    };
    let measurements = plural(comparison.pairs.len() as u64, "measurement");
    let is_sound = |pair: &Compared<'_>| pair.standing() == Standing::Sound;
    let standing = if comparison.pairs.iter().all(is_sound) {
        String::new()
    } else {
        format!(
            ", {} without a claim: a run is not valid, and none of this is to be relied on",
            count(Some(Finding::NotValid))
        )
    };
    let apart = if comparison.is_apart {
        format!("\n{APART}")
    } else {
        String::new()
    };
    format!(
        "{measurements}: {} better, {} worse, {} without a difference, {} without an error bar{standing}{apart}\n\
         A difference is shown where its interval leaves out 0; with 95 % probability, the intervals of all of these \
         claims hold. Metrics without a claim are there to explain. pp: percentage points.",
        count(Some(Finding::Better)),
        count(Some(Finding::Worse)),
        count(Some(Finding::NoDifference)),
        count(None),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
