//! The limits that all calls of a server share, and the status of a call that gets no more memory.

use std::sync::Arc;

use netping_serving::{Chassis, Full};
use tonic::Status;

use crate::long_work::LongWork;

/// The limits of all connections of a server.
#[derive(Debug)]
pub(crate) struct Limits {
    pub chassis: Arc<Chassis>,
    pub long_work: LongWork,
}

/// Returns the status of a call that gets no more memory.
pub(crate) fn exhausted(full: Full) -> Status {
    Status::resource_exhausted(match full {
        Full::Process => "the server's --max-memory is reached",
        Full::Connection => "the connection holds more than the server's --max-held",
    })
}
