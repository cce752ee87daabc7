//! The response times of every second, as a heatmap.

use std::collections::BTreeMap;

use netping_measure::{buckets::Buckets, interval::IntervalSummary, window::INTERVAL};
use netping_results::{
    format::plural,
    metric,
    run::{Measurement, Run, Step},
    warning::Warning,
};

use crate::page::{
    chart::{Axis, Chart, Mark, Panel, Plane, Point, Series},
    scale::AxisScale,
    series::{Fullest, fullest},
    unit::PageUnit,
};

/// Most heatmaps on a page.
const MOST: usize = 8;

/// Columns of all heatmaps together, and the most and the fewest of one.
const COLUMNS: usize = 120;
const MOST_COLUMNS: usize = 60;
const FEWEST_COLUMNS: usize = 15;

/// The darkness of a cell with a single response.
const LIGHTEST: f64 = 0.15;

const NOTE: &str = "Each column is a second, or several of a long run, and each row a range of response times. The stronger its colour, the more replies \
                    a cell has, on a logarithmic scale. Above and at the right are the sums of columns and rows. A triangle marks a stall, a second \
                    in which requests failed, or one in which packets were lost where they were not in most. The load is the one with the highest rate, and of several trials, the one with the highest p99.";

/// Returns the chart of the times of each second.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let all = fullest(runs).into_iter();
    let shown = all.filter_map(|own| Some((worst(&own.measurement)?, own)));
    let shown: Vec<_> = shown.take(MOST).collect();
    let most = (COLUMNS / shown.len().max(1)).clamp(FEWEST_COLUMNS, MOST_COLUMNS);
    let panel = |(step, own): (&Step, Fullest<'_>)| {
        let plane = Plane {
            events: events(step),
            ..Plane::new(Axis::ELAPSED, AxisScale::Log)
        };
        let series = Series::new(own.name.clone(), own.colour, cells(step, most));
        Panel::rows(&own.name, PageUnit::NANOS, vec![series]).on(plane)
    };
    let panels = shown.into_iter().map(panel);
    let text = ["heatmap", "Response times second by second", NOTE];
    vec![Chart::new(text, "from", panels)]
}

/// Returns the trial with the highest p99, where its file has the times of each of several seconds.
fn worst<'a>(measurement: &Measurement<'a>) -> Option<&'a Step> {
    let has_times = |step: &&Step| {
        within(step).count() > 1 && within(step).any(|second| !second.response_buckets.is_empty())
    };
    let tail = |step: &Step| metric::P99.of_step(step).unwrap_or(f64::NEG_INFINITY);
    let trials = measurement.trials.iter().copied().filter(has_times);
    trials.max_by(|a, b| tail(a).total_cmp(&tail(b)))
}

/// The intervals of the window.
fn within(step: &Step) -> impl Iterator<Item = &IntervalSummary> {
    step.intervals
        .iter()
        .filter(|interval| interval.length_ns > 0)
}

/// Returns what happened in a step, each with when it began.
fn events(step: &Step) -> Vec<(f64, String)> {
    let stalls = step.warnings.iter().filter_map(|warning| match warning {
        Warning::Stalled(stall) => Some((stall.at * 1e9, warning.to_string())),
        _ => None,
    });
    let failing = within(step).filter(|second| second.errors > 0);
    let failures = failing.map(|second| {
        let count = plural(second.errors, "request");
        (
            second.start_ns as f64,
            format!("{count} failed in this second"),
        )
    });
    let losing = within(step).filter_map(|second| {
        let lost = second.path.filter(|own| own.lost_packets > 0)?;
        let packets = plural(lost.lost_packets, "packet");
        let told = format!("{packets} lost in this second");
        Some((second.start_ns as f64, told))
    });
    let losing: Vec<_> = losing.collect();
    let are_most = losing.len() * 2 > within(step).count();
    let losses = losing.into_iter().filter(|_| !are_most);
    stalls.chain(failures).chain(losses).collect()
}

/// Returns a cell for each bucket of each second; of a long step, seconds are added up to at most
/// `most` columns.
fn cells(step: &Step, most: usize) -> Vec<Point> {
    let each = (within(step).count().div_ceil(most).max(1)) as u64;
    let mut columns: BTreeMap<u64, (u64, Buckets)> = BTreeMap::new();
    for second in within(step) {
        let end = second.start_ns.saturating_add(second.length_ns);
        let column = columns
            .entry(second.start_ns / INTERVAL / each)
            .or_default();
        column.0 = column.0.max(end);
        column.1.add(&second.response_buckets);
    }
    let counts = columns.values().flat_map(|(_, buckets)| buckets.iter());
    let fullest = counts.map(|(_, count)| count).max().unwrap_or(1);
    let cell = |from: u64, end: u64, [low, high]: [u64; 2], count: u64| {
        let share = (count as f64).ln() / (fullest as f64).ln().max(1.0);
        let mark = Mark::Cell {
            until: end as f64,
            darkness: LIGHTEST + (1.0 - LIGHTEST) * share,
        };
        Point {
            at: low as f64,
            ..Point::new(from as f64, count as f64)
        }
        .with_range(Some([low as f64, high as f64]))
        .marked(mark)
    };
    let mut cells = Vec::new();
    for (number, (end, buckets)) in &columns {
        let from = number * each * INTERVAL;
        let own = buckets.iter();
        cells.extend(own.map(|(bounds, count)| cell(from, *end, bounds, count)));
    }
    cells
}

#[cfg(test)]
mod tests {
    use netping_measure::path::PathSecond;
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn seconds_with_lost_packets_are_marked_where_they_are_few() {
        let mut step = fixtures::step(6, |_| vec![1000]);
        let mut marked = |lost: [u64; 6]| -> Vec<(f64, String)> {
            for (second, lost_packets) in step.intervals.iter_mut().zip(lost) {
                second.path = Some(PathSecond {
                    lost_packets,
                    smoothed_rtt_ns: None,
                });
            }
            events(&step)
        };
        let told = |second: f64, told: &str| (second * 1e9, format!("{told} lost in this second"));
        assert_eq!(marked([0; 6]), []);
        assert_eq!(
            marked([0, 1, 0, 30, 0, 0]),
            [told(1.0, "1 packet"), told(3.0, "30 packets")]
        );
        assert_eq!(marked([1, 1, 0, 0, 0, 1]).len(), 3);
        assert_eq!(marked([1, 1, 0, 1, 0, 1]), []);
    }

    #[test]
    fn seconds_of_a_long_step_are_added_up_and_an_idle_one_stays_empty() {
        let step = fixtures::step(6, |second| {
            if second == 3 {
                Vec::new()
            } else {
                vec![1100, 1100, 5000]
            }
        });
        let shown = |most| -> Vec<(u64, u64)> {
            cells(&step, most)
                .iter()
                .map(|cell| (cell.x.value() as u64 / INTERVAL, cell.y as u64))
                .collect()
        };
        assert_eq!(shown(6).len(), 10);
        assert!(shown(6).iter().all(|(second, _)| *second != 3));
        assert_eq!(shown(3), [(0, 4), (0, 2), (2, 2), (2, 1), (4, 4), (4, 2)]);
        let darkest = cells(&step, 3)
            .into_iter()
            .filter_map(|cell| match cell.mark {
                Mark::Cell { darkness, .. } => Some(darkness),
                _ => None,
            });
        assert!(darkest.fold(0.0, f64::max) > 0.99);
    }
}
