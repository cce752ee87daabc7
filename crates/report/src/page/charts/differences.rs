//! The differences between targets that were measured in trials, and between runs that were compared.

use netping_results::{
    compare::compare_runs,
    metric::{self, Metric},
    run::{Run, Step},
};

use crate::page::{
    chart::{Chart, Form, Panel, Point, Series},
    series::{load, step_series},
    unit::Unit,
};

const TRIALS: &str = "Each target against the first, over the trials of one load. The intervals of all differences hold together with a \
                      probability of 95 %; one across 0 shows no difference.";

const COMPARED: &str = "Each measurement of the new run against the same one of the base. The intervals of all differences hold together \
                        with a probability of 95 %; one across 0 shows no difference.";

/// A difference: what differs, from what, as a share with its interval.
struct Row {
    metric: &'static Metric,
    name: String,
    base: String,
    relative: f64,
    interval: [f64; 2],
}

/// Returns the chart of a run with trials of several targets. What proxies and rungs add has charts of
/// its own.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let [run] = runs else {
        return Vec::new();
    };
    if !run.overheads.is_empty() || run.steps.iter().all(|step| step.trial == 1) {
        return Vec::new();
    }
    let groups = step_series(runs);
    let Some((first, others)) = groups.split_first() else {
        return Vec::new();
    };
    let mut pairs: Vec<(String, Vec<&Step>, Vec<&Step>)> = Vec::new();
    for other in others {
        for step in &other.steps {
            let name = format!("{}, {}", other.name, load(step));
            if pairs.iter().any(|(known, ..)| *known == name) {
                continue;
            }
            let is_like = |own: &&&Step| own.settings.asked() == step.settings.asked();
            let base: Vec<_> = first.steps.iter().filter(is_like).copied().collect();
            if !base.is_empty() {
                let own = other.steps.iter().filter(is_like).copied().collect();
                pairs.push((name, base, own));
            }
        }
    }
    let comparisons = pairs.len() * metric::TRIALS.len();
    let rows = pairs.iter().flat_map(|(name, base, own)| {
        metric::TRIALS.iter().filter_map(move |metric| {
            let difference = metric.difference(base, own, comparisons)?;
            Some(Row {
                metric,
                name: name.clone(),
                base: first.name.clone(),
                relative: difference.relative,
                interval: difference.interval,
            })
        })
    });
    chart("trials", TRIALS, &rows.collect::<Vec<_>>())
        .into_iter()
        .collect()
}

/// Returns the chart of what changed from a base to a new run.
pub(in crate::page) fn compared(base: &Run, new: &Run) -> Option<Chart> {
    let comparison = compare_runs(base, new, &[]);
    let rows = comparison.pairs.iter().flat_map(|pair| {
        pair.changes.iter().filter_map(|change| {
            let metric = change.metric;
            Some(Row {
                metric,
                name: pair.short_name.clone(),
                base: "base".to_owned(),
                relative: change.difference.filter(|_| metric.is_relative())?,
                interval: change.interval?,
            })
        })
    });
    chart("compared", COMPARED, &rows.collect::<Vec<_>>())
}

fn chart(variant: &'static str, note: &'static str, rows: &[Row]) -> Option<Chart> {
    let mut metrics: Vec<&'static Metric> = Vec::new();
    for row in rows {
        if !metrics.contains(&row.metric) {
            metrics.push(row.metric);
        }
    }
    let panel = |metric: &&'static Metric| {
        let own = rows.iter().filter(|row| row.metric == *metric);
        let series = |(place, row): (usize, &Row)| {
            let point = Point::new(row.base.as_str(), row.relative);
            let range = row.interval.map(|end| end * 100.0);
            let point = Point {
                at: row.relative * 100.0,
                ..point
            };
            Series::new(row.name.clone(), place, vec![point.with_range(Some(range))])
        };
        let title = format!("change of {}", metric.name);
        let rows = own.enumerate().map(series).collect();
        Panel::new(&title, Unit::Count("%"), Form::Rows, rows)
    };
    let chart = Chart::new(
        ["differences", "Differences", note],
        "against",
        metrics.iter().map(panel),
    )?;
    Some(Chart {
        variant: Some(variant),
        ..chart
    })
}
