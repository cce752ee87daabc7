//! Text about trials: a table for each target, and the findings of its comparison with the first.

use std::collections::BTreeMap;

use netping_measure::statistics::difference::{Difference, Finding};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{plural, thousands},
    metric::{self, Better, Metric},
    run::{Run, Step},
};

use super::{AGAIN, Trials, whole};

/// The columns of each target's table.
const COLUMNS: [Column; 6] = [
    Column::text("measure", 0),
    Column::number("value", 0),
    Column::number("+-95%", 0).spare(1),
    Column::number("to first", 0),
    Column::number("95% interval", 0).spare(2),
    Column::text("shown", 0),
];

/// Those of the first target, with which the others are compared.
const FIRST: usize = 3;

/// Returns the tables of a run with trials, without what only its command line says: a precision to
/// reach, or a margin.
pub fn table_of(run: &Run) -> String {
    let groups = groups_of(run);
    let trials = Trials {
        aa: run.steps.iter().any(is_again),
        ..Trials::new(0, run.order_seed.unwrap_or_default())
    };
    let pairs = groups.iter().map(|group| group.len() - 1).sum();
    table(&groups, pairs, trials)
}

/// Returns the whole trials of each group of a run: those of each target, the first one that was given
/// before the others. Targets of one group may differ in connections, and groups in them alone; but
/// each group begins with a first trial.
pub fn groups_of(run: &Run) -> Vec<Vec<Vec<Step>>> {
    let mut begun = BTreeMap::new();
    let mut keys = Vec::new();
    let mut groups: Vec<Vec<Vec<Step>>> = Vec::new();
    for step in run.steps_by_target() {
        let asked = step.settings.asked();
        let number = begun.entry((step.name(), asked)).or_insert(0);
        *number += u32::from(step.trial == 1);
        let key = (asked, *number);
        let place = keys.iter().position(|known| *known == key);
        let place = place.unwrap_or_else(|| {
            keys.push(key);
            groups.push(Vec::new());
            groups.len() - 1
        });
        let group = &mut groups[place];
        match group.iter_mut().find(|own| own[0].name() == step.name()) {
            Some(own) => own.push(step.clone()),
            None => group.push(vec![step.clone()]),
        }
    }
    groups.into_iter().filter_map(whole).collect()
}

/// Returns a table for each target of each group, and what they show; `pairs` of targets are compared
/// in all.
pub(super) fn table(groups: &[Vec<Vec<Step>>], pairs: usize, trials: Trials) -> String {
    let comparisons = pairs * metric::TRIALS.len();
    let mut parts = Vec::new();
    for steps in groups {
        for (number, own) in steps.iter().enumerate() {
            parts.push(heading(&own[0]));
            let columns = if number == 0 { FIRST } else { COLUMNS.len() };
            let rows = compare(number, steps, trials, comparisons);
            let rows: Vec<_> = rows
                .into_iter()
                .map(|row| row[..columns].to_vec())
                .collect();
            parts.push(Table::whole(&COLUMNS[..columns], &rows));
            if own.iter().any(|step| step.summary.unserved() > 0) {
                parts.push(
                    "requests failed on this target: its times are of those that did not"
                        .to_owned(),
                );
            }
        }
    }
    let different = |steps: &Vec<Vec<Step>>| {
        let connections = |own: &Vec<Step>| own[0].settings.connections;
        steps
            .iter()
            .any(|own| connections(own) != connections(&steps[0]))
    };
    if groups.iter().any(different) {
        parts.push(
            "The targets differ in connections, which may be what the differences show; --connections sets them alike."
                .to_owned(),
        );
    }
    let fewest = groups
        .iter()
        .map(|group| group[0].len())
        .min()
        .unwrap_or_default();
    parts.push(legend(trials, comparisons, fewest));
    parts.join("\n")
}

/// Returns the line above a target's table.
fn heading(step: &Step) -> String {
    let settings = &step.settings;
    let name = match &step.label {
        Some(label) => format!("{}  {label}", step.target),
        None => step.target.clone(),
    };
    let rate = settings
        .planned_rate
        .map(|rate| format!("{} req/s planned, ", thousands(rate)));
    format!(
        "{name}  {}{} on {}",
        rate.unwrap_or_default(),
        plural(settings.callers as u64, "caller"),
        plural(settings.connections as u64, "connection")
    )
}

fn is_again(step: &Step) -> bool {
    step.label.as_deref() == Some(AGAIN)
}

/// Explains the tables of trials, of which the target with the fewest has `fewest`.
fn legend(trials: Trials, comparisons: usize, fewest: usize) -> String {
    let number = match trials.until {
        Some(_) => format!("Up to {} trials", trials.count),
        None => plural(fewest as u64, "trial"),
    };
    let mut sentences = vec![format!(
        "{number} of each, in random order; p50 and p99 of all of them together."
    )];
    if comparisons > 0 {
        sentences.push(format!(
            "A difference to the first target is shown where its interval leaves out 0; with 95 % probability, all \
             {comparisons} intervals of this run hold: Welch's test on logarithms, whole trials drawn anew for quantiles. 'could have \
             seen': found in 80 % of such trials."
        ));
    }
    if trials.until.is_some() {
        let looks = trials.looks();
        sentences.push(format!(
            "The intervals are widened for the {looks} times at which the trials could end."
        ));
    }
    if trials.aa {
        let aa = "A/A: the first target again; no difference that is smaller than theirs is shown.";
        sentences.push(aa.to_owned());
    }
    if let Some(margin) = trials.equivalent {
        let percent = margin * 100.0;
        sentences.push(format!(
            "'equivalent': the same to within {percent}%, by two one-sided tests."
        ));
    }
    sentences.join(" ")
}

/// Returns the rows of a group's target with this number: its value of each metric, and the difference
/// to the first target.
fn compare(
    number: usize,
    steps: &[Vec<Step>],
    trials: Trials,
    comparisons: usize,
) -> Vec<Vec<String>> {
    let among = comparisons * trials.looks();
    let own = &steps[number];
    let is_again = is_again(&own[0]);
    let row = |metric: &&Metric| {
        let differs = |own: &[Step]| metric.difference(&steps[0], own, among);
        let difference = if number == 0 { None } else { differs(own) };
        let scale = Scale {
            margin: trials.equivalent,
            floor: (trials.aa && !is_again)
                .then(|| differs(&steps[1]))
                .flatten()
                .map(|again| again.relative.abs()),
        };
        let half_width = match &own[..] {
            [_] => None,
            _ => metric
                .side(own)
                .and_then(|side| side.half_width(trials.looks())),
        };
        let cell = |of: &dyn Fn(Difference) -> String| difference.map(of).unwrap_or_default();
        vec![
            metric.title.to_owned(),
            metric.cell(metric.estimate(own).map(|estimate| estimate.mean)),
            metric.cell(half_width),
            cell(&|difference| percent(difference.relative)),
            cell(&|difference| interval(difference.interval, percent)),
            cell(&|difference| shown(difference, metric.better == Better::Higher, scale)),
        ]
    };
    metric::TRIALS.iter().map(row).collect()
}

/// The thresholds that a difference is held against.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scale {
    /// The margin within which values are called equivalent, as a share.
    pub margin: Option<f64>,
    /// The difference of the first target from itself, as a share: no smaller one is shown.
    pub floor: Option<f64>,
}

/// The largest difference, as a share, that is shown as a number: what is beyond it says only that
/// there are too few trials.
pub(crate) const MOST: f64 = 99.0;

/// Returns a difference in per cent, with its sign.
pub(crate) fn percent(share: f64) -> String {
    if share > MOST {
        format!(">{:+.0}%", MOST * 100.0)
    } else {
        format!("{:+.1}%", share * 100.0)
    }
}

/// Returns the ends of an interval, each as `show` has it.
pub(crate) fn interval([low, high]: [f64; 2], show: fn(f64) -> String) -> String {
    format!("{}..{}", show(low), show(high))
}

/// Returns the finding of a comparison; where none is shown, the smallest difference that could
/// have been.
pub(crate) fn shown(difference: Difference, more_is_better: bool, scale: Scale) -> String {
    let is_equivalent = scale
        .margin
        .is_some_and(|margin| difference.equivalence < margin);
    let is_noise = scale
        .floor
        .is_some_and(|floor| difference.relative.abs() <= floor);
    let word = match difference.finding(more_is_better) {
        Finding::NoDifference if is_equivalent => return "equivalent".to_owned(),
        Finding::NoDifference => {
            let detectable = match difference.detectable * 100.0 {
                ..1000.0 => format!("{:.1}%", difference.detectable * 100.0),
                _ => ">1000%".to_owned(),
            };
            return format!("no difference shown (could have seen {detectable})");
        }
        _ if is_noise => return "no difference shown (no more than A/A)".to_owned(),
        Finding::Better => "better",
        Finding::Worse => "worse",
    };
    let equivalent = if is_equivalent {
        ", but equivalent"
    } else {
        ""
    };
    format!("{word}{equivalent}")
}

#[cfg(test)]
mod tests {
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn trials_of_other_connections_are_not_added_up() {
        let mut run = fixtures::run(Vec::new());
        // The first target has a connection for each caller, whatever is asked of the second; the
        // trials of the second group are more.
        for (connections, trials) in [(1, 2), (16, 3)] {
            for trial in 1..=trials {
                for (target, own) in [("grpc://h", connections), ("tcp://h", 64)] {
                    let mut step = fixtures::step(1, |_| vec![1000; 10]);
                    (step.trial, step.target) = (trial, target.to_owned());
                    (step.settings.callers, step.settings.connections) = (64, own);
                    run.steps.push(step);
                }
            }
        }
        run.targets = vec!["tcp://h".to_owned(), "grpc://h".to_owned()];
        let groups = groups_of(&run);
        let shown = |own: &Vec<Step>| {
            (
                own[0].target.clone(),
                own[0].settings.connections,
                own.len(),
            )
        };
        let found: Vec<Vec<_>> = groups
            .iter()
            .map(|group| group.iter().map(shown).collect())
            .collect();
        let group = |connections, trials| {
            vec![
                ("tcp://h".to_owned(), 64, trials),
                ("grpc://h".to_owned(), connections, trials),
            ]
        };
        assert_eq!(found, [group(1, 2), group(16, 3)]);
    }

    #[test]
    fn a_difference_beyond_all_measure_is_no_long_number() {
        let ends = |high| interval([-0.5, high], percent);
        assert_eq!(ends(0.25), "-50.0%..+25.0%");
        assert_eq!(ends(3.3e24), "-50.0%..>+9900%");
    }

    #[test]
    fn small_differences_are_equivalent_or_noise_where_that_is_asked() {
        let difference =
            |first: [f64; 3], second: [f64; 3]| Difference::of_means(&first, &second, 1).unwrap();
        let small = difference([100.0, 100.2, 99.8], [102.0, 102.2, 101.8]);
        let scale = |margin, floor| Scale { margin, floor };
        assert_eq!(shown(small, true, Scale::default()), "better");
        assert_eq!(
            shown(small, false, scale(Some(0.05), None)),
            "worse, but equivalent"
        );
        assert_eq!(
            shown(small, true, scale(None, Some(0.03))),
            "no difference shown (no more than A/A)"
        );
        assert_eq!(shown(small, true, scale(None, Some(0.01))), "better");
        let none = difference([100.0, 100.2, 99.8], [100.1, 100.0, 99.9]);
        assert_eq!(shown(none, true, scale(Some(0.05), None)), "equivalent");
        let text = shown(none, true, scale(Some(0.0001), None));
        assert!(
            text.starts_with("no difference shown (could have seen"),
            "{text}"
        );
    }
}
