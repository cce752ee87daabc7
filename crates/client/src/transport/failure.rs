//! Failures of requests and connections.

use std::fmt;

use netping_measure::error_kind::ErrorKind;
use netping_results::format::on_one_line;

/// The result of what may fail with a [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    /// The kind that it is counted as.
    pub kind: ErrorKind,
    /// A description for people, of one line whatever a peer sent.
    pub detail: String,
    /// The connection is unusable.
    pub lost: bool,
    /// The server says that it has not processed the request, which may be sent again.
    pub unprocessed: bool,
}

impl Failure {
    /// Returns a failure that ends the connection.
    pub fn lost(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        let mut failure = Self::request(kind, detail);
        failure.lost = true;
        failure
    }

    /// Returns the failure of a whole reply that is not the right one: "the reply {what}".
    pub fn mismatch(what: impl fmt::Display) -> Self {
        Self::request(ErrorKind::Mismatch, format!("the reply {what}"))
    }

    /// Returns a failure of one request that leaves the connection usable.
    pub fn request(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: on_one_line(&detail.to_string()),
            lost: false,
            unprocessed: false,
        }
    }

    /// Says that the server has not processed the request.
    #[must_use]
    pub(crate) fn unprocessed(mut self) -> Self {
        self.unprocessed = true;
        self
    }

    /// Says where it happened.
    #[must_use]
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.detail = format!("{place}: {}", self.detail);
        self
    }
}
