//! The reply to an HTTP request, whatever the version.

use std::sync::OnceLock;

use http::StatusCode;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::frame;

use super::{Failure, Result, event_stream::EventStream, prepared::Prepared};
use crate::service::Check;

/// Longest body that is compared or shown, in bytes.
const LONGEST: usize = frame::DEFAULT_MAX;

/// A reply as it comes.
#[derive(Default)]
pub(super) struct HttpReply<'a> {
    /// Its status.
    pub status: StatusCode,
    /// The length of its body so far, in bytes.
    length: u64,
    /// Its body so far, if that is wanted.
    contents: Option<Vec<u8>>,
    /// Its body ended before it was whole.
    missing: bool,
    /// Its events, and what is to be done at each, if it is to have some.
    events: Option<(EventStream, &'a mut dyn FnMut())>,
    has_events: bool,
}

impl<'a> HttpReply<'a> {
    /// Returns a reply of which nothing has come yet.
    pub(super) fn expected(prepared: &Prepared) -> Self {
        Self {
            contents: prepared.wants_contents().then(Vec::new),
            ..Self::default()
        }
    }

    /// Returns one with events, at each of which `on_event` is called.
    pub(super) fn with_events(prepared: &Prepared, on_event: &'a mut dyn FnMut()) -> Self {
        Self {
            events: Some((EventStream::default(), on_event)),
            ..Self::expected(prepared)
        }
    }

    /// Returns true if each part is wanted as soon as it is there.
    pub(super) fn streams(&self) -> bool {
        self.events.is_some()
    }

    /// Adds the next part of the body.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        if let Some((events, on_event)) = &mut self.events {
            events.take(part, || {
                self.has_events = true;
                on_event();
            });
        }
        if let Some(contents) = &mut self.contents {
            let room = LONGEST.saturating_sub(contents.len());
            contents.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Returns the length of its body so far, in bytes.
    #[cfg(test)]
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Notes the length that the headers promised, if there is a body to have it.
    pub(super) fn ended_early(&mut self, promised: Option<u64>) {
        self.missing = promised.is_some_and(|promised| promised > self.length)
            && self.status != StatusCode::NOT_MODIFIED;
    }

    /// Verifies a whole reply. It has been read to its end, so the connection stays usable in any
    /// case.
    pub(super) fn verify(&self, prepared: &Prepared, first: &OnceLock<u64>) -> Result<()> {
        let length = self.length;
        if self.missing {
            let detail = format!("the reply ended after {length} bytes, before it was whole");
            return Err(Failure::request(ErrorKind::Eof, detail));
        }
        let wrong = |detail: String| Err(Failure::request(ErrorKind::Mismatch, detail));
        let good = match &*prepared.statuses {
            [] => self.status.is_success(),
            statuses => statuses.contains(&self.status.as_u16()),
        };
        if let Some(contents) = &self.contents {
            if length > LONGEST as u64 {
                return wrong(format!(
                    "a reply of {length} bytes; only those of up to {LONGEST} are compared or shown"
                ));
            }
            // The contents of a reply with another status are shown, and explain it.
            let examined = prepared.examine(contents);
            if good {
                return examined;
            }
        }
        if !good {
            return Err(status_failure(self.status));
        }
        if self.events.is_some() && !self.has_events {
            return wrong("has no events (text/event-stream)".to_owned());
        }
        let has_no_body = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&self.status);
        if !matches!(prepared.check, Check::Form) || has_no_body {
            return Ok(());
        }
        let first = *first.get_or_init(|| length);
        if length == first {
            return Ok(());
        }
        wrong(format!(
            "a reply of {length} bytes, where the first one had {first}; --expect any allows for it"
        ))
    }
}

/// Returns the failure of a request that was answered with this HTTP status.
pub(crate) fn status_failure(status: StatusCode) -> Failure {
    let kind = ErrorKind::Http(status.as_u16());
    Failure::request(kind, format!("HTTP status {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_as_long_as_the_first_good_one() {
        let (prepared, first) = (Prepared::default(), OnceLock::new());
        let verify = |status, body: &[u8]| {
            let mut reply = HttpReply::expected(&prepared);
            reply.status = status;
            reply.add(body);
            let result = reply.verify(&prepared, &first);
            result.map_err(|failure| failure.kind)
        };
        let failed = verify(StatusCode::NOT_FOUND, b"no such page");
        assert_eq!(failed, Err(ErrorKind::Http(404)));
        for (body, expected) in [
            (&b"abc"[..], Ok(())),
            (b"xyz", Ok(())),
            (b"ab", Err(ErrorKind::Mismatch)),
            (b"abcd", Err(ErrorKind::Mismatch)),
        ] {
            assert_eq!(verify(StatusCode::OK, body), expected);
        }
    }
}
