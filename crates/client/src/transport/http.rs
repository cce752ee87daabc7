//! Requests over HTTP, to any server.
//!
//! A reply is good if its status is one of those that are expected. By default the body of each
//! reply to a `GET` has to be as long as that of the first good one of the step, or of all paths
//! that are compared; its contents are read and not compared.

use std::{rc::Rc, sync::Arc};

use http::Request;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{payload::Exchange, tls::ALPN_H2};

use super::{
    Carried, Connection, Failure, Milestones, QuicPaths, Result, ServerEndpoint, Transport,
    connect,
    http_reply::HttpReply,
    http1::{self, Http1},
    http2::{self, Http2},
    http3::Http3,
    quic::Quic,
};

/// Opens connections to an HTTP server.
#[derive(Debug, Clone)]
pub struct Http {
    endpoint: Arc<ServerEndpoint>,
    version: Version,
    /// For HTTP/3.
    quic: Option<Quic>,
    /// The head of requests over HTTP/1.1.
    head1: Arc<http1::RequestHead>,
    /// The head of requests over HTTP/2 and HTTP/3.
    head2: Request<()>,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// HTTP/1.1.
    One,
    /// HTTP/2; in clear text without negotiation.
    Two,
    /// HTTP/3, over QUIC.
    Three,
    /// One of the first two, as the server chooses in the TLS handshake.
    Chosen,
}

impl Http {
    /// Returns a transport that speaks `version`.
    pub(super) fn new(endpoint: ServerEndpoint, version: Version) -> Self {
        Self {
            head1: Arc::new(http1::RequestHead::new(&endpoint.destination)),
            head2: http2::head(&endpoint.destination),
            quic: (version == Version::Three).then(|| Http3::transport(&endpoint)),
            endpoint: Arc::new(endpoint),
            version,
        }
    }

    async fn over_tcp(&self, milestones: &mut Milestones<'_>) -> Result<Speaker> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let agreed_on_two = stream.alpn() == Some(ALPN_H2);
        let two = match self.version {
            Version::One => false,
            Version::Two if stream.is_secure() && !agreed_on_two => {
                let detail = "the server has no HTTP/2: it did not choose h2 (ALPN)";
                return Err(Failure::lost(ErrorKind::Tls, detail));
            }
            Version::Two => true,
            Version::Three | Version::Chosen => agreed_on_two,
        };
        Ok(if two {
            let connection = http2::handshake(stream, milestones).await?;
            let head = Rc::new(http2::prepare(&self.head2));
            Speaker::Two(Http2 { connection, head })
        } else {
            Speaker::One(Box::new(Http1::new(stream, Arc::clone(&self.head1))))
        })
    }
}

impl Transport for Http {
    type Connection = HttpHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<HttpHandle> {
        let speaker = match &self.quic {
            Some(quic) => Speaker::Three(Http3::open(quic, &self.head2, milestones).await?),
            None => self.over_tcp(milestones).await?,
        };
        if let Some(negotiated) = &mut milestones.negotiated {
            let version = match speaker {
                Speaker::One(_) => "HTTP/1.1",
                Speaker::Two(_) => "HTTP/2",
                Speaker::Three(_) => "HTTP/3",
            };
            negotiated.protocol = format!("{version}, {}", negotiated.protocol);
        }
        Ok(HttpHandle {
            speaker,
            endpoint: Arc::clone(&self.endpoint),
        })
    }

    fn quic_paths(&self) -> Option<&QuicPaths> {
        self.quic.as_ref()?.quic_paths()
    }

    fn last_words(&self) -> impl Future<Output = ()> + use<> {
        let words = self.quic.as_ref().map(Quic::last_words);
        async {
            if let Some(words) = words {
                words.await;
            }
        }
    }
}

/// A caller's handle on a connection.
pub struct HttpHandle {
    speaker: Speaker,
    endpoint: Arc<ServerEndpoint>,
}

enum Speaker {
    One(Box<Http1>),
    Two(Http2),
    Three(Http3),
}

impl Connection for HttpHandle {
    fn share(&self) -> Option<Self> {
        let speaker = match &self.speaker {
            Speaker::One(_) => return None,
            Speaker::Two(http2) => Speaker::Two(http2.share()),
            Speaker::Three(http3) => Speaker::Three(http3.clone()),
        };
        Some(Self {
            speaker,
            endpoint: Arc::clone(&self.endpoint),
        })
    }

    fn is_spent(&mut self) -> bool {
        match &mut self.speaker {
            Speaker::One(http1) => http1.is_spent(),
            Speaker::Two(http2) => http2.connection.is_spent(),
            Speaker::Three(http3) => http3.is_spent(),
        }
    }

    async fn call(&mut self, exchange: &Exchange, carried: &mut Carried<'_>) -> Result<()> {
        let prepared = &self.endpoint.destination.prepared;
        let body = prepared.bodies.body(exchange);
        let mut on_event = || carried.receive();
        let mut reply = if prepared.has_events {
            HttpReply::with_events(prepared, &mut on_event)
        } else {
            HttpReply::expected(prepared)
        };
        match &mut self.speaker {
            Speaker::One(http1) => http1.call(body, &mut reply).await?,
            Speaker::Two(http2) => http2.call(body, &mut reply).await?,
            Speaker::Three(http3) => http3.call(body, &mut reply).await?,
        }
        reply.verify(prepared, &self.endpoint.reply_length)
    }
}
