//! `GET` over HTTP/1.1 or HTTP/2, from any server.
//!
//! A reply is good if its status is a success and its body as long as that of the first good reply
//! of the step, or of all paths that are compared. The contents of the body are the server's
//! affair: they are read and not compared.

use std::{
    rc::Rc,
    sync::{Arc, OnceLock},
};

use http::StatusCode;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    payload::Exchange,
    tls::{ALPN_H2, Negotiated},
};

use super::{
    Connection, Endpoint, Failure, Milestones, ReplyLength, Transport, connect,
    http1::{self, Http1},
    http2::{self, Http2},
};

/// Opens connections to an HTTP server.
#[derive(Debug, Clone)]
pub struct Http {
    endpoint: Endpoint,
    version: Version,
    get1: http1::Get,
    get2: http2::Get,
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
            get1: http1::get(&endpoint.target),
            get2: http2::get(&endpoint.target),
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
        let negotiated = stream.negotiated().map(|negotiated| {
            let version = if two { "HTTP/2" } else { "HTTP/1.1" };
            Rc::new(Negotiated {
                protocol: format!("{version}, {}", negotiated.protocol),
                ..negotiated
            })
        });
        let speaker = if two {
            Speaker::Two(Http2::new(stream, self.get2.clone(), milestones).await?)
        } else {
            Speaker::One(Box::new(Http1::new(stream, self.get1.clone()).await?))
        };
        Ok(HttpHandle {
            speaker,
            negotiated,
            length: Arc::clone(&self.endpoint.reply_length),
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug)]
pub struct HttpHandle {
    speaker: Speaker,
    negotiated: Option<Rc<Negotiated>>,
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

    async fn call(&mut self, _: &Exchange) -> Result<(), Failure> {
        let (status, length) = match &mut self.speaker {
            Speaker::One(http1) => http1.call().await?,
            Speaker::Two(http2) => http2.call().await?,
        };
        verify(status, length, &self.length)
    }
}

/// Verifies a whole reply. It has been read to its end, so the connection stays usable in any case.
fn verify(status: StatusCode, length: u64, first: &OnceLock<u64>) -> Result<(), Failure> {
    if !status.is_success() {
        return Err(http2::status_failure(status));
    }
    let first = *first.get_or_init(|| length);
    if length == first {
        return Ok(());
    }
    let detail = format!("a reply of {length} bytes, where the first one had {first}");
    Err(Failure::request(ErrorKind::Mismatch, detail))
}
