//! gRPC by driving HTTP/2 directly: the parts of the protocol that a load generator needs.
//!
//! Messages and trailers follow "gRPC over HTTP2" (the gRPC project's PROTOCOL-HTTP2 document).

use std::future::poll_fn;

use bytes::{BufMut, Bytes, BytesMut};
use http::{
    Method, Request, Version,
    header::{CONTENT_TYPE, TE},
};
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
    grpc_reply::{Answer, PREFIX, answer, examine_all},
    http2::{self, Sender},
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
        send: &mut Sender,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> impl Future<Output = Result<()>>;
}

impl<C: Calls> Transport for Grpc<C> {
    type Connection = GrpcHandle<C>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<GrpcHandle<C>> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        Ok(GrpcHandle {
            send: http2::handshake(stream, milestones).await?,
            calls: self.calls.clone(),
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug, Clone)]
pub struct GrpcHandle<C> {
    send: Sender,
    calls: C,
}

impl<C: Calls> Connection for GrpcHandle<C> {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn is_spent(&mut self) -> bool {
        http2::is_spent(&mut self.send)
    }

    async fn call(&mut self, exchange: &Exchange, carried: &mut Carried<'_>) -> Result<()> {
        self.calls.call(&mut self.send, exchange, carried).await
    }
}

/// Calls of `echopb.Echo/Echo`, or of `pb.Hello/Say` with messages.
#[derive(Debug, Clone)]
pub struct EchoCalls {
    /// Head of every request for an echo.
    echo: Request<()>,
    /// Head of every request with a message.
    say: Request<()>,
}

impl EchoCalls {
    /// Returns a transport for these calls.
    pub fn transport(endpoint: ServerEndpoint) -> Grpc<Self> {
        let calls = Self {
            echo: head(&endpoint, "/echopb.Echo/Echo"),
            say: head(&endpoint, "/pb.Hello/Say"),
        };
        Grpc { endpoint, calls }
    }
}

impl Calls for EchoCalls {
    async fn call(
        &self,
        send: &mut Sender,
        exchange: &Exchange,
        _: &mut Carried<'_>,
    ) -> Result<()> {
        let head = exchange.message().map_or(&self.echo, |_| &self.say);
        let reply = ask(send, head, encode(exchange)).await?;
        if examine_all(reply, |message| verify(exchange, message)).await? != 1 {
            return Err(Failure::mismatch("is not one message"));
        }
        Ok(())
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

/// Sends a request whose body is known; returns the reply's headers, and its body to be read.
pub(crate) async fn ask(send: &mut Sender, head: &Request<()>, body: Bytes) -> Result<Answer> {
    poll_fn(|cx| send.poll_ready(cx)).await?;
    let (response, mut stream) = send.send_request(head.clone(), false)?;
    stream.send_data(body, true)?;
    answer(response).await
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
    prefixed_field(payload)
}

/// Encodes a message whose only field is number 1 and has this content, with its prefix.
pub(crate) fn prefixed_field(content: &[u8]) -> Bytes {
    let length = 1 + encoded_len_varint(content.len() as u64) + content.len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    put_prefix(&mut bytes, length);
    bytes.put_u8(FIELD_1);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.put_slice(content);
    bytes.freeze()
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
    let mut bytes = BytesMut::with_capacity(PREFIX + message.encoded_len());
    put_prefix(&mut bytes, message.encoded_len());
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Appends the prefix of a message of `length` bytes.
pub(super) fn put_prefix(bytes: &mut BytesMut, length: usize) {
    bytes.put_u8(0);
    bytes.put_u32(length as u32);
}

fn verify(exchange: &Exchange, message: &[u8]) -> Result<()> {
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
