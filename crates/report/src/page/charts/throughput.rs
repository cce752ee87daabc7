//! The rate of requests, what waits at it, and the cost of each, against the load.

use netping_results::{metric, run::Run};

use super::load::{self, Against};
use crate::page::chart::Chart;

/// Returns the charts of the rate against the load.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let note = "Verified replies within the window, per second of it, the time that 99 % of them took at most, and the CPU \
                time of client and server for each. \
                Bars are 95 % intervals: of the trials where there are several, else within the step. \
                With more callers than at the knee, the rate grows by less than 5 % and p99 rises; capacity is the \
                highest rate.";
    load::charts(
        runs,
        &Against {
            kind: "throughput",
            title: "Throughput",
            note,
            metrics: metric::THROUGHPUT_CHARTS,
            beside: None,
        },
    )
}
