//! All charts: one file and one line here for each.

mod bulk;
mod connect;
pub(super) mod differences;
mod fairness;
mod heatmap;
pub(super) mod ladder;
mod latency;
mod load;
mod overhead;
pub(super) mod quantiles;
mod throughput;
mod time;

use netping_results::run::Run;

use super::chart::{Chart, Mark, Point};

/// A function that makes charts of runs; it returns none where they lack the data.
type Maker = fn(&[Run]) -> Vec<Chart>;

/// Returns the makers of these runs' charts, in the order of the page. The windows of a ladder are too
/// short, and too many, for charts of single steps.
pub(super) fn makers(runs: &[Run]) -> &'static [Maker] {
    if runs.iter().all(ladder::is_ladder) {
        &[ladder::charts]
    } else {
        &ALL
    }
}

/// Every maker.
const ALL: [Maker; 11] = [
    ladder::charts,
    differences::charts,
    overhead::charts,
    connect::charts,
    bulk::charts,
    throughput::charts,
    latency::charts,
    quantiles::charts,
    time::charts,
    heatmap::charts,
    fairness::charts,
];

/// Returns a bar of parts, each with its name, its colour and its length, and beginning where the
/// one before it ends.
fn stacked<'a>(parts: impl Iterator<Item = (&'a str, usize, f64)>) -> Vec<Point> {
    let mut end = 0.0;
    let bar = |(name, colour, length)| {
        let from = end;
        end += length;
        let colour = Some(colour);
        Point::new(name, length).marked(Mark::Bar { from, colour })
    };
    parts.map(bar).collect()
}

/// Returns the maximum number of points on each of `lines` lines: a page stays small however long a
/// run was.
fn most_points(lines: usize) -> usize {
    const IN_A_PANEL: usize = 240;
    (IN_A_PANEL / lines.max(1)).max(24)
}
