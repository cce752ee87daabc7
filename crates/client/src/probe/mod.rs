//! Reads what the server used: its metrics, or its process.

pub mod metrics;
pub mod process;
