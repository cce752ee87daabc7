//! A server's own account: the resources that it uses, read from its metrics or from the system.

mod counters;
pub mod http_agent;
pub mod metrics;
pub mod reader;
