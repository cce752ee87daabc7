//! Quantiles of the times, against the load.

use netping_results::{metric, run::Run};

use super::load::{self, Against};
use crate::page::chart::Chart;

/// Returns the charts of the times against the load, in nanoseconds.
pub(super) fn charts(runs: &[Run]) -> Vec<Chart> {
    let note = "Response time, from when a request was due. In a closed loop that is the service time; in an open loop \
                the service time, from when it was sent, is dashed. A quantile is shown where enough samples lie beyond it.";
    load::charts(
        runs,
        &Against {
            kind: "latency",
            title: "Latency",
            note,
            metrics: metric::LATENCY_CHARTS,
            beside: Some(("service time", metric::SERVICE_CHARTS)),
        },
    )
}
