//! Calls of any gRPC method, by driving HTTP/2 directly.
//!
//! The messages of a call are encoded beforehand and sent together, whether the method takes one or
//! a stream of them; a call ends with the last message of its reply and the status after it.

use std::{future::poll_fn, rc::Rc, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header::CONTENT_TYPE};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{frame, payload::Exchange, tls::Negotiated};
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::{
    connect,
    connection::{Carried, Connection, Milestones, Transport},
    endpoint::Endpoint,
    failure::Failure,
    grpc_h2::{PREFIX, check_end, head_at},
    http_reply::status_failure,
    http2,
    prepared::{Check, Prepared},
};

/// Longest message of a reply, in bytes.
const LONGEST: usize = frame::DEFAULT_MAX;

/// Opens HTTP/2 connections, on which the method that the target names is called.
#[derive(Debug, Clone)]
pub struct GrpcCall {
    endpoint: Endpoint,
    head: Request<()>,
}

impl GrpcCall {
    /// Returns a transport for the endpoint's prepared requests.
    pub fn new(endpoint: Endpoint) -> Self {
        let (authority, headers) = endpoint.prepared.for_http2(&endpoint.target);
        let mut head = head_at(&endpoint, &authority, &endpoint.target.path);
        head.headers_mut().extend(headers);
        if let Some(deadline) = endpoint.prepared.deadline {
            head.headers_mut().insert("grpc-timeout", timeout(deadline));
        }
        Self { endpoint, head }
    }
}

impl Transport for GrpcCall {
    type Connection = CallHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<CallHandle, Failure> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let negotiated = stream.negotiated().map(Rc::new);
        Ok(CallHandle {
            send: http2::handshake(stream, milestones).await?,
            head: self.head.clone(),
            prepared: Arc::clone(&self.endpoint.prepared),
            negotiated,
        })
    }
}

/// A caller's handle on a connection.
#[derive(Debug, Clone)]
pub struct CallHandle {
    send: SendRequest<Bytes>,
    head: Request<()>,
    prepared: Arc<Prepared>,
    negotiated: Option<Rc<Negotiated>>,
}

impl Connection for CallHandle {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated.as_deref().cloned()
    }

    fn is_spent(&mut self) -> bool {
        http2::is_spent(&mut self.send)
    }

    async fn call(
        &mut self,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> Result<(), Failure> {
        let prepared = &self.prepared;
        let body = prepared.bodies.body(exchange).clone();
        let wants_contents = prepared.wants_contents();
        let streams = prepared.streams_requests || prepared.streams_replies;
        if streams {
            carried.sent = count(&body);
        }
        let examine = |message: &[u8]| {
            if streams {
                carried.receive();
            }
            if wants_contents {
                prepared.examine(message)?;
            }
            if is_well_formed(message) {
                return Ok(());
            }
            Err(Failure::mismatch("has a message that is not valid"))
        };
        let messages = call(&mut self.send, &self.head, body, examine).await?;
        let is_expected = matches!(prepared.check, Check::Contents(_));
        if messages == 1 || (prepared.streams_replies && (messages > 0 || !is_expected)) {
            return Ok(());
        }
        let right = if prepared.streams_replies {
            "some were expected"
        } else {
            "the method returns one"
        };
        Err(Failure::mismatch(format!(
            "has {messages} messages, where {right}"
        )))
    }
}

/// Calls a method; gives each message of the reply to `examine`, and returns their number.
///
/// # Errors
/// Any [`Failure`], with a status other than OK among them.
pub(crate) async fn call(
    send: &mut SendRequest<Bytes>,
    head: &Request<()>,
    body: Bytes,
    mut examine: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    poll_fn(|cx| send.poll_ready(cx)).await?;
    let (response, mut stream) = send.send_request(head.clone(), false)?;
    stream.send_data(body, true)?;
    let response = response.await?;
    if response.status() != StatusCode::OK {
        return Err(status_failure(response.status()));
    }
    let (head, mut body) = response.into_parts();
    check_type(&head.headers)?;
    let mut reply = Messages::default();
    let mut messages = 0;
    // A wrong message is told only where the call's status is OK, which explains more.
    let mut examined = Ok(());
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        // It fails only on a closed stream, which the next read reports.
        let _ = body.flow_control().release_capacity(chunk.len());
        if examined.is_err() {
            continue;
        }
        reply.push(chunk);
        while examined.is_ok()
            && let Some(message) = reply.next().transpose()
        {
            messages += 1;
            examined = message.and_then(|message| examine(&message));
        }
    }
    check_end(&head.headers, &mut body).await?;
    examined?;
    if !reply.is_at_end() {
        return Err(Failure::mismatch("ends within a message"));
    }
    Ok(messages)
}

/// Checks that a reply is gRPC's, and not a page of a web server.
fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"application/grpc") {
        return Ok(());
    }
    let detail = format!(
        "the reply is not gRPC: its content-type is '{}'",
        kind.escape_ascii()
    );
    Err(Failure::request(ErrorKind::Protocol, detail))
}

/// The messages of a reply, cut from its chunks.
#[derive(Debug, Default)]
struct Messages {
    /// The last chunk, or what is left of it.
    chunk: Bytes,
    /// A message that is spread over several chunks, and what follows it.
    spread: BytesMut,
}

impl Messages {
    /// Appends the next chunk, once there is no whole message left.
    fn push(&mut self, chunk: Bytes) {
        if self.is_at_end() {
            self.chunk = chunk;
            return;
        }
        self.spread.extend_from_slice(&self.chunk);
        self.spread.extend_from_slice(&chunk);
        self.chunk.clear();
    }

    /// Returns the next whole message, without its prefix.
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut message = if self.spread.is_empty() {
            let Some(end) = end_of_message(&self.chunk)? else {
                return Ok(None);
            };
            self.chunk.split_to(end)
        } else {
            let Some(end) = end_of_message(&self.spread)? else {
                return Ok(None);
            };
            self.spread.split_to(end).freeze()
        };
        message.advance(PREFIX);
        Ok(Some(message))
    }

    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() && self.spread.is_empty()
    }
}

/// Returns the number of messages in a request's body, which are whole.
fn count(mut body: &[u8]) -> u64 {
    let mut messages = 0;
    while let Some(prefix) = body.first_chunk::<PREFIX>() {
        body = body.get(PREFIX + length(*prefix)..).unwrap_or_default();
        messages += 1;
    }
    messages
}

/// Returns the end of the message at the beginning of `bytes`; `None` if it is not whole yet.
fn end_of_message(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    match prefix[0] {
        0 => {}
        1 => return Err(Failure::mismatch("is compressed, which was not asked for")),
        _ => return Err(Failure::mismatch("has no whole messages")),
    }
    let length = length(*prefix);
    if length > LONGEST {
        let detail = format!("has a message of {length} bytes; the limit is {LONGEST}");
        return Err(Failure::mismatch(detail));
    }
    let end = PREFIX + length;
    Ok((bytes.len() >= end).then_some(end))
}

/// Returns the length of the message after this prefix.
fn length([_, length @ ..]: [u8; PREFIX]) -> usize {
    u32::from_be_bytes(length) as usize
}

/// Returns true if the bytes are a sequence of whole fields, whatever these mean.
fn is_well_formed(mut message: &[u8]) -> bool {
    while message.has_remaining() {
        let skipped = decode_key(&mut message).and_then(|(tag, wire_type)| {
            skip_field(wire_type, tag, &mut message, DecodeContext::default())
        });
        if skipped.is_err() {
            return false;
        }
    }
    true
}

/// Returns a time as gRPC sends it: at most eight digits, rounded up to a unit that needs no more.
fn timeout(time: Duration) -> HeaderValue {
    const LARGEST: u128 = 99_999_999;
    let units = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
    ];
    let in_unit = |(nanos, unit): (u128, char)| (time.as_nanos().div_ceil(nanos), unit);
    let found = units
        .into_iter()
        .map(in_unit)
        .find(|(count, _)| *count <= LARGEST);
    let (count, unit) = found.unwrap_or((LARGEST, 'S'));
    HeaderValue::try_from(format!("{count}{unit}"))
        .unwrap_or_else(|_| HeaderValue::from_static("1S"))
}

#[cfg(test)]
mod tests {
    use netping_protocol::echopb::EchoRequest;
    use proptest::prelude::*;

    use super::{
        super::grpc_h2::{prefixed, put_prefix},
        *,
    };

    fn echo(input: &str) -> EchoRequest {
        EchoRequest {
            input: input.to_owned(),
            response_bytes: 7,
        }
    }

    proptest! {
        #[test]
        fn messages_are_found_however_the_reply_is_cut(
            inputs in prop::collection::vec("[a-z]{0,40}", 0..6),
            cuts in prop::collection::vec(1_usize..20, 1..60),
        ) {
            let mut whole = BytesMut::new();
            for input in &inputs {
                whole.extend_from_slice(&prefixed(&echo(input)));
            }
            let mut reply = Messages::default();
            let mut found = Vec::new();
            let mut cuts = cuts.into_iter().cycle();
            while !whole.is_empty() {
                let length = cuts.next().unwrap_or(1).min(whole.len());
                reply.push(whole.split_to(length).freeze());
                while let Some(message) = reply.next().unwrap() {
                    prop_assert!(is_well_formed(&message));
                    found.push(<EchoRequest as prost::Message>::decode(message).unwrap().input);
                }
            }
            prop_assert_eq!(found, inputs);
            prop_assert!(reply.is_at_end());
        }
    }

    #[test]
    fn a_compressed_or_too_long_message_is_a_mismatch() {
        let mut long = BytesMut::new();
        put_prefix(&mut long, LONGEST + 1);
        for bytes in [&[1, 0, 0, 0, 0][..], &long] {
            assert_eq!(end_of_message(bytes).unwrap_err().kind, ErrorKind::Mismatch);
        }
        assert_eq!(end_of_message(&[0, 0, 0]).unwrap(), None);
    }

    #[test]
    fn a_deadline_has_at_most_eight_digits_and_is_never_shortened() {
        let sent = |time| timeout(time).to_str().unwrap().to_owned();
        assert_eq!(sent(Duration::from_nanos(1)), "1n");
        assert_eq!(sent(Duration::from_millis(50)), "50000000n");
        assert_eq!(sent(Duration::from_nanos(100_000_001)), "100001u");
        assert_eq!(sent(Duration::from_secs(5)), "5000000u");
        assert_eq!(sent(Duration::MAX), "99999999S");
    }

    #[test]
    fn a_message_that_ends_within_a_field_is_not_well_formed() {
        let message = prefixed(&echo("text")).slice(PREFIX..);
        assert!(is_well_formed(&message));
        assert!(!is_well_formed(&message[..3]));
        assert!(is_well_formed(b""));
    }
}
