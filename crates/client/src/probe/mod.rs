//! A server's own account: the resources that it uses, read from its metrics or from the system; and the
//! protocol that it speaks.

mod counters;
pub mod http_agent;
pub mod metrics;
pub mod reader;
pub mod spoken;
