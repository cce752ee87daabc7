//! A server's own account: the resources that it uses, read from its metrics or from the system,
//! and its time of day.

pub mod clock_offset;
pub mod http_agent;
pub mod metrics;
pub mod process;
pub mod reader;
