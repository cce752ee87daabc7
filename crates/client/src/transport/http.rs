//! Requests over HTTP/1.1 or HTTP/2, to any server.
//!
//! A reply is good if its status is one of those that are expected. By default the body of each
//! reply to a `GET` has to be as long as that of the first good one of the step, or of all paths
//! that are compared; its contents are read and not compared.

use std::{rc::Rc, sync::Arc};

use http::Request;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{payload::Exchange, tls::ALPN_H2};

use super::{
    Carried, Connection, Failure, Milestones, ServerEndpoint, Transport, connect,
    http_reply::HttpReply,
    http1::{self, Http1},
    http2::{self, Http2},
};

/// Opens connections to an HTTP server.
#[derive(Debug, Clone)]
pub struct Http {
    endpoint: Arc<ServerEndpoint>,
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
    pub(super) fn new(endpoint: ServerEndpoint, version: Version) -> Self {
        Self {
            head1: http1::head(&endpoint.destination),
            head2: http2::head(&endpoint.destination),
            endpoint: Arc::new(endpoint),
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
        note_version(milestones, if two { "HTTP/2" } else { "HTTP/1.1" });
        let speaker = if two {
            let send = http2::handshake(stream, milestones).await?;
            let head = Rc::new(self.head2.clone());
            Speaker::Two(Http2 { send, head })
        } else {
            Speaker::One(Box::new(Http1::new(stream, self.head1.clone()).await?))
        };
        Ok(HttpHandle {
            speaker,
            endpoint: Arc::clone(&self.endpoint),
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug)]
pub struct HttpHandle {
    speaker: Speaker,
    endpoint: Arc<ServerEndpoint>,
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
            endpoint: Arc::clone(&self.endpoint),
        })
    }

    fn is_spent(&mut self) -> bool {
        match &mut self.speaker {
            Speaker::One(http1) => http1.is_spent(),
            Speaker::Two(two) => http2::is_spent(&mut two.send),
        }
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        let prepared = &self.endpoint.destination.prepared;
        let body = prepared.bodies.body(exchange);
        let mut reply = HttpReply::expected(prepared);
        match &mut self.speaker {
            Speaker::One(http1) => http1.call(body, &mut reply).await?,
            Speaker::Two(http2) => http2.call(body, &mut reply).await?,
        }
        reply.verify(prepared, &self.endpoint.reply_length)
    }
}

/// Adds the version of HTTP to what a handshake agreed on.
pub(super) fn note_version(milestones: &mut Milestones<'_>, version: &str) {
    if let Some(negotiated) = &mut milestones.negotiated {
        negotiated.protocol = format!("{version}, {}", negotiated.protocol);
    }
}
