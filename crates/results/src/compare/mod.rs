//! Two result files side by side: what differs between their environments, and between their
//! numbers.

mod change;
mod gate;
mod group;
mod within;

pub use change::Change;
pub use gate::Gate;

use self::group::{Entry, Group, Matched, groups, matched};
use crate::{
    bulk::BulkStep,
    environment_diff::{EnvironmentDiff, diff},
    metric::{self, Metric},
    run::{Run, Step},
};

/// A new result file against a base.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The differences between the runs' environments and settings, which may explain others.
    pub diffs: Vec<EnvironmentDiff>,
    /// Measurements of both, in the base's order.
    pub pairs: Vec<Pair>,
    /// Measurements of the base alone.
    pub only_base: Vec<String>,
    /// Measurements of the new one alone.
    pub only_new: Vec<String>,
}

/// One measurement that both runs made.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its label or target, and its settings.
    pub name: String,
    /// Its label or target, and its load, where no other has these; else its name.
    pub short_name: String,
    /// True for a bulk stream.
    pub is_bulk: bool,
    /// Number of trials in the base.
    pub base_trials: usize,
    /// Number of trials in the new run.
    pub new_trials: usize,
    /// The change of each metric.
    pub changes: Vec<Change>,
}

/// Compares a run with a base. Steps go together by label, by what was asked for and by their
/// order; the server's address may be another one. Steps of the same target and settings are trials
/// of one measurement. Metrics of `asked` are compared in addition to those always shown.
pub fn compare_runs(base: &Run, new: &Run, asked: &[&'static Metric]) -> Comparison {
    let mut comparison = Comparison {
        diffs: diff_runs(base, new),
        pairs: Vec::new(),
        only_base: Vec::new(),
        only_new: Vec::new(),
    };
    let steps = matched(groups(&base.steps), groups(&new.steps));
    let bulk = matched(groups(&base.bulk), groups(&new.bulk));
    let claims = steps.pairs.len() * metric::CLAIMED.len() + bulk.pairs.len() * metric::BULK.len();
    comparison.add(&steps, false, diff_steps, |base, new| {
        change::of_steps(base, new, asked, claims)
    });
    comparison.add(&bulk, true, diff_bulk, |base, new| {
        change::of_bulk(base, new, claims)
    });
    comparison
}

/// Returns the steps that [`compare_runs`] compares, in its order: each measurement's trials in the
/// base and in the new run.
pub fn paired_steps<'a>(base: &'a Run, new: &'a Run) -> Vec<[Vec<&'a Step>; 2]> {
    let pairs = matched(groups(&base.steps), groups(&new.steps)).pairs;
    let trials = pairs
        .into_iter()
        .map(|(base, new)| [base.entries, new.entries]);
    trials.collect()
}

impl Comparison {
    fn add<E: Entry>(
        &mut self,
        matched: &Matched<'_, E>,
        is_bulk: bool,
        differ: fn(&E, &E) -> Vec<EnvironmentDiff>,
        changes: impl Fn(&[&E], &[&E]) -> Vec<Change>,
    ) {
        let names = |groups: &[Group<'_, E>]| groups.iter().map(Group::name).collect::<Vec<_>>();
        self.only_base.extend(names(&matched.only_base));
        self.only_new.extend(names(&matched.only_new));
        let short: Vec<String> = matched
            .pairs
            .iter()
            .map(|(base, _)| base.short_name())
            .collect();
        let is_unique = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
        for ((base, new), short) in matched.pairs.iter().zip(&short) {
            for found in differ(base.entries[0], new.entries[0]) {
                found.add(&mut self.diffs);
            }
            self.pairs.push(Pair {
                name: base.name(),
                short_name: if is_unique(short) {
                    short.clone()
                } else {
                    base.name()
                },
                is_bulk,
                base_trials: base.entries.len(),
                new_trials: new.entries.len(),
                changes: changes(&base.entries, &new.entries),
            });
        }
    }
}

/// Returns the differences between machines and programs.
fn diff_runs(base: &Run, new: &Run) -> Vec<EnvironmentDiff> {
    let mut found = diff(&base.environment, &new.environment, 0);
    found.extend(diff(&base.tool, &new.tool, 0));
    let clients = |run: &Run| run.parts.len().max(1).to_string();
    let status = |run: &Run| run.status.name().to_owned();
    found.extend(EnvironmentDiff::of(
        "clients",
        clients(base),
        clients(new),
        0,
    ));
    found.extend(EnvironmentDiff::of("status", status(base), status(new), 0));
    found
}

fn diff_steps(base: &Step, new: &Step) -> Vec<EnvironmentDiff> {
    let mut found = diff_targets(&base.target, &new.target);
    found.extend(diff(&base.settings, &new.settings, 1));
    found.extend(diff(&base.security, &new.security, 1));
    found
}

fn diff_bulk(base: &BulkStep, new: &BulkStep) -> Vec<EnvironmentDiff> {
    let mut found = diff_targets(&base.target, &new.target);
    found.extend(diff(&base.security, &new.security, 1));
    found
}

fn diff_targets(base: &str, new: &str) -> Vec<EnvironmentDiff> {
    let found = EnvironmentDiff::of("target", base.to_owned(), new.to_owned(), 1);
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use netping_measure::{bulk::BulkRun, statistics::difference::Finding};

    use super::*;
    use crate::fixtures::{self, run, step};

    /// Replies around `level` nanoseconds, a little different in each second.
    fn around(level: u64) -> Step {
        step(20, |second| {
            (0..200)
                .map(|number| level + number * 10 + second * 37 % 50)
                .collect()
        })
    }

    fn finding(comparison: &Comparison, pair: usize, name: &str) -> Option<Finding> {
        comparison.pairs[pair]
            .changes
            .iter()
            .find(|change| change.metric.name == name)
            .unwrap()
            .finding()
    }

    #[test]
    fn a_run_compared_with_itself_shows_no_difference() {
        let short = step(2, |_| vec![5000; 100]);
        let trials = run(vec![around(10_000), around(12_000), around(11_000)]);
        for own in [run(vec![around(10_000)]), run(vec![short]), trials] {
            let comparison = compare_runs(&own, &own, &[]);
            assert_eq!((comparison.diffs.len(), comparison.pairs.len()), (0, 1));
            assert!(comparison.pairs[0].changes.len() >= 5, "{comparison:?}");
            for change in &comparison.pairs[0].changes {
                let claim = Some(Finding::NoDifference).filter(|_| change.metric.is_claimed());
                assert_eq!(
                    (change.finding(), change.difference),
                    (claim, Some(0.0)),
                    "{change:?}"
                );
            }
        }
    }

    #[test]
    fn one_run_each_is_judged_by_the_error_bars_within() {
        let comparison = compare_runs(&run(vec![around(10_000)]), &run(vec![around(13_000)]), &[]);
        assert_eq!(finding(&comparison, 0, "p50"), Some(Finding::Worse));
        assert_eq!(finding(&comparison, 0, "rate"), Some(Finding::NoDifference));
        // One run does not show how much its mean varies between runs.
        assert_eq!(finding(&comparison, 0, "mean"), None);
        let p50 = comparison.pairs[0]
            .changes
            .iter()
            .find(|change| change.metric.name == "p50")
            .unwrap();
        let [low, high] = p50.interval.unwrap();
        assert!(
            low < p50.difference.unwrap() && p50.difference.unwrap() < high && low > 0.2,
            "{p50:?}"
        );
        let short = |time| run(vec![step(2, |_| vec![time; 1000])]);
        let comparison = compare_runs(&short(10_000), &short(20_000), &[]);
        assert_eq!(finding(&comparison, 0, "p50"), None);
    }

    #[test]
    fn trials_are_judged_by_how_much_they_differ() {
        let trials = |levels: [u64; 5]| run(Vec::from(levels.map(around)));
        let base = trials([10_000, 10_400, 9_800, 10_100, 9_900]);
        let slower = compare_runs(
            &base,
            &trials([14_000, 14_500, 13_800, 14_100, 13_900]),
            &[],
        );
        let pair = &slower.pairs[0];
        assert_eq!(
            (slower.pairs.len(), pair.base_trials, pair.new_trials),
            (1, 5, 5)
        );
        for name in ["p50", "p99"] {
            assert_eq!(finding(&slower, 0, name), Some(Finding::Worse), "{name}");
        }
        // Shown, but without a claim.
        assert_eq!(finding(&slower, 0, "mean"), None);
        let alike = compare_runs(&base, &trials([10_300, 9_900, 10_000, 9_850, 10_200]), &[]);
        assert_eq!(finding(&alike, 0, "p50"), Some(Finding::NoDifference));
        // A single new run against several.
        let one = compare_runs(&base, &run(vec![around(20_000)]), &[]);
        assert_eq!(
            (one.pairs[0].new_trials, finding(&one, 0, "p50")),
            (1, Some(Finding::Worse))
        );
    }

    #[test]
    fn differences_are_named() {
        let base = run(vec![around(10_000)]);
        let mut new = base.clone();
        new.environment.kernel = "6.2".to_owned();
        new.tool.version = "0.2.0".to_owned();
        new.steps[0].target = "tcp://10.0.0.1:8004".to_owned();
        new.steps[0].settings.workers = 16;
        let comparison = compare_runs(&base, &new, &[]);
        let names: Vec<_> = comparison
            .diffs
            .iter()
            .map(|diff| (diff.what.as_str(), diff.steps))
            .collect();
        assert_eq!(
            names,
            [("kernel", 0), ("version", 0), ("target", 1), ("workers", 1)]
        );
        assert_eq!(comparison.pairs.len(), 1);
    }

    #[test]
    fn measurements_of_one_run_alone_are_listed() {
        let mut callers = around(10_000);
        callers.settings.callers = 16;
        let (base, new) = (
            run(vec![around(10_000)]),
            run(vec![callers, around(10_000)]),
        );
        let comparison = compare_runs(&base, &new, &[]);
        assert_eq!((comparison.pairs.len(), comparison.only_base.len()), (1, 0));
        assert!(
            comparison.only_new[0].contains("16 callers"),
            "{comparison:?}"
        );
        assert_eq!(
            compare_runs(&new, &base, &[]).only_base,
            comparison.only_new
        );
    }

    fn bulk(target: &str, speeds: &[f64]) -> BulkStep {
        BulkStep {
            target: target.to_owned(),
            runs: speeds
                .iter()
                .map(|speed| BulkRun {
                    client_cpu_seconds_per_gib: Some(0.3),
                    ..fixtures::bulk_run(1.0 / speed)
                })
                .collect(),
            ..fixtures::bulk()
        }
    }

    #[test]
    fn bulk_streams_are_compared_by_their_runs() {
        let with = |bulk: BulkStep| Run {
            bulk: vec![bulk],
            ..run(Vec::new())
        };
        let base = with(bulk("grpc://a:8005", &[3.0, 3.1, 2.9, 3.05]));
        let comparison = compare_runs(
            &base,
            &with(bulk("grpc://b:8005", &[2.0, 2.1, 1.9, 2.05])),
            &[],
        );
        assert!(
            comparison.pairs[0].is_bulk && comparison.diffs[0].what == "target",
            "{comparison:?}"
        );
        assert_eq!(finding(&comparison, 0, "bulk-rate"), Some(Finding::Worse));
        let same = compare_runs(&base, &base, &[]);
        assert_eq!(finding(&same, 0, "bulk-rate"), Some(Finding::NoDifference));
        assert!(
            same.pairs[0]
                .changes
                .iter()
                .all(|change| change.metric.name != "bulk-server-cpu")
        );
    }
}
