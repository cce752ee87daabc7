//! Bulk streams: the throughput of many bytes in one direction.

use std::collections::BTreeMap;

use netping_measure::{
    bulk::{BulkRun, Direction},
    error_kind::ErrorKind,
    statistics::estimate::{Estimate, Moments},
    status::Status,
};
use serde::{Deserialize, Serialize};

use crate::{
    connect::ChannelSecurity,
    format,
    warning::{ClientBound, Errors, FewRuns, SharedHost, Warning},
};

/// A size or a length in [`BulkSettings`] that the server chooses.
pub const SERVERS_CHOICE: u64 = 0;

/// One measurement of a bulk stream: one target with one set of settings, and each of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkStep {
    /// The target's URL.
    pub target: String,
    /// Completeness of its runs.
    pub status: Status,
    /// The settings.
    pub settings: BulkSettings,
    /// The runs in which every byte arrived, in their order.
    pub runs: Vec<BulkRun>,
    /// The summary of the runs; absent without one.
    pub summary: Option<BulkSummary>,
    /// Runs that failed, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The security of its connections; absent in the clear.
    pub security: Option<ChannelSecurity>,
    /// The warnings about its numbers.
    pub warnings: Vec<Warning>,
}

impl BulkStep {
    /// Runs that were made, and how many of them failed.
    pub fn attempts(&self) -> (u64, u64) {
        let failed: u64 = self.errors.values().sum();
        (self.runs.len() as u64 + failed, failed)
    }

    /// The share of its runs that failed; 0 before the first.
    pub fn error_rate(&self) -> f64 {
        match self.attempts() {
            (0, _) => 0.0,
            (made, failed) => failed as f64 / made as f64,
        }
    }

    /// Returns the different sizes of its runs, and the length of the longest message, if the server
    /// chose either.
    pub fn chosen(&self) -> Option<(Vec<u64>, Option<u64>)> {
        let settings = &self.settings;
        if settings.size_bytes != SERVERS_CHOICE && settings.chunk_bytes != SERVERS_CHOICE {
            return None;
        }
        let mut sizes: Vec<u64> = self.runs.iter().map(|run| run.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let longest = self.runs.iter().filter_map(|run| run.message_bytes).max();
        (!sizes.is_empty()).then_some((sizes, longest))
    }

    /// Updates the summary and the warnings. `shared_host`: the server is on the client's host.
    pub fn settle(&mut self, shared_host: bool) {
        self.summary = BulkSummary::of(&self.runs);
        let busy = self.summary.and_then(|summary| {
            // The streams of a run have one thread of the client.
            Some(summary.client_cpu_seconds_per_gib? * summary.gib_per_second.mean)
        });
        let (made, failed) = self.attempts();
        let warnings = [
            busy.and_then(ClientBound::of_bulk).map(Warning::from),
            FewRuns::of_bulk(self.runs.len()).map(Warning::from),
            Errors::of_bulk(failed, made).map(Warning::from),
            shared_host.then_some(SharedHost.into()),
        ];
        self.warnings = warnings.into_iter().flatten().collect();
    }
}

/// The settings of one bulk measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkSettings {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Bytes of each run, over all streams; 0: the server's own choice on each stream.
    pub size_bytes: u64,
    /// Bytes of each message; a stream's last one has what is left. 0: the server's own choice.
    pub chunk_bytes: u64,
    /// Streams side by side.
    pub streams: usize,
    /// The flow-control window of each stream, in bytes; absent where the transport has none, or
    /// its own is kept.
    pub window_bytes: Option<u64>,
    /// The largest HTTP/2 frame that is taken, in bytes; absent where the transport has none, or
    /// its own is kept.
    pub frame_bytes: Option<u64>,
    /// True where every byte was compared.
    pub verify: bool,
}

impl BulkSettings {
    /// Returns a size or a length as people read it.
    pub fn shown(bytes: u64) -> String {
        if bytes == SERVERS_CHOICE {
            return "server's".to_owned();
        }
        format::bytes(bytes)
    }
}

/// The summary of a bulk measurement's runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkSummary {
    /// GiB/s: the mean of the runs with its 95 % interval.
    pub gib_per_second: Estimate,
    /// The standard deviation of the runs' GiB/s; absent with fewer than two.
    #[serde(rename = "sd_gib_per_second")]
    pub sd: Option<f64>,
    /// The median of the times to the first byte, in seconds.
    pub first_byte_seconds: f64,
    /// Mean CPU time of the client, in seconds per GiB.
    pub client_cpu_seconds_per_gib: Option<f64>,
    /// Mean CPU time of the server, in seconds per GiB.
    pub server_cpu_seconds_per_gib: Option<f64>,
}

impl BulkSummary {
    /// Summarizes `runs`; `None` without any. A cost that only some of them have is the mean of
    /// those.
    pub fn of(runs: &[BulkRun]) -> Option<Self> {
        let rates: Vec<f64> = runs.iter().map(|run| run.gib_per_second).collect();
        let first_bytes = runs.iter().map(|run| run.first_byte_seconds).collect();
        let known = |cost: fn(&BulkRun) -> Option<f64>| {
            let costs: Vec<f64> = runs.iter().filter_map(cost).collect();
            Estimate::of(&costs).map(|estimate| estimate.mean)
        };
        Some(Self {
            gib_per_second: Estimate::of(&rates)?,
            sd: Moments::of(&rates)?.variance.map(f64::sqrt),
            first_byte_seconds: median(first_bytes)?,
            client_cpu_seconds_per_gib: known(|run| run.client_cpu_seconds_per_gib),
            server_cpu_seconds_per_gib: known(|run| run.server_cpu_seconds_per_gib),
        })
    }
}

/// The middle value, or the mean of the two in the middle; `None` without any.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn run(gib_per_second: f64, first_byte_seconds: f64, cost: Option<f64>) -> BulkRun {
        BulkRun {
            first_byte_seconds,
            client_cpu_seconds_per_gib: cost,
            ..fixtures::bulk_run(1.0 / gib_per_second)
        }
    }

    fn step(runs: Vec<BulkRun>) -> BulkStep {
        BulkStep {
            runs,
            ..fixtures::bulk()
        }
    }

    #[test]
    fn runs_are_summed_up() {
        let runs = [
            run(2.0, 0.001, Some(0.25)),
            run(4.0, 0.009, None),
            run(3.0, 0.002, Some(0.75)),
        ];
        let summary = BulkSummary::of(&runs).unwrap();
        assert!((summary.gib_per_second.mean - 3.0).abs() < 1e-12);
        assert!((summary.sd.unwrap() - 1.0).abs() < 1e-12);
        assert!((summary.first_byte_seconds - 0.002).abs() < 1e-12);
        assert_eq!(
            (
                summary.client_cpu_seconds_per_gib,
                summary.server_cpu_seconds_per_gib
            ),
            (Some(0.5), None)
        );
        let two = BulkSummary::of(&runs[..2]).unwrap();
        assert!((two.first_byte_seconds - 0.005).abs() < 1e-12);
        let one = BulkSummary::of(&runs[..1]).unwrap();
        assert_eq!((one.sd, one.gib_per_second.half_width), (None, None));
        assert_eq!(BulkSummary::of(&[]), None);
    }

    #[test]
    fn runs_that_may_mislead_have_warnings() {
        let names = |step: &BulkStep| step.warnings.iter().map(Warning::name).collect::<Vec<_>>();
        let mut good = step(vec![run(2.0, 0.001, Some(0.25)); 3]);
        good.settle(false);
        assert_eq!(names(&good), Vec::<&str>::new());
        // 0.49 s for each GiB, and 2 GiB in each second: 98 % of a core.
        let mut bad = step(vec![run(2.0, 0.001, Some(0.49)); 2]);
        bad.errors.insert(ErrorKind::Mismatch, 2);
        bad.settle(true);
        assert_eq!(
            names(&bad),
            ["CLIENT_BOUND", "FEW_RUNS", "ERRORS", "SHARED_HOST"]
        );
        assert!((bad.error_rate() - 0.5).abs() < 1e-12);
        assert!(step(Vec::new()).error_rate().abs() < 1e-12);
    }
}
