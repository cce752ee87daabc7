//! gRPC by driving HTTP/2 directly: the parts of the protocol that a load generator needs.
//!
//! Messages and trailers follow "gRPC over HTTP2" (the gRPC project's PROTOCOL-HTTP2 document).

use std::mem;

use bytes::{BufMut, Bytes};
use http::{
    Method, Request, Version,
    header::{CONTENT_TYPE, TE},
};
use netping_http2::{client::Body, head::Head};
use netping_protocol::{
    echopb::{EchoRequest, EchoResponse},
    frame::Reply,
    hello::BenchmarkMessage,
    payload::Exchange,
    secure::Connector,
};
use prost::{
    Message,
    encoding::{encode_varint, encoded_len_varint},
};

use super::{
    Carried, Connection, Failure, Milestones, Result, ServerEndpoint, Transport, connect,
    grpc_messages::{Conversation, Messages},
    grpc_reply::{GrpcReply, PREFIX},
    http2::{self, Handle, SHORT},
};

/// The key of field 1 with a length: its number, and the wire type 2.
pub(crate) const FIELD_1: u8 = (1 << 3) | 2;

/// Opens HTTP/2 connections, for calls of one kind.
#[derive(Debug, Clone)]
pub struct Grpc<C> {
    pub(super) endpoint: ServerEndpoint,
    pub(super) calls: C,
}

/// A kind of calls.
pub trait Calls: Clone + 'static {
    /// Makes the exchange's current call, and verifies the reply.
    fn call(
        &self,
        caller: &mut Caller,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> impl Future<Output = Result<()>>;
}

/// The state of a caller's calls, one after the other.
pub struct Caller {
    pub(super) connection: Handle,
    /// The body of the current request.
    request: Vec<u8>,
}

impl<C: Calls> Transport for Grpc<C> {
    type Connection = GrpcHandle<C>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<GrpcHandle<C>> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let connection = http2::handshake(stream, milestones).await?;
        Ok(GrpcHandle::new(connection, self.calls.clone()))
    }
}

/// A caller's handle on a connection.
pub struct GrpcHandle<C> {
    caller: Caller,
    calls: C,
}

impl<C> GrpcHandle<C> {
    fn new(connection: Handle, calls: C) -> Self {
        let request = Vec::new();
        let caller = Caller {
            connection,
            request,
        };
        Self { caller, calls }
    }
}

impl<C: Calls> Connection for GrpcHandle<C> {
    fn share(&self) -> Option<Self> {
        let connection = self.caller.connection.share();
        Some(Self::new(connection, self.calls.clone()))
    }

    fn is_spent(&mut self) -> bool {
        self.caller.connection.is_spent()
    }

    fn call(
        &mut self,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> impl Future<Output = Result<()>> {
        self.calls.call(&mut self.caller, exchange, carried)
    }
}

/// Calls of `echopb.Echo/Echo`, or of `pb.Hello/Say` with messages.
#[derive(Debug, Clone)]
pub struct EchoCalls {
    /// Head of every request for an echo.
    echo: Head,
    /// Head of every request with a message.
    say: Head,
}

impl EchoCalls {
    /// Returns a transport for these calls.
    pub fn transport(endpoint: ServerEndpoint) -> Grpc<Self> {
        let calls = Self {
            echo: http2::prepare(&head(&endpoint, "/echopb.Echo/Echo")),
            say: http2::prepare(&head(&endpoint, "/pb.Hello/Say")),
        };
        Grpc { endpoint, calls }
    }
}

impl Calls for EchoCalls {
    async fn call(
        &self,
        caller: &mut Caller,
        exchange: &Exchange,
        _: &mut Carried<'_>,
    ) -> Result<()> {
        let head = exchange.message().map_or(&self.echo, |_| &self.say);
        let Caller {
            connection,
            request,
        } = caller;
        request.clear();
        encode(exchange, request);
        let long;
        let (request, body) = if request.len() > SHORT {
            long = Bytes::from(mem::take(request));
            (&long[..], Body::Shared(&long))
        } else {
            (&request[..], Body::Short(request))
        };
        let examine = |message: &[u8]| verify(exchange, &request[PREFIX..], message);
        let mut reply = GrpcReply::<_>::expected(examine);
        connection.call(head, body, &mut reply).await?;
        if reply.messages != 1 {
            return Err(Failure::mismatch("is not one message"));
        }
        Ok(())
    }
}

/// Echoes on streams of `echopb.Echo/Chat`.
#[derive(Debug, Clone)]
pub struct Chat(Head);

impl Chat {
    /// Returns a transport for these messages.
    pub fn messages(endpoint: ServerEndpoint) -> Messages<Self> {
        let conversation = Self(http2::prepare(&head(&endpoint, "/echopb.Echo/Chat")));
        Messages {
            endpoint,
            conversation,
        }
    }
}

impl Conversation for Chat {
    fn head(&self) -> &Head {
        &self.0
    }

    fn put(&self, exchange: &Exchange, message: &mut Vec<u8>) {
        encode(exchange, message);
    }

    fn examine(&self, exchange: &Exchange, message: &[u8], reply: &[u8]) -> Result<()> {
        verify(exchange, message, reply)
    }
}

/// Returns the head of a request that calls `method`.
pub(crate) fn head(endpoint: &ServerEndpoint, method: &str) -> Request<()> {
    head_at(endpoint, &endpoint.destination.url.authority(), method)
}

/// Does the same with another authority than the target's.
pub(super) fn head_at(endpoint: &ServerEndpoint, authority: &str, method: &str) -> Request<()> {
    let scheme = match endpoint.destination.connector {
        Connector::Plain => "http",
        Connector::Tls(..) | Connector::Psk(_) => "https",
    };
    let head = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("{scheme}://{authority}{method}"))
        .header(TE, "trailers")
        .header(CONTENT_TYPE, "application/grpc");
    // A target's host and port are always a valid authority.
    head.body(()).unwrap_or_default()
}

/// Appends the request's message with its prefix.
fn encode(exchange: &Exchange, bytes: &mut Vec<u8>) {
    if let Some(message) = exchange.message() {
        return put_message(message, bytes);
    }
    let payload = exchange.payload();
    if matches!(exchange.reply(), Reply::Bytes(1..)) || payload.is_empty() {
        return put_message(&echo_request(exchange), bytes);
    }
    // The plain echo is the hot path: its only field is written without an intermediate string.
    put_field(payload, bytes);
}

/// Encodes a message whose only field is number 1 and has this content, with its prefix.
pub(crate) fn prefixed_field(content: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    put_field(content, &mut bytes);
    bytes.into()
}

fn put_field(content: &[u8], bytes: &mut Vec<u8>) {
    let length = 1 + encoded_len_varint(content.len() as u64) + content.len();
    bytes.reserve(PREFIX + length);
    put_prefix(bytes, length);
    bytes.put_u8(FIELD_1);
    encode_varint(content.len() as u64, bytes);
    bytes.put_slice(content);
}

/// Returns the request for an echo, or for a reply of the length that the exchange asks for.
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
    let mut bytes = Vec::new();
    put_message(message, &mut bytes);
    bytes.into()
}

fn put_message(message: &impl Message, bytes: &mut Vec<u8>) {
    let length = message.encoded_len();
    bytes.reserve(PREFIX + length);
    put_prefix(bytes, length);
    message.encode_raw(bytes);
}

/// Appends the prefix of a message of `length` bytes.
pub(super) fn put_prefix(bytes: &mut impl BufMut, length: usize) {
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
}

/// Verifies the reply to a request, both without their prefixes.
fn verify(exchange: &Exchange, request: &[u8], message: &[u8]) -> Result<()> {
    // An echo is its own request, field by field, and most servers encode it with the same bytes.
    if exchange.reply() == Reply::Echo && message == request {
        return Ok(());
    }
    let compared = if exchange.message().is_some() {
        BenchmarkMessage::decode(message).map(|reply| exchange.verify_message(&reply))
    } else {
        EchoResponse::decode(message).map(|reply| exchange.verify(reply.output.as_bytes()))
    };
    let invalid = |error| Failure::mismatch(format!("is not a valid message: {error}"));
    verified(compared.map_err(invalid)?)
}

/// Returns the result of the comparison of a reply.
pub(super) fn verified(is_right: bool) -> Result<()> {
    let wrong = || Failure::mismatch("is not what was asked for");
    is_right.then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use netping_protocol::grpc_bench::DataResponse;

    use super::*;

    #[test]
    fn a_field_is_encoded_as_prost_does() {
        for length in [1, 127, 128, 16_383, 16_384, 3_000_000] {
            let data = Bytes::from(vec![b'x'; length]);
            let expected = prefixed(&DataResponse { data: data.clone() });
            assert!(prefixed_field(&data) == expected, "{length}");
        }
    }
}
