//! The memory that the calls of a connection may hold.

use std::sync::Arc;

use netping_serving::{Chassis, reply_memory::MAX_MEMORY};
use tonic::Status;

use crate::long_work::LongWork;

/// The limits of all connections of a server.
#[derive(Debug)]
pub(crate) struct Limits {
    pub chassis: Arc<Chassis>,
    pub long_work: LongWork,
    /// Most that the calls of a connection may hold besides reserved replies, in bytes.
    pub most_held: u64,
}

impl Limits {
    /// Refuses a call if those of its connection hold so many bytes.
    pub(crate) fn check(&self, held: u64) -> Result<(), Status> {
        if held <= self.most_held {
            return Ok(());
        }
        self.chassis.count_error(MAX_MEMORY);
        let much = "the connection's calls hold more than the server's --max-held";
        Err(Status::resource_exhausted(much))
    }
}
