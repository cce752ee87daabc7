//! Runs of bulk streams.

use serde::{Deserialize, Serialize};

/// Which way the bytes of a bulk stream go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the server to the client.
    #[default]
    Down,
    /// From the client to the server.
    Up,
}

impl Direction {
    /// As it stands in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// One run of a bulk stream, on connections that were open before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkRun {
    /// From the first request to the last byte, or to the server's word that it has it, in seconds.
    pub seconds: f64,
    /// Until the first byte of the answer, in seconds.
    pub first_byte_seconds: f64,
    /// Bytes of payload that arrived.
    pub bytes: u64,
    /// Bytes of payload in the longest message; absent in files from before it was known.
    #[serde(default)]
    pub message_bytes: Option<u64>,
    /// Bytes per second, in GiB.
    pub gib_per_second: f64,
    /// CPU time of the client's process, in seconds per GiB.
    pub client_cpu_seconds_per_gib: Option<f64>,
    /// CPU time of the server's process, in seconds per GiB.
    pub server_cpu_seconds_per_gib: Option<f64>,
    /// The part of it that the kernel spent for the process, in seconds per GiB.
    #[serde(default)]
    pub server_system_seconds_per_gib: Option<f64>,
    /// CPU time of the soft interrupts of the server's machine, in seconds per GiB.
    #[serde(default)]
    pub server_softirq_seconds_per_gib: Option<f64>,
    /// The client's resident memory at the end, in bytes.
    pub client_resident_bytes: Option<u64>,
    /// The server's resident memory at the end, in bytes.
    pub server_resident_bytes: Option<u64>,
}

impl BulkRun {
    /// Returns the bytes that arrived, in GiB.
    pub fn gib(&self) -> f64 {
        self.bytes as f64 / (1_u64 << 30) as f64
    }
}
