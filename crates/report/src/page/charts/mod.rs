//! All charts: one file and one line here for each.

mod bulk;
mod connect;
mod fairness;
mod ladder;
mod latency;
mod load;
mod overhead;
mod quantiles;
mod throughput;
mod time;

use netping_results::run::Run;

use super::chart::Chart;

/// A function that makes charts of runs; none where they lack the data.
type Maker = fn(&[Run]) -> Vec<Chart>;

/// Every maker, in the order of the page.
pub(super) const ALL: [Maker; 9] = [
    ladder::charts,
    overhead::charts,
    connect::charts,
    bulk::charts,
    throughput::charts,
    latency::charts,
    quantiles::charts,
    time::charts,
    fairness::charts,
];

/// The most points that a line of a chart has when there are `lines` of them: a page stays small however long a run was.
fn most_points(lines: usize) -> usize {
    const IN_A_PANEL: usize = 240;
    (IN_A_PANEL / lines.max(1)).max(24)
}
