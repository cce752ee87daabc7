//! Bulk streams: how fast many bytes go one way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{compare::Estimate, connect::Security, doubt::Doubt, error_kind::ErrorKind, run::Status};

/// One measurement of a bulk stream: one target with one set of settings, and each of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkStep {
    /// The target's URL.
    pub target: String,
    /// Whether all of its runs were made.
    pub status: Status,
    /// What was asked for.
    pub settings: BulkSettings,
    /// The runs in which every byte arrived, in their order.
    pub runs: Vec<BulkRun>,
    /// What the runs come to; absent without one.
    pub summary: Option<BulkSummary>,
    /// Runs that failed, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// How its connections were secured; absent in the clear.
    pub security: Option<Security>,
    /// Why its numbers may mislead; empty: no doubt is known.
    pub doubts: Vec<Doubt>,
}

/// The settings of one bulk measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkSettings {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Bytes of each run, over all streams.
    pub size_bytes: u64,
    /// Bytes of each message.
    pub chunk_bytes: u64,
    /// Streams side by side.
    pub streams: usize,
    /// The flow-control window of each stream, in bytes; absent where the transport has none, or its own is kept.
    pub window_bytes: Option<u64>,
    /// The largest HTTP/2 frame that is taken, in bytes; absent where the transport has none, or its own is kept.
    pub frame_bytes: Option<u64>,
    /// Whether every byte was compared.
    pub verify: bool,
}

/// Which way the bytes of a bulk stream go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// One run of a bulk stream, on connections that were open before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BulkRun {
    /// From the first request to the last byte, or to the server's word that it has it, in seconds.
    pub seconds: f64,
    /// Until the first byte of the answer, in seconds.
    pub first_byte_seconds: f64,
    /// Bytes of payload that arrived.
    pub bytes: u64,
    /// Bytes per second, in GiB.
    pub gib_per_second: f64,
    /// CPU time of the client's process, in seconds per GiB.
    pub client_cpu_seconds_per_gib: Option<f64>,
    /// CPU time of the server's process, in seconds per GiB.
    pub server_cpu_seconds_per_gib: Option<f64>,
    /// The client's resident memory at the end, in bytes.
    pub client_resident_bytes: Option<u64>,
    /// The server's resident memory at the end, in bytes.
    pub server_resident_bytes: Option<u64>,
}

/// What the runs of a bulk measurement come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BulkSummary {
    /// GiB/s: the mean of the runs with its 95 % interval.
    pub gib_per_second: Estimate,
    /// The standard deviation of the runs' GiB/s; absent with fewer than two.
    pub sd: Option<f64>,
    /// The median of the times to the first byte, in seconds.
    pub first_byte_seconds: f64,
    /// Mean CPU time of the client, in seconds per GiB.
    pub client_cpu_seconds_per_gib: Option<f64>,
    /// Mean CPU time of the server, in seconds per GiB.
    pub server_cpu_seconds_per_gib: Option<f64>,
}
