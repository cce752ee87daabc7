//! Errors of the `h2` crate, which tonic and the bulk transfers use.

use std::io;

use h2::Reason;
use netping_measure::error_kind::ErrorKind;

use super::{Failure, connect, http2::closed};

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        failure(&error)
    }
}

/// Classifies an error of the library, which ends connections with GOAWAY too on which the peer breaks
/// the protocol.
pub(super) fn failure(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return io_failure(io);
    }
    if is_goodbye(error) {
        return Failure::lost(ErrorKind::Goaway, error);
    }
    if error.is_reset() && error.is_remote() {
        return Failure::request(ErrorKind::Reset, error);
    }
    Failure::lost(ErrorKind::Protocol, error)
}

/// Classifies an I/O error of the library, which calls a connection that has ended a broken pipe.
/// One that is really broken had been closed by the server before.
fn io_failure(error: &io::Error) -> Failure {
    if is_end(error) {
        return closed();
    }
    connect::io_failure(error)
}

fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, UnexpectedEof};
    // The codec's words for an end within a frame, which has no kind.
    let is_cut = || error.to_string() == "bytes remaining on stream";
    matches!(error.kind(), BrokenPipe | UnexpectedEof) || is_cut()
}

/// Returns true for the server's GOAWAY. The library reports one too when no stream is left, and
/// with another reason if the peer does not speak HTTP/2.
fn is_goodbye(error: &h2::Error) -> bool {
    error.is_go_away() && (error.is_remote() || error.reason() == Some(Reason::NO_ERROR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_was_reset_is_not_at_its_end() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!is_end(&reset));
        assert_eq!(io_failure(&reset).kind, ErrorKind::Reset);
    }
}
