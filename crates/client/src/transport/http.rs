//! Requests over HTTP/1.1 or HTTP/2, to any server.
//!
//! A reply is good if its status is one of those that are expected. By default the body of each
//! reply to a `GET` has to be as long as that of the first good one of the step, or of all paths
//! that are compared; its contents are read and not compared.

use std::{
    rc::Rc,
    sync::{Arc, OnceLock},
};

use http::{Request, StatusCode};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    frame,
    payload::Exchange,
    tls::{ALPN_H2, Negotiated},
};

use super::{
    Carried, Connection, Endpoint, Failure, Milestones, ReplyLength, Transport, connect,
    http1::{self, Http1},
    http2::{self, Http2},
    prepared::{Check, Prepared},
};

/// Longest body that is compared or shown, in bytes.
const LONGEST: usize = frame::DEFAULT_MAX;

/// Opens connections to an HTTP server.
#[derive(Debug, Clone)]
pub struct Http {
    endpoint: Endpoint,
    version: Version,
    head1: Request<()>,
    head2: Request<()>,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// HTTP/1.1.
    One,
    /// HTTP/2; in clear text without negotiation.
    Two,
    /// Either, as the server chooses in the TLS handshake.
    Chosen,
}

impl Http {
    /// Returns a transport that speaks `version`.
    pub(super) fn new(endpoint: Endpoint, version: Version) -> Self {
        Self {
            head1: http1::head(&endpoint.target, &endpoint.prepared),
            head2: http2::head(&endpoint.target, &endpoint.prepared),
            endpoint,
            version,
        }
    }
}

impl Transport for Http {
    type Connection = HttpHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<HttpHandle, Failure> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let agreed_on_two = stream.alpn() == Some(ALPN_H2);
        let two = match self.version {
            Version::One => false,
            Version::Two if stream.is_secure() && !agreed_on_two => {
                let detail = "the server has no HTTP/2: it did not choose h2 (ALPN)";
                return Err(Failure::lost(ErrorKind::Tls, detail));
            }
            Version::Two => true,
            Version::Chosen => agreed_on_two,
        };
        let version = if two { "HTTP/2" } else { "HTTP/1.1" };
        let negotiated = with_version(version, stream.negotiated());
        let speaker = if two {
            Speaker::Two(Http2::new(stream, self.head2.clone(), milestones).await?)
        } else {
            Speaker::One(Box::new(Http1::new(stream, self.head1.clone()).await?))
        };
        Ok(HttpHandle {
            speaker,
            negotiated,
            prepared: Arc::clone(&self.endpoint.prepared),
            length: Arc::clone(&self.endpoint.reply_length),
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug)]
pub struct HttpHandle {
    speaker: Speaker,
    negotiated: Option<Rc<Negotiated>>,
    prepared: Arc<Prepared>,
    length: ReplyLength,
}

#[derive(Debug)]
enum Speaker {
    One(Box<Http1>),
    Two(Http2),
}

impl Connection for HttpHandle {
    fn share(&self) -> Option<Self> {
        let speaker = match &self.speaker {
            Speaker::One(_) => return None,
            Speaker::Two(http2) => Speaker::Two(http2.clone()),
        };
        Some(Self {
            speaker,
            negotiated: self.negotiated.clone(),
            prepared: Arc::clone(&self.prepared),
            length: Arc::clone(&self.length),
        })
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated.as_deref().cloned()
    }

    fn is_spent(&mut self) -> bool {
        match &mut self.speaker {
            Speaker::One(http1) => http1.is_spent(),
            Speaker::Two(http2) => http2.is_spent(),
        }
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        let body = self.prepared.bodies.body(exchange);
        let mut reply = Reply::expected(&self.prepared);
        match &mut self.speaker {
            Speaker::One(http1) => http1.call(body, &mut reply).await?,
            Speaker::Two(http2) => http2.call(body, &mut reply).await?,
        }
        reply.verify(&self.prepared, &self.length)
    }
}

/// Returns what a handshake agreed on, with the version of HTTP.
pub(super) fn with_version(
    version: &str,
    negotiated: Option<Negotiated>,
) -> Option<Rc<Negotiated>> {
    let negotiated = negotiated?;
    let protocol = format!("{version}, {}", negotiated.protocol);
    Some(Rc::new(Negotiated {
        protocol,
        ..negotiated
    }))
}

/// A reply as it comes.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// The length of its body so far, in bytes.
    length: u64,
    /// Its body so far, if that is wanted.
    contents: Option<Vec<u8>>,
    /// Its body ended before it was whole.
    missing: bool,
}

impl Reply {
    /// Returns a reply of which nothing has come yet.
    pub(super) fn expected(prepared: &Prepared) -> Self {
        Self {
            contents: prepared.wants_contents().then(Vec::new),
            ..Self::default()
        }
    }

    /// Adds the next part of the body.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        if let Some(contents) = &mut self.contents {
            let room = LONGEST.saturating_sub(contents.len());
            contents.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Notes the length that the headers promised, if there is a body to have it.
    pub(super) fn ended_early(&mut self, promised: Option<u64>) {
        self.missing = promised.is_some_and(|promised| promised > self.length)
            && self.status != StatusCode::NOT_MODIFIED;
    }

    /// Verifies a whole reply. It has been read to its end, so the connection stays usable in any
    /// case.
    pub(super) fn verify(&self, prepared: &Prepared, first: &OnceLock<u64>) -> Result<(), Failure> {
        if self.missing {
            let detail = format!(
                "the reply ended after {} bytes, before it was whole",
                self.length
            );
            return Err(Failure::request(ErrorKind::Eof, detail));
        }
        let good = match &*prepared.statuses {
            [] => self.status.is_success(),
            statuses => statuses.contains(&self.status.as_u16()),
        };
        if let Some(contents) = &self.contents {
            if self.length > LONGEST as u64 {
                let detail = format!(
                    "a reply of {} bytes; only those of up to {LONGEST} are compared or shown",
                    self.length
                );
                return Err(Failure::request(ErrorKind::Mismatch, detail));
            }
            // The contents of a reply with another status are shown, and explain it.
            let examined = prepared.examine(contents);
            if good {
                return examined;
            }
        }
        if !good {
            return Err(http2::status_failure(self.status));
        }
        let has_no_body = matches!(
            self.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        if !matches!(prepared.check, Check::Form) || has_no_body {
            return Ok(());
        }
        let first = *first.get_or_init(|| self.length);
        if self.length == first {
            return Ok(());
        }
        let detail = format!(
            "a reply of {} bytes, where the first one had {first}; --expect any allows for it",
            self.length
        );
        Err(Failure::request(ErrorKind::Mismatch, detail))
    }
}
