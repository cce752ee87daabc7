//! Differences with their intervals: of rungs, of targets, of paths, and of runs that were compared.

use netping_results::{
    compare::FileComparison,
    comparison::{Compared, Comparison},
    format::thousands,
    metric::{self, Metric, Scale},
    run::{Kind, Run},
};

use crate::{
    distinct,
    finding::{FAILED_TIMES, MOST_CHANGE, connections, has_failures, most_added},
    page::{
        chart::{Chart, Panel, Point, Series},
        series::{apart, of_run},
        unit::PageUnit,
    },
};

const PATHS: [&str; 3] = [
    "overhead",
    "What each proxy adds",
    "Each path through a proxy against the direct path, trial by trial: times at the highest rate, and the rate of closed \
     loops.",
];

const TARGETS: [&str; 3] = [
    "differences",
    "Differences",
    "Each target against the first, trial by trial, under the same load.",
];

const RUNS: [&str; 3] = [
    "differences",
    "What changed",
    "Each measurement of the new run against the same one of the base.",
];

const TOGETHER: &str = " With a probability of 95 %, all intervals of differences that are claimed hold. An interval across 0 shows no \
                        difference; an arrow is an end beyond the axis; a difference without an interval has too few trials.";

const CONTROL: &str =
    " A control measures the same server again: differences no larger than its own are noise.";

/// A difference of one metric.
struct DifferenceRow<'a> {
    name: String,
    base: &'a str,
    pair: &'a Compared<'a>,
    comparison: &'a Comparison,
}

/// Returns the chart of what proxies add.
pub(super) fn overhead(runs: &[Run]) -> Vec<Chart> {
    of_runs(runs, PATHS, true, |kind| kind == Kind::Proxy)
}

/// Returns the chart of the differences of targets.
pub(super) fn differences(runs: &[Run]) -> Vec<Chart> {
    let variant = Some("trials");
    let charts = of_runs(runs, TARGETS, false, |kind| {
        !matches!(kind, Kind::Proxy | Kind::Ladder)
    });
    charts
        .into_iter()
        .map(|chart| Chart { variant, ..chart })
        .collect()
}

/// Returns the chart of what runs of some kinds compare themselves.
fn of_runs(
    runs: &[Run],
    text: [&'static str; 3],
    adds: bool,
    is_own: fn(Kind) -> bool,
) -> Vec<Chart> {
    let compared: Vec<Vec<Compared<'_>>> = runs.iter().map(Run::compared).collect();
    let mut all = Vec::new();
    for (at, (run, pairs)) in runs.iter().zip(&compared).enumerate() {
        for mut row in rows(pairs).into_iter().filter(|_| is_own(run.kind)) {
            row.name = of_run(runs, at, &row.name);
            all.push(row);
        }
    }
    vec![chart(text, adds, &all)]
}

/// Returns the chart of what changed from a base to a new run, by the metrics on which claims are made.
pub(in crate::page) fn compared(comparison: &FileComparison<'_>) -> Chart {
    let rows = comparison.pairs.iter().flat_map(|pair| {
        let claimed = pair
            .comparisons
            .iter()
            .filter(|own| own.metric.is_claimed());
        claimed.map(|own| DifferenceRow {
            name: comparison.short_name(pair),
            base: "base",
            pair,
            comparison: own,
        })
    });
    Chart {
        variant: Some("compared"),
        ..chart(RUNS, false, &rows.collect::<Vec<_>>())
    }
}

/// Returns the rows of all metrics, each with the name of the new side, and that of the base where
/// there are several.
fn rows<'a>(pairs: &'a [Compared<'a>]) -> Vec<DifferenceRow<'a>> {
    let mut rows = Vec::new();
    for metric in metrics(pairs.iter().flat_map(|pair| &pair.comparisons)) {
        let own = || {
            pairs
                .iter()
                .filter_map(|pair| Some((pair, pair.by(metric)?)))
        };
        let sides = own().flat_map(|(pair, _)| [&pair.base, &pair.new]);
        let words = apart(&sides.collect::<Vec<_>>());
        let bases = distinct(own().map(|(pair, _)| pair.base.name()));
        rows.extend(own().map(|(pair, comparison)| {
            let (new, base) = (&words[&pair.new.number], &words[&pair.base.number]);
            let mut name = new.join(", ");
            if bases.len() > 1 {
                let mut others = base.clone();
                others.retain(|word| !new.contains(word));
                name.extend([" over ", &others.join(", ")]);
            }
            if !pair.new.has_connections_like(&pair.base) {
                let (own, others) = (pair.new.settings(), pair.base.settings());
                let others = thousands(others.connections as f64);
                name.extend([" on ", &connections(own), " instead of ", &others]);
            }
            DifferenceRow {
                name,
                base: pair.base.name(),
                pair,
                comparison,
            }
        }));
    }
    rows
}

/// Returns each metric whose changes are shares, once.
fn metrics<'a>(all: impl Iterator<Item = &'a Comparison>) -> Vec<&'static Metric> {
    let all = all.map(|own| own.metric);
    distinct(all.filter(|metric| metric.scale == Scale::Logarithmic))
}

fn chart(text: [&'static str; 3], adds: bool, rows: &[DifferenceRow<'_>]) -> Chart {
    let metrics = metrics(rows.iter().map(|row| row.comparison));
    let panels = metrics.iter().map(|metric| panel(adds, metric, rows));
    let mut chart = Chart::new(text, "against", panels);
    let pairs: Vec<_> = rows.iter().map(|row| row.pair).collect();
    chart.note += &notes(&pairs);
    chart
}

/// Says how to read differences.
pub(super) fn notes(pairs: &[&Compared<'_>]) -> String {
    let mut notes = TOGETHER.to_owned();
    if pairs.iter().any(|pair| pair.is_control) {
        notes.push_str(CONTROL);
    }
    if pairs.iter().any(|pair| has_failures(pair)) {
        notes.extend([
            " *: requests failed on one of the two sides; ",
            FAILED_TIMES,
            ".",
        ]);
    }
    notes
}

/// Returns the title and the unit of differences; `adds`: times are what one side adds to the other, not a share of it.
pub(super) fn title_of(metric: &'static Metric, adds: bool) -> (String, PageUnit) {
    if adds && metric.unit == metric::Unit::Nanos {
        (format!("added to {}", metric.label), PageUnit::Added)
    } else {
        (
            format!("change of {}", metric.label),
            PageUnit::Change(metric),
        )
    }
}

/// Returns the point of a difference.
pub(super) fn difference(own: &Comparison, base: &str, adds: bool) -> Option<Point> {
    let (value, range, most) = if title_of(own.metric, adds).1 == PageUnit::Added {
        let (added, ends) = own.added()?;
        (added, ends, most_added(own))
    } else {
        (own.change?, own.interval, MOST_CHANGE)
    };
    Some(Point {
        range,
        most,
        ..Point::new(base, value)
    })
}

fn panel(adds: bool, metric: &'static Metric, rows: &[DifferenceRow<'_>]) -> Panel {
    let own = rows.iter().filter(|row| row.comparison.metric == metric);
    let series = own.map(|row| {
        let points = difference(row.comparison, row.base, adds)
            .into_iter()
            .collect();
        Series::new(marked(row), 0, points)
    });
    let (title, unit) = title_of(metric, adds);
    Panel::rows(&title, unit, series.collect())
}

/// Returns the name of a row, with a mark where requests failed.
fn marked(row: &DifferenceRow<'_>) -> String {
    let mark = if has_failures(row.pair) { "*" } else { "" };
    row.name.clone() + mark
}

#[cfg(test)]
mod tests {
    use netping_results::{fixtures, run::Pairing};

    use super::*;

    /// Three trials of the direct path and of a proxy, on which requests may have failed.
    fn proxy(failed: u64) -> Run {
        let mut steps = Vec::new();
        for (label, time) in [("direct", 100_000), ("sound", 150_000), ("other", 160_000)] {
            for trial in 0..3 {
                let mut step = fixtures::step(1, |_| vec![time + trial * 1000; 1000]);
                step.label = Some(label.to_owned());
                step.settings.planned_rate = Some(1000.0);
                if label == "other" {
                    step.summary.scheduled += failed;
                }
                steps.push(step);
            }
        }
        Run {
            kind: Kind::Proxy,
            pairings: Pairing::against_first(0..3).collect(),
            ..fixtures::run(steps)
        }
    }

    fn drawn(runs: &[Run]) -> Vec<Chart> {
        let mut charts = [overhead(runs), differences(runs)].concat();
        charts.retain(|chart| !chart.panels.is_empty());
        charts
    }

    fn names(chart: &Chart) -> Vec<&str> {
        let rows = chart.panels[0].series.iter();
        rows.map(|series| series.name.as_str()).collect()
    }

    #[test]
    fn a_path_on_which_requests_failed_is_marked() {
        let sound = drawn(&[proxy(0)]).remove(0);
        assert_eq!(names(&sound), ["sound", "other"]);
        assert!(!sound.note.contains("failed"));
        let lossy = drawn(&[proxy(3)]).remove(0);
        assert_eq!(names(&lossy), ["sound", "other*"]);
        assert!(lossy.note.contains("requests failed"));
    }

    #[test]
    fn a_proxy_adds_time_and_a_target_differs_by_a_share() {
        let shown = |kind: Kind| {
            let run = Run { kind, ..proxy(0) };
            let chart = drawn(&[run]).remove(0);
            let p50 = chart
                .panels
                .into_iter()
                .find(|own| own.title.ends_with("p50"));
            let p50 = p50.unwrap();
            p50.shown(&p50.series[0].points[0])
        };
        assert!(
            shown(Kind::Proxy).starts_with("+50."),
            "{}",
            shown(Kind::Proxy)
        );
        let share = shown(Kind::Throughput);
        assert!(
            share.starts_with("+49.") && share.contains("%.."),
            "{share}"
        );
    }

    #[test]
    fn a_row_names_its_base_where_there_are_several() {
        let mut run = proxy(0);
        run.pairings[1].base = 1;
        for step in &mut run.steps {
            step.settings.planned_rate = None;
            step.settings.callers = 1;
        }
        let chart = drawn(&[run]).remove(0);
        assert_eq!(names(&chart), ["sound over direct", "other over sound"]);
    }

    #[test]
    fn a_row_says_where_its_connections_differ() {
        let mut run = proxy(0);
        for step in &mut run.steps {
            if step.name() == "other" {
                step.settings.connections = 1;
            }
        }
        let chart = drawn(&[run]).remove(0);
        assert_eq!(
            names(&chart),
            ["sound", "other on 1 connection instead of 8"]
        );
    }

    #[test]
    fn a_run_that_compares_nothing_has_no_chart() {
        let step = fixtures::step(1, |_| vec![1000; 100]);
        assert!(drawn(&[fixtures::run(vec![step])]).is_empty());
    }
}
