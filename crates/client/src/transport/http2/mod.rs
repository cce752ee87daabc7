//! HTTP/2 connections, for gRPC and for plain requests; and the latter.

mod call;
mod connection;
mod handle;
mod reader;
mod stream;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use bytes::Bytes;
use http::{Request, StatusCode, Version};
use netping_http2::{
    Config,
    client::Body,
    fields::Fields,
    head::{Head, Target},
};
use netping_measure::connect::ConnectPhase;

pub(crate) use self::{
    call::closed, connection::Io, handle::Handle, reader::Reader, stream::Streaming,
};
use super::{Milestones, Result, http_reply::HttpReply, socket::Stream};
use crate::plan::Destination;

/// Flow-control windows, in bytes: large enough never to hold a reply back.
pub(crate) const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Longest piece of a request that is copied to be sent, in bytes.
pub(super) const SHORT: usize = 64 << 10;

/// Opens HTTP/2 on a stream, and notes the time.
pub(crate) async fn handshake(stream: Stream, milestones: &mut Milestones<'_>) -> Result<Handle> {
    let config = Config {
        stream_window: STREAM_WINDOW,
        connection_window: CONNECTION_WINDOW,
        ..Config::default()
    };
    let handle = Handle::open(stream, config).await?;
    milestones.reached(ConnectPhase::Http2);
    Ok(handle)
}

/// Returns the head of the requests to the resource that the destination names.
pub(super) fn head(destination: &Destination) -> Request<()> {
    let (target, prepared) = (&destination.url, &destination.prepared);
    let (authority, headers) = prepared.for_http2(target);
    let (scheme, path) = (target.scheme.as_str(), &target.path);
    let head = Request::builder()
        .method(prepared.method.clone())
        .version(Version::HTTP_2)
        .uri(format!("{scheme}://{authority}{path}"));
    // A target's parts are always valid in a URI.
    let mut head = head.body(()).unwrap_or_default();
    *head.headers_mut() = headers;
    head
}

/// Prepares a head to be sent.
pub(crate) fn prepare(request: &Request<()>) -> Head {
    let uri = request.uri();
    let target = Target {
        method: request.method().as_str(),
        scheme: uri.scheme_str().unwrap_or_default(),
        authority: uri.authority().map_or("", |authority| authority.as_str()),
        path: uri.path_and_query().map_or("/", |path| path.as_str()),
    };
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    Head::new(target, headers)
}

/// A caller's handle on a connection, for plain requests.
pub(super) struct Http2 {
    pub(super) connection: Handle,
    /// The head of all requests.
    pub(super) head: Rc<Head>,
}

impl Http2 {
    /// Returns another handle on the same connection.
    pub(super) fn share(&self) -> Self {
        Self {
            connection: self.connection.share(),
            head: Rc::clone(&self.head),
        }
    }

    /// Sends a request with this body, and reads the whole reply.
    pub(super) async fn call(&mut self, body: &Bytes, reply: &mut HttpReply<'_>) -> Result<()> {
        self.connection
            .call(&self.head, Body::Shared(body), reply)
            .await
    }
}

impl Reader for HttpReply<'_> {
    fn streams(&self) -> bool {
        self.streams()
    }

    fn head(&mut self, head: &Fields) -> Result<()> {
        self.status = status(head);
        Ok(())
    }

    fn data(&mut self, data: &[u8]) -> Result<()> {
        self.add(data);
        Ok(())
    }

    fn end(&mut self, _: &Fields) -> Result<()> {
        Ok(())
    }
}

/// Returns the status in a reply's head, which always has one of three digits.
pub(super) fn status(head: &Fields) -> StatusCode {
    let status = head
        .status()
        .and_then(|status| StatusCode::from_u16(status).ok());
    status.unwrap_or_default()
}
