//! Requests of HTTP/1.1 as bytes.

use std::io::{IoSlice, Write as _};

use http::{
    HeaderMap, HeaderValue, Method,
    header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING},
};

use crate::plan::Destination;

/// Longest body that is copied behind its head, to be written with it at once. To copy a longer one costs
/// more than to write from two places.
const LONGEST_COPIED: usize = 16 << 10;

/// The end of a chunked body.
const CHUNKS_END: &[u8] = b"\r\n0\r\n\r\n";

/// The head of all requests to a resource.
#[derive(Debug)]
pub(in super::super) struct RequestHead {
    /// The request line and the headers that do not depend on the body.
    bytes: Vec<u8>,
    method: Method,
    framing: Framing,
    is_last: bool,
}

/// The delimitation of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Their length, if there is a body.
    LengthOfBody,
    /// Their length in any case.
    Length,
    /// One chunk, since the user gave a `Transfer-Encoding`.
    Chunked,
}

impl RequestHead {
    /// Returns the head of the requests to the resource that the destination names.
    pub(in super::super) fn new(destination: &Destination) -> Self {
        let (target, prepared) = (&destination.url, &destination.prepared);
        let method = prepared.method.clone();
        let host = HeaderValue::from_str(&target.authority());
        let mut headers: HeaderMap = host.into_iter().map(|host| (HOST, host)).collect();
        // The user's `Host` replaces the target's.
        headers.extend(prepared.headers.clone());

        // A wrong length would make the rest of the body the next request.
        let has_length = headers.remove(CONTENT_LENGTH).is_some();
        // Servers expect bodies of these (RFC 9110, section 8.6).
        let takes_body = [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        let is_chunked = headers.contains_key(TRANSFER_ENCODING);
        if is_chunked && !ends_in(&headers, "chunked") {
            headers.append(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let framing = match (is_chunked, has_length || takes_body) {
            (true, _) => Framing::Chunked,
            (false, true) => Framing::Length,
            (false, false) => Framing::LengthOfBody,
        };

        let mut bytes = format!("{method} {} HTTP/1.1\r\n", target.path).into_bytes();
        for (name, value) in &headers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        Self {
            bytes,
            method,
            framing,
            is_last: closes(&headers),
        }
    }

    /// Returns the method.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns true if the request asks the server to close the connection after its reply.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }
}

/// Returns true if the last transfer coding is this one.
fn ends_in(headers: &HeaderMap, coding: &str) -> bool {
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
    let last = last.and_then(|value| value.to_str().ok()?.rsplit(',').next());
    last.is_some_and(|last| last.trim().eq_ignore_ascii_case(coding))
}

/// Returns true if the headers say that the connection ends.
fn closes(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter();
    let mut tokens = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The head, and a body that is copied.
    copied: Vec<u8>,
    /// The bytes after a body that is not copied.
    tail: &'static [u8],
    /// The body is one that is copied.
    is_copied: bool,
    /// Bytes that have been written.
    written: usize,
    /// All bytes.
    length: usize,
}

impl Outgoing {
    /// Returns a place for requests that begin with this head.
    pub(super) fn new(head: &RequestHead) -> Self {
        Self {
            copied: head.bytes.clone(),
            tail: b"",
            is_copied: true,
            written: 0,
            length: 0,
        }
    }

    /// Begins the next request: that with this body.
    pub(super) fn begin(&mut self, head: &RequestHead, body: &[u8]) {
        let copied = &mut self.copied;
        copied.truncate(head.bytes.len());
        let tail = match head.framing {
            Framing::LengthOfBody if body.is_empty() => {
                copied.extend_from_slice(b"\r\n");
                &b""[..]
            }
            Framing::LengthOfBody | Framing::Length => {
                // A vector takes all that is written to it.
                let _ = write!(copied, "content-length: {}\r\n\r\n", body.len());
                b""
            }
            // A chunk of no length would be the last.
            Framing::Chunked if body.is_empty() => {
                copied.extend_from_slice(b"\r\n0\r\n\r\n");
                b""
            }
            Framing::Chunked => {
                let _ = write!(copied, "\r\n{:x}\r\n", body.len());
                CHUNKS_END
            }
        };
        self.is_copied = body.len() <= LONGEST_COPIED;
        if self.is_copied {
            copied.extend_from_slice(body);
            copied.extend_from_slice(tail);
            self.length = copied.len();
        } else {
            self.length = copied.len() + body.len() + tail.len();
        }
        self.tail = tail;
        self.written = 0;
    }

    /// Returns what is left to be written, if it is in one place.
    pub(super) fn in_one_place(&self) -> Option<&[u8]> {
        self.is_copied.then(|| &self.copied[self.written..])
    }

    /// Returns all places of a request with a body that is not copied; those that have been written are empty.
    pub(super) fn places<'a>(&'a self, body: &'a [u8]) -> [IoSlice<'a>; 3] {
        let mut written = self.written;
        [&self.copied, body, self.tail].map(|place: &[u8]| {
            let from = written.min(place.len());
            written -= from;
            IoSlice::new(&place[from..])
        })
    }

    /// Notes that so many bytes more have been written.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Returns true if nothing is left.
    pub(super) fn is_written(&self) -> bool {
        self.written == self.length
    }
}
