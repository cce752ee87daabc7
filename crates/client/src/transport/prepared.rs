//! Requests to a user's own service, prepared before a run, and what their replies must be.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method, header::HOST, uri::Authority};
use netping_protocol::{pool::Pool, target::Target};

use super::failure::Failure;
use crate::service::{ExpectedFields, compare_bodies};

/// Requests that differ only in their bodies, and the check of their replies. By default they are
/// HTTP's `GET`.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The method of HTTP requests.
    pub method: Method,
    /// Headers beside those that the protocol needs; metadata in gRPC.
    pub headers: HeaderMap,
    /// Bodies of HTTP requests; the messages of gRPC calls, each with its prefix.
    pub bodies: Pool,
    /// A hash of the data that the bodies were made from; `None` without data.
    pub data_hash: Option<u64>,
    /// The time limit that a gRPC server is told.
    pub deadline: Option<Duration>,
    /// A gRPC call takes any number of messages; otherwise one.
    pub streams_requests: bool,
    /// A gRPC reply has any number of messages; otherwise one.
    pub streams_replies: bool,
    /// The statuses of good HTTP replies; if empty, every success.
    pub statuses: Vec<u16>,
    /// The check of each reply's body, or of each of its messages.
    pub check: Check,
    /// Shows a reply's contents as text.
    pub show: Show,
    /// Keeps replies; not in a run that is measured.
    pub kept: Option<Kept>,
}

/// Shows a reply's body or message as text; by default, as the text that it is.
#[derive(Clone)]
pub struct Show(pub Arc<Text>);

/// Returns contents as text.
pub type Text = dyn Fn(&[u8]) -> String + Send + Sync;

impl Default for Show {
    fn default() -> Self {
        Self(Arc::new(|body| String::from_utf8_lossy(body).into_owned()))
    }
}

impl fmt::Debug for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Show")
    }
}

/// The check of a reply's body or message.
#[derive(Debug, Clone, Default)]
pub enum Check {
    /// A body is as long as that of the first good reply; a message is well-formed.
    #[default]
    Form,
    /// A body may be of any length; a message is well-formed.
    Any,
    /// A body is the same.
    Body(Vec<u8>),
    /// A message has the same fields.
    Fields(ExpectedFields),
}

impl Check {
    /// Returns true if contents are compared.
    pub fn has_contents(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Fields(_))
    }
}

/// The replies to the first requests, which are kept to be shown.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The number of requests.
    pub requests: u64,
    replies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Kept {
    /// Keeps nothing yet, but will for this number of requests.
    pub fn new(requests: u64) -> Self {
        let replies = Arc::default();
        Self { requests, replies }
    }

    fn keep(&self, contents: &[u8]) {
        let mut kept = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(contents.to_vec());
    }

    /// Returns the contents kept so far, and forgets them.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.replies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Prepared {
    /// Returns the authority and the headers of requests over HTTP/2 and HTTP/3, where a `Host` is the
    /// authority (RFC 9113, section 8.3.1).
    pub(super) fn for_http2(&self, target: &Target) -> (String, HeaderMap) {
        let mut headers = self.headers.clone();
        let host = headers.remove(HOST);
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let authority = host.map_or_else(|| target.authority(), |host| host.to_string());
        (authority, headers)
    }

    /// Returns true if a transport has to collect a reply's contents.
    pub fn wants_contents(&self) -> bool {
        self.kept.is_some() || self.check.has_contents()
    }

    /// Keeps and compares the contents of a body or message, as the user wishes.
    ///
    /// # Errors
    /// A failure of kind [`ErrorKind::Mismatch`](netping_measure::error_kind::ErrorKind::Mismatch).
    pub fn examine(&self, contents: &[u8]) -> Result<(), Failure> {
        if let Some(kept) = &self.kept {
            kept.keep(contents);
        }
        let compared = match &self.check {
            Check::Form | Check::Any => Ok(()),
            Check::Body(expected) => compare_bodies(expected, contents),
            Check::Fields(expected) => expected.compare(contents),
        };
        compared.map_err(Failure::mismatch)
    }
}
