//! gRPC by driving HTTP/2 directly: the parts of the protocol that a load generator needs.
//!
//! Messages and trailers follow "gRPC over HTTP2" (the gRPC project's PROTOCOL-HTTP2 document).

use std::{future::poll_fn, rc::Rc};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{RecvStream, client::SendRequest};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    echopb::{EchoRequest, EchoResponse},
    frame::Reply,
    hello::BenchmarkMessage,
    payload::Exchange,
    secure::Connector,
    tls::Negotiated,
};
use percent_encoding::percent_decode;
use prost::{
    Message,
    encoding::{encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::{
    connect,
    connection::{Carried, Connection, Milestones, Transport},
    endpoint::Endpoint,
    failure::Failure,
    http_reply::status_failure,
    http2,
};

/// Length of a gRPC message's prefix: a flag byte and a length of four bytes.
pub(crate) const PREFIX: usize = 5;

/// Limit on the bytes of a reply beyond the expected ones.
const MARGIN: usize = 64 << 10;

/// Opens HTTP/2 connections.
#[derive(Debug, Clone)]
pub struct GrpcH2 {
    endpoint: Endpoint,
    /// Head of every request for an echo.
    echo: Request<()>,
    /// Head of every request with a message.
    say: Request<()>,
}

impl GrpcH2 {
    /// Returns a transport that calls `echopb.Echo/Echo`, or `pb.Hello/Say` with messages.
    pub fn new(endpoint: Endpoint) -> Self {
        let [echo, say] =
            ["/echopb.Echo/Echo", "/pb.Hello/Say"].map(|method| head(&endpoint, method));
        Self {
            endpoint,
            echo,
            say,
        }
    }
}

/// Returns the head of a request that calls `method`.
pub(crate) fn head(endpoint: &Endpoint, method: &str) -> Request<()> {
    head_at(endpoint, &endpoint.target.authority(), method)
}

/// Does the same with another authority than the target's.
pub(super) fn head_at(endpoint: &Endpoint, authority: &str, method: &str) -> Request<()> {
    let mut head = Request::new(());
    let scheme = match endpoint.connector {
        Connector::Plain => "http",
        Connector::Tls(..) | Connector::Psk(_) => "https",
    };
    let uri = format!("{scheme}://{authority}{method}");
    *head.method_mut() = Method::POST;
    *head.version_mut() = Version::HTTP_2;
    // A target's host and port are always a valid authority.
    *head.uri_mut() = uri.parse().unwrap_or_else(|_| Uri::from_static("/"));
    head.headers_mut()
        .insert(http::header::TE, HeaderValue::from_static("trailers"));
    let grpc = HeaderValue::from_static("application/grpc");
    head.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    head
}

impl Transport for GrpcH2 {
    type Connection = H2Handle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<H2Handle, Failure> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let negotiated = stream.negotiated();
        let send = http2::handshake(stream, milestones).await?;
        Ok(H2Handle {
            send,
            echo: self.echo.clone(),
            say: self.say.clone(),
            negotiated: negotiated.map(Rc::new),
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug, Clone)]
pub struct H2Handle {
    send: SendRequest<Bytes>,
    echo: Request<()>,
    say: Request<()>,
    negotiated: Option<Rc<Negotiated>>,
}

impl Connection for H2Handle {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated.as_deref().cloned()
    }

    fn is_spent(&mut self) -> bool {
        http2::is_spent(&mut self.send)
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        poll_fn(|cx| self.send.poll_ready(cx)).await?;
        let head = exchange.message().map_or(&self.echo, |_| &self.say);
        let (response, mut stream) = self.send.send_request(head.clone(), false)?;
        stream.send_data(encode(exchange), true)?;

        let response = response.await?;
        if response.status() != StatusCode::OK {
            return Err(status_failure(response.status()));
        }
        let (head, mut body) = response.into_parts();
        let message = read(&mut body, exchange.reply_length() + MARGIN).await?;
        check_end(&head.headers, &mut body).await?;
        verify(exchange, &message)
    }
}

/// Encodes the request's message with its prefix.
fn encode(exchange: &Exchange) -> Bytes {
    if let Some(message) = exchange.message() {
        return prefixed(message);
    }
    let payload = exchange.payload();
    if matches!(exchange.reply(), Reply::Bytes(1..)) || payload.is_empty() {
        return prefixed(&echo_request(exchange));
    }
    // The plain echo is the hot path: its only field is written without an intermediate string.
    let length = key_len(1) + encoded_len_varint(payload.len() as u64) + payload.len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    put_prefix(&mut bytes, length);
    encode_key(1, prost::encoding::WireType::LengthDelimited, &mut bytes);
    encode_varint(payload.len() as u64, &mut bytes);
    bytes.put_slice(payload);
    bytes.freeze()
}

/// Returns the request for an echo, or for a reply of so many bytes.
pub(super) fn echo_request(exchange: &Exchange) -> EchoRequest {
    EchoRequest {
        input: String::from_utf8_lossy(exchange.payload()).into_owned(),
        response_bytes: match exchange.reply() {
            Reply::Bytes(length) => length,
            Reply::Echo | Reply::Message | Reply::Times => 0,
        },
    }
}

/// Encodes a message with its prefix.
pub(crate) fn prefixed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX + message.encoded_len());
    put_prefix(&mut bytes, message.encoded_len());
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Appends the prefix of a message of `length` bytes.
pub(crate) fn put_prefix(bytes: &mut BytesMut, length: usize) {
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
}

/// Reads the whole body, and returns its bytes to the flow control.
pub(crate) async fn read(body: &mut RecvStream, limit: usize) -> Result<Bytes, Failure> {
    // Most replies are one chunk, which is kept as it is; only further ones are copied.
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        // It fails only on a closed stream, which the next read reports.
        let _ = body.flow_control().release_capacity(chunk.len());
        if first.len().max(whole.len()) + chunk.len() > limit {
            let detail = "the reply is longer than expected";
            return Err(Failure::request(ErrorKind::Mismatch, detail));
        }
        if first.is_empty() {
            first = chunk;
            continue;
        }
        if whole.is_empty() {
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&chunk);
    }
    let one_chunk = whole.is_empty();
    Ok(if one_chunk { first } else { whole.freeze() })
}

/// Checks the status at a reply's end. An error without a message has it in the headers.
pub(crate) async fn check_end(headers: &HeaderMap, body: &mut RecvStream) -> Result<(), Failure> {
    match body.trailers().await? {
        Some(trailers) => check_status(&trailers),
        None => check_status(headers),
    }
}

/// Checks the call's status: in the trailers, or in the headers if there is no message.
pub(crate) fn check_status(headers: &HeaderMap) -> Result<(), Failure> {
    let malformed = |detail: &str| Err(Failure::request(ErrorKind::Protocol, detail));
    let Some(status) = headers.get("grpc-status") else {
        return malformed("the reply has no grpc-status");
    };
    match status.to_str().ok().and_then(|status| status.parse().ok()) {
        Some(0) => Ok(()),
        Some(code) => {
            let message = headers.get("grpc-message");
            let message = message.map_or(&[][..], HeaderValue::as_bytes);
            let message = percent_decode(message).decode_utf8_lossy();
            let detail = format!("gRPC status {code}: {message}");
            Err(Failure::request(ErrorKind::Grpc(code), detail))
        }
        None => malformed("the reply's grpc-status is not a number"),
    }
}

fn verify(exchange: &Exchange, body: &Bytes) -> Result<(), Failure> {
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(Failure::mismatch("is shorter than a message's prefix"));
    };
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if prefix[0] != 0 || length != message.len() {
        return Err(Failure::mismatch("is not one uncompressed message"));
    }
    let message = body.slice(PREFIX..);
    let verified = if exchange.message().is_some() {
        BenchmarkMessage::decode(message).map(|reply| exchange.verify_message(&reply))
    } else {
        EchoResponse::decode(message).map(|reply| exchange.verify(reply.output.as_bytes()))
    };
    match verified {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::mismatch("is not what was asked for")),
        Err(error) => Err(Failure::mismatch(format!(
            "is not a valid message: {error}"
        ))),
    }
}
