//! A result file: what was run, where, and what came of it.

use netping_measure::{interval::IntervalSummary, status::Status};
use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    bulk::BulkStep,
    connect::{ChannelSecurity, PhaseSummary},
    file::{
        histogram::{decode, encode},
        save::{SaveError, prepare_file, write_atomically},
    },
    merge::Part,
    overhead::Overhead,
    warning::Warning,
};
use netping_measure::{
    aggregate::Totals, connect::ConnectPhase, cost::Cost, fairness::Fairness, histogram::counts,
    summary::Summary,
};

/// The version of the result file's form. It rises when a reader of the old form could misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// One invocation of a command, as it stands in a result file. The schema is in `schema/run.schema.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Whether all of it was run.
    pub status: Status,
    /// What wrote it.
    pub tool: Tool,
    /// The command line.
    pub command_line: Vec<String>,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// Where the client ran.
    pub environment: Environment,
    /// The seed of the order in which the targets of a trial were measured; absent with one trial.
    pub order_seed: Option<u64>,
    /// The steps that are done, in the order they were run.
    pub steps: Vec<Step>,
    /// The bulk streams, in the order they were run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bulk: Vec<BulkStep>,
    /// What proxies add, where they were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<Overhead>,
    /// The clients whose results were added up; empty: there was one client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// The program that wrote a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
}

/// The machine that the client ran on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Environment {
    /// Its name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The processor's model.
    pub cpu_model: String,
    /// Cores that the client may run on.
    pub cpus: usize,
    /// The limit on open files.
    pub open_files: u64,
    /// Everything else that bears on the numbers and that the system tells: setting and value.
    pub system: BTreeMap<String, String>,
}

/// One measurement: one target with one set of settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// The target's URL.
    pub target: String,
    /// A name for it, such as a ladder's rung.
    pub label: Option<String>,
    /// Which of several trials it belongs to, from 1 on.
    pub trial: u32,
    /// Whether all of it was run.
    pub status: Status,
    /// When the window began, by the client's time of day: nanoseconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_started_at: Option<u64>,
    /// What was asked for.
    pub settings: StepSettings,
    /// What came of it.
    pub summary: Summary,
    /// What it used.
    pub cost: Cost,
    /// Connections that were opened anew after they had been lost.
    pub reconnects: u64,
    /// Connections that were opened because the server had ended the one before, without a request on it being lost.
    #[serde(default)]
    pub ended_by_server: u64,
    /// How its connections were secured; absent in the clear.
    pub security: Option<ChannelSecurity>,
    /// What it took to open connections within the window, where any were; the total is with the first call.
    pub connect: BTreeMap<ConnectPhase, PhaseSummary>,
    /// How evenly its requests were spread over connections; absent with fewer than two.
    pub fairness: Option<Fairness>,
    /// Why its numbers may mislead; empty: no doubt is known.
    pub doubts: Vec<Warning>,
    /// Second by second.
    pub intervals: Vec<IntervalSummary>,
    /// The histograms of the summary's times.
    pub histograms: Histograms,
}

/// The settings of one step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepSettings {
    /// How requests came about: `closed` for a closed loop, `constant` or `poisson` for the arrivals of an open one.
    pub arrivals: String,
    /// The planned rate of an open loop, in requests per second.
    pub planned_rate: Option<f64>,
    /// The seed of random arrivals.
    pub seed: Option<u64>,
    /// Callers, each with one request outstanding.
    pub callers: usize,
    /// Connections that the callers share, or one for each.
    pub connections: usize,
    /// Worker threads of the client.
    pub workers: usize,
    /// Whether workers were pinned to cores.
    pub pinned: bool,
    /// Whether workers polled all the time.
    pub busy_poll: bool,
    /// Which of several clients for this protocol was used: how requests were put on the wire.
    pub client: String,
    /// Bytes of payload in each request.
    pub payload_bytes: usize,
    /// Bytes of reply asked for; absent where the payload is echoed, or the server decides.
    pub response_bytes: Option<u32>,
    /// The message that requests carry; absent where they carry bytes.
    #[serde(default)]
    pub message: Option<String>,
    /// Warm-up, in seconds; found by the run itself where `auto` was asked for.
    pub warmup_seconds: f64,
    /// The window's planned length, in seconds, unless requests were counted.
    pub duration_seconds: Option<f64>,
    /// Requests asked for, unless time was.
    pub requests: Option<u64>,
    /// The most a request may take, in seconds.
    pub timeout_seconds: f64,
    /// Requests on each connection before it is opened anew; absent where connections are kept.
    pub requests_per_connection: Option<u64>,
}

/// Histograms of nanoseconds in HdrHistogram's V2 format, deflated, as base64.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Histograms {
    /// Service time of successes.
    pub service_time: String,
    /// Response time of successes, and at least the age of what is in flight.
    pub response_time: String,
    /// Lag of successes.
    pub lag: String,
    /// Service time of failures.
    pub failed_time: String,
}

impl Histograms {
    /// The file's form of what a step recorded.
    pub fn of(collected: &Totals) -> Self {
        Self {
            service_time: encode(&collected.service),
            response_time: encode(&collected.response),
            lag: encode(&collected.lag),
            failed_time: encode(&collected.failed),
        }
    }

    /// The response times as `(nanoseconds, count)`, ascending; `None` where the text is no histogram.
    pub fn response_counts(&self) -> Option<Vec<(u64, u64)>> {
        decode(&self.response_time)
            .ok()
            .map(|histogram| counts(&histogram))
    }
}

impl Run {
    /// The JSON text, with a newline at its end.
    ///
    /// # Errors
    /// Only what `serde_json` reports, which these types never cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Sees that the file can be written, by [`prepare_file`]: one that is there stays as it is.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn prepare(&self, path: &Path) -> Result<(), SaveError> {
        prepare_file(path, self.text(path)?.as_bytes())
    }

    /// Writes the file anew, by [`write_atomically`].
    ///
    /// # Errors
    /// [`SaveError`], and then the old file is as it was.
    pub fn save(&self, path: &Path) -> Result<(), SaveError> {
        write_atomically(path, self.text(path)?.as_bytes())
    }

    /// The text for the file at `path`.
    fn text(&self, path: &Path) -> Result<String, SaveError> {
        self.to_json().map_err(|error| SaveError {
            path: path.to_owned(),
            reason: error.into(),
        })
    }
}
