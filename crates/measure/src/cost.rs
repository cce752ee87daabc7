//! Resources that a step used.

use serde::{Deserialize, Serialize};

impl Cost {
    /// Returns the CPU time of the server for each request, in microseconds.
    pub fn server_cpu_us_per_request(&self) -> Option<f64> {
        self.server.as_ref()?.cpu_us_per_request
    }
}

/// The resources that a step used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// CPU time of each of the client's workers over the window, in seconds.
    pub client_worker_cpu_seconds: Vec<f64>,
    /// CPU time of all workers for each request that counts, in microseconds.
    pub client_cpu_us_per_request: Option<f64>,
    /// The server's demand; absent where its counters could not be read.
    pub server: Option<ServerDemand>,
}

/// The service demand: resources that the server's process used during the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerDemand {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// CPU time for each request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Context switches for each request.
    pub context_switches_per_request: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: Option<u64>,
}
