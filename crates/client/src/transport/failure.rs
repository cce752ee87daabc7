//! Failures of requests and connections.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use netping_measure::error_kind::ErrorKind;
use netping_results::format::on_one_line;

/// The result of what may fail with a [`Failure`].
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The failure of a request.
///
/// It is one pointer: so the outcome of a request, which succeeds as a rule, goes from caller to caller in a
/// register, and not through memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.detail)]
pub struct Failure(Box<FailureParts>);

/// The parts of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureParts {
    /// The kind that it is counted as.
    pub kind: ErrorKind,
    /// A description for people, of one line whatever a peer sent.
    pub detail: String,
    /// The connection is unusable.
    pub lost: bool,
    /// The server says that it has not processed the request, which may be sent again.
    pub unprocessed: bool,
}

impl Deref for Failure {
    type Target = FailureParts;

    fn deref(&self) -> &FailureParts {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut FailureParts {
        &mut self.0
    }
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
        Self(Box::new(FailureParts {
            kind,
            detail: on_one_line(&detail.to_string()),
            lost: false,
            unprocessed: false,
        }))
    }

    /// Returns the description alone.
    pub fn into_detail(self) -> String {
        self.0.detail
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
