//! The status of a call that gets no more memory.

use netping_serving::Full;
use tonic::Status;

/// Returns the status of a call that gets no more memory.
pub(crate) fn exhausted(full: Full) -> Status {
    Status::resource_exhausted(match full {
        Full::Process => "the server's --max-memory is reached",
        Full::Connection => "the connection holds more than the server's --max-held",
    })
}
