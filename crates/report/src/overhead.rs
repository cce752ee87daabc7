//! What a proxy adds to the direct path.

use serde::{Deserialize, Serialize};

/// One measure of the response time by way of a proxy, against the direct path. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// The proxy's name.
    pub via: String,
    /// The planned rate, in requests per second; absent where as much was asked for as goes.
    pub planned_rate: Option<f64>,
    /// Which measure: `p50`, `p99.99`, `max`, `tm99.9`, `sd` and so on.
    pub measure: String,
    /// Its value on the direct path: the mean of the trials.
    pub direct_us: f64,
    /// Its value by way of the proxy: the mean of the trials.
    pub via_us: f64,
    /// What the proxy adds: the second less the first.
    pub added_us: f64,
    /// The 95 % confidence interval of that; absent with one trial.
    pub interval_us: Option<[f64; 2]>,
    /// The probability of a difference at least as large by chance alone; absent with one trial.
    pub p_value: Option<f64>,
}
