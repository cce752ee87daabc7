//! Two result files side by side: what differs between their environments, and between their
//! numbers.

mod gate;
mod matched;

pub use gate::Gate;

use serde_json::json;

use self::matched::{Matched, matched};
use crate::{
    comparison::{Compared, Family, metrics_and},
    environment_diff::{EnvironmentDiff, diff},
    metric::{BULK, COMPARED, Metric},
    run::{Measurement, Run, Step},
    warning::Warnings,
};

/// A new result file against a base.
#[derive(Debug, Clone)]
pub struct FileComparison<'a> {
    /// The differences between the runs' environments and settings, which may explain others.
    pub diffs: Vec<EnvironmentDiff>,
    /// Measurements of both, in the base's order.
    pub pairs: Vec<Compared<'a>>,
    /// Measurements of the base alone.
    pub only_base: Vec<String>,
    /// Measurements of the new one alone.
    pub only_new: Vec<String>,
    /// True where one run was over before the other began: what changed on the machines in between is in the
    /// differences.
    pub is_apart: bool,
}

/// Compares a run with a base. Measurements go together by label, by settings and by their order;
/// the server's address may be another one. Metrics of `asked` are compared in addition to those
/// always shown.
pub fn compare_runs<'a>(
    base: &'a Run,
    new: &'a Run,
    asked: &[&'static Metric],
) -> FileComparison<'a> {
    let Matched {
        pairs,
        only_base,
        only_new,
    } = matched(base.measurements(), new.measurements());
    let claimed = |base: &Measurement<'_>| {
        let metrics = metrics(base, asked).into_iter();
        metrics.filter(|metric| metric.is_claimed()).count()
    };
    let is_apart = span(base)
        .zip(span(new))
        .is_some_and(|(a, b)| a[1] < b[0] || b[1] < a[0]);
    let family = Family {
        claims: pairs.iter().map(|(base, _)| claimed(base)).sum(),
        at_any_time: base.is_sequential() || new.is_sequential(),
        is_apart,
        margin: None,
    };
    let mut diffs = diff_runs(base, new);
    for (base, new) in &pairs {
        for found in diff_steps(base.first(), new.first()) {
            found.add(&mut diffs);
        }
    }
    let [base_warnings, new_warnings] = [base, new].map(Warnings::of_run);
    let compare = |(base, new): (Measurement<'a>, Measurement<'a>)| {
        let metrics = metrics(&base, asked);
        let mut compared = Compared::of(base, new, &metrics, family);
        compared.stand_by([&base_warnings, &new_warnings]);
        compared
    };
    let names = |all: &[Measurement<'_>]| all.iter().map(Measurement::long_name).collect();
    FileComparison {
        diffs,
        only_base: names(&only_base),
        only_new: names(&only_new),
        is_apart,
        pairs: pairs.into_iter().map(compare).collect(),
    }
}

impl FileComparison<'_> {
    /// Returns the label or target of a pair, and its load, where no other has these; else all of
    /// its settings.
    pub fn short_name(&self, pair: &Compared<'_>) -> String {
        let name = pair.base.short_name();
        let same = self
            .pairs
            .iter()
            .filter(|other| other.base.short_name() == name);
        if same.count() == 1 {
            name
        } else {
            pair.base.long_name()
        }
    }
}

/// Returns when the first window of a run began and the last one ended, in nanoseconds since 1970; `None` if
/// that is not known.
fn span(run: &Run) -> Option<[u64; 2]> {
    let windows = run.steps.iter().filter_map(|step| {
        let start = step.window_started_at?;
        Some([
            start,
            start.saturating_add((step.summary.seconds * 1e9) as u64),
        ])
    });
    windows.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

/// Returns the metrics by which a measurement is compared: those always shown, and those of `asked`
/// that are not among them.
fn metrics(base: &Measurement<'_>, asked: &[&'static Metric]) -> Vec<&'static Metric> {
    let is_bulk = base.settings().bulk.is_some();
    metrics_and(
        if is_bulk { BULK } else { COMPARED }.to_vec(),
        asked,
        is_bulk,
    )
}

/// Returns the differences between machines and programs.
fn diff_runs(base: &Run, new: &Run) -> Vec<EnvironmentDiff> {
    let about = |run: &Run| {
        json!({
            "environment": run.environment,
            "tool": run.tool,
            "clients": run.parts.len().max(1),
            "status": run.status,
        })
    };
    diff(&about(base), &about(new), 0)
}

fn diff_steps(base: &Step, new: &Step) -> Vec<EnvironmentDiff> {
    let about = |step: &Step| json!({ "target": step.target, "settings": step.settings });
    let mut found = diff(&about(base), &about(new), 1);
    found.extend(diff(&base.security, &new.security, 1));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Finding;
    use crate::fixtures::{self, run, step};
    use crate::metric;

    /// Replies around `level` nanoseconds, a little different in each second.
    fn around(level: u64) -> Step {
        step(60, |second| {
            (0..200)
                .map(|number| level + number * 10 + second * 37 % 50)
                .collect()
        })
    }

    fn finding(comparison: &FileComparison<'_>, pair: usize, name: &str) -> Option<Finding> {
        comparison.pairs[pair]
            .comparisons
            .iter()
            .find(|own| own.metric.name == name)
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
            assert!(comparison.pairs[0].comparisons.len() >= 5, "{comparison:?}");
            for change in &comparison.pairs[0].comparisons {
                let claim = Some(Finding::NoDifference).filter(|_| change.metric.is_claimed());
                assert_eq!(
                    (change.finding(), change.change),
                    (claim, Some(0.0)),
                    "{change:?}"
                );
            }
        }
    }

    #[test]
    fn one_run_each_is_judged_by_the_error_bars_within() {
        let (base, new) = (run(vec![around(10_000)]), run(vec![around(13_000)]));
        let comparison = compare_runs(&base, &new, &[]);
        assert_eq!(finding(&comparison, 0, "p50"), Some(Finding::Worse));
        assert_eq!(finding(&comparison, 0, "rate"), Some(Finding::NoDifference));
        // One run does not show how much its mean varies between runs.
        assert_eq!(finding(&comparison, 0, "mean"), None);
        let p50 = comparison.pairs[0].by(&metric::P50).unwrap();
        let [low, high] = p50.interval.unwrap();
        assert!(
            low < p50.change.unwrap() && p50.change.unwrap() < high && low > 0.2,
            "{p50:?}"
        );
        let short = |time| run(vec![step(2, |_| vec![time; 1000])]);
        let (base, new) = (short(10_000), short(20_000));
        let comparison = compare_runs(&base, &new, &[]);
        assert_eq!(finding(&comparison, 0, "p50"), None);
    }

    #[test]
    fn trials_are_judged_by_how_much_they_differ() {
        let trials = |levels: [u64; 5]| run(Vec::from(levels.map(around)));
        let base = trials([10_000, 10_400, 9_800, 10_100, 9_900]);
        let new = trials([14_000, 14_500, 13_800, 14_100, 13_900]);
        let slower = compare_runs(&base, &new, &[]);
        let pair = &slower.pairs[0];
        assert_eq!(
            (
                slower.pairs.len(),
                pair.base.trials.len(),
                pair.new.trials.len()
            ),
            (1, 5, 5)
        );
        for name in ["p50", "p99"] {
            assert_eq!(finding(&slower, 0, name), Some(Finding::Worse), "{name}");
        }
        // Shown, but without a claim.
        assert_eq!(finding(&slower, 0, "mean"), None);
        // Trials that could end as soon as something was known need intervals that hold at any time.
        let sequential = Run {
            looks: 18,
            ..new.clone()
        };
        let width = |new: &Run| {
            let [low, high] = compare_runs(&base, new, &[]).pairs[0]
                .by(&metric::P50)?
                .interval?;
            Some(high - low)
        };
        assert!(width(&sequential) > width(&new) && width(&new).is_some());
        let new = trials([10_300, 9_900, 10_000, 9_850, 10_200]);
        let alike = compare_runs(&base, &new, &[]);
        assert_eq!(finding(&alike, 0, "p50"), Some(Finding::NoDifference));
        // A single new run against several.
        let new = run(vec![around(20_000)]);
        let one = compare_runs(&base, &new, &[]);
        assert_eq!(
            (one.pairs[0].new.trials.len(), finding(&one, 0, "p50")),
            (1, Some(Finding::Worse))
        );
    }

    #[test]
    fn runs_of_which_one_was_over_before_the_other_began_are_apart() {
        let at = |starts: [u64; 2]| {
            let step = |second: u64| Step {
                window_started_at: Some(second * 1_000_000_000),
                ..around(10_000)
            };
            run(starts.map(step).to_vec())
        };
        let is_apart = |base: &Run, new: &Run| compare_runs(base, new, &[]).is_apart;
        // Windows of a minute.
        let base = at([0, 200]);
        assert!(is_apart(&base, &at([261, 461])) && is_apart(&at([261, 461]), &base));
        assert!(!is_apart(&base, &at([100, 300])) && !is_apart(&base, &at([259, 459])));
        let unknown = Step {
            window_started_at: None,
            ..around(10_000)
        };
        assert!(!is_apart(&run(vec![unknown]), &base));
    }

    #[test]
    fn drift_within_runs_that_are_apart_widens_the_intervals() {
        // The second run goes on where the first one ends.
        let drifting = |first: u64, starts: u64| {
            let step = |trial: u64| Step {
                window_started_at: Some((starts + trial * 100) * 1_000_000_000),
                ..around(10_000 + (first + trial) * 400)
            };
            run((0..5).map(step).collect())
        };
        let base = drifting(0, 0);
        let [apart, at_once] = [500, 50].map(|starts| drifting(5, starts));
        let p50 = |new: &Run| finding(&compare_runs(&base, new, &[]), 0, "p50");
        assert_eq!(p50(&apart), Some(Finding::NoDifference));
        assert_eq!(p50(&at_once), Some(Finding::Worse));
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

    #[test]
    fn bulk_streams_are_compared_by_their_runs() {
        let with = |target: &str, speeds: [f64; 4]| {
            let mut steps = fixtures::bulk(target, &speeds.map(|speed| 1.0 / speed));
            for step in &mut steps {
                let run = step.bulk.as_mut().unwrap();
                run.client_cpu_seconds_per_gib = Some(0.3);
            }
            run(steps)
        };
        let base = with("grpc://a:8005", [3.0, 3.1, 2.9, 3.05]);
        let slower = with("grpc://b:8005", [2.0, 2.1, 1.9, 2.05]);
        let comparison = compare_runs(&base, &slower, &[]);
        assert_eq!(comparison.diffs[0].what, "target", "{comparison:?}");
        assert_eq!(finding(&comparison, 0, "bulk-rate"), Some(Finding::Worse));
        let same = compare_runs(&base, &base, &[]);
        assert_eq!(finding(&same, 0, "bulk-rate"), Some(Finding::NoDifference));
        assert_eq!(same.pairs[0].by(&metric::BULK_SERVER_CPU), None);
        assert_eq!(same.pairs[0].by(&metric::RATE), None);
    }
}
