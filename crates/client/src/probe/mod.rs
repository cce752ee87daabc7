//! The resources that a server uses: read from its metrics or from the system.

pub mod metrics;
pub mod process;
pub mod reader;
