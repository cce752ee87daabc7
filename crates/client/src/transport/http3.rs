//! Requests over HTTP/3: callers share QUIC connections, each request on a stream of its own.

use std::{future::poll_fn, rc::Rc, sync::Arc};

use bytes::{Buf, Bytes};
use h3::{ConnectionState, client::SendRequest, error::StreamError};
use h3_quinn::OpenStreams;
use http::{Method, Request, header::CONTENT_LENGTH};
use netping_measure::error_kind::ErrorKind;

use super::{
    Failure, Milestones, Result, ServerEndpoint, Transport,
    http_reply::HttpReply,
    quic::{Quic, WINDOWS, explained},
};

/// Streams that the server opens: its control stream and the two of QPACK (RFC 9114, section 6.2),
/// and as many of kinds that are to be ignored.
const SERVER_STREAMS: u32 = 6;

/// A caller's handle on a connection.
#[derive(Clone)]
pub(super) struct Http3 {
    connection: Arc<quinn::Connection>,
    send: SendRequest<OpenStreams, Bytes>,
    /// The head of all requests.
    head: Rc<Request<()>>,
}

impl Http3 {
    /// Returns a transport for its connections.
    pub(super) fn transport(endpoint: &ServerEndpoint) -> Quic {
        Quic::with(endpoint.clone(), WINDOWS, SERVER_STREAMS)
    }

    /// Opens a connection, for requests that all have this head.
    pub(super) async fn open(
        quic: &Quic,
        head: &Request<()>,
        milestones: &mut Milestones<'_>,
    ) -> Result<Self> {
        let connected = quic.connect(milestones).await.map_err(|mut failure| {
            let has_no_h3 = failure.detail.contains("protocol")
                || matches!(failure.kind, ErrorKind::ConnectTimeout | ErrorKind::Refused);
            if has_no_h3 {
                let port = quic.endpoint.destination.url.port;
                let hint = format!("; does the server offer HTTP/3, on UDP port {port}?");
                failure.detail.push_str(&hint);
            }
            failure
        });
        let connection = connected?.connection;
        let opened = h3::client::new(h3_quinn::Connection::new(quinn::Connection::clone(
            &connection,
        )))
        .await;
        let opened = opened.map_err(|error| Failure::lost(ErrorKind::Protocol, error));
        let (mut driver, send) = explained(opened, &connection)?;
        tokio::task::spawn_local(async move {
            // Every request on the connection learns of its end by itself.
            poll_fn(|cx| driver.poll_close(cx)).await;
        });
        Ok(Self {
            connection,
            send,
            head: Rc::new(head.clone()),
        })
    }

    /// Returns true if the server has ended the connection, or asked for its end.
    pub(super) fn is_spent(&self) -> bool {
        use quinn::ConnectionError::{ApplicationClosed, ConnectionClosed};
        let end = self.connection.close_reason();
        self.send.is_closing() || matches!(end, Some(ApplicationClosed(_) | ConnectionClosed(_)))
    }

    /// Sends a request with this body, and reads the whole reply.
    pub(super) async fn call(&mut self, body: &Bytes, reply: &mut HttpReply<'_>) -> Result<()> {
        let result = self.exchange(body, reply).await;
        explained(result.map_err(Failure::from), &self.connection)
    }

    async fn exchange(
        &mut self,
        body: &Bytes,
        reply: &mut HttpReply<'_>,
    ) -> Result<(), StreamError> {
        let mut stream = self.send.send_request(Request::clone(&self.head)).await?;
        if !body.is_empty() {
            stream.send_data(body.clone()).await?;
        }
        stream.finish().await?;
        let response = stream.recv_response().await?;
        reply.status = response.status();
        let promised = response.headers().get(CONTENT_LENGTH).cloned();
        while let Some(mut part) = stream.recv_data().await? {
            while part.has_remaining() {
                let chunk = part.chunk();
                reply.add(chunk);
                let length = chunk.len();
                part.advance(length);
            }
        }
        // The reply is whole once these have come, or are known to be absent.
        stream.recv_trailers().await?;
        // The library does not compare them (RFC 9114, section 4.1.2).
        let promised = promised.and_then(|length| length.to_str().ok()?.parse().ok());
        reply.ended_early(promised.filter(|_| self.head.method() != Method::HEAD));
        Ok(())
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            // A server that wants no further requests on a connection (RFC 9114, section 5.2).
            StreamError::RemoteClosing => Self::lost(ErrorKind::Goaway, error),
            StreamError::RemoteTerminate { .. } => Self::request(ErrorKind::Reset, error),
            StreamError::HeaderTooBig { .. } => Self::request(ErrorKind::Protocol, error),
            error => Self::lost(ErrorKind::Protocol, error),
        }
    }
}
