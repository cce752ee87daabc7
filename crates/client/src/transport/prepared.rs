//! Requests to a user's own service, prepared before a run, and what their replies must be.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method, header::HOST, uri::Authority};
use netping_protocol::{pool::Pool, target::Target};
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::failure::Failure;
use crate::service::{Check, Matching};

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
    /// HTTP replies are streams of events.
    pub has_events: bool,
    /// The statuses of good HTTP replies; if empty, every success.
    pub statuses: Vec<u16>,
    /// The check of each reply's body, or of each of its messages.
    pub check: Check,
    /// The type of a reply's messages; `None`: its body is text.
    pub reply: Option<MessageDescriptor>,
    /// The fields by which replies belong to the messages of a stream; `None`: they come in the messages' order.
    pub matching: Option<Arc<Matching>>,
    /// Keeps replies; not in a run that is measured.
    pub kept: Option<Kept>,
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
        self.check.compare(contents).map_err(Failure::mismatch)
    }

    /// Shows a reply's body as the text that it is, or a message as JSON.
    pub fn show(&self, contents: &[u8]) -> String {
        let Some(kind) = &self.reply else {
            return String::from_utf8_lossy(contents).into_owned();
        };
        match DynamicMessage::decode(kind.clone(), contents) {
            Ok(message) => {
                serde_json::to_string(&message).unwrap_or_else(|error| error.to_string())
            }
            Err(error) => format!("not a {}: {error}", kind.full_name()),
        }
    }
}
