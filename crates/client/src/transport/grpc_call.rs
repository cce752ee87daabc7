//! Calls of any gRPC method, by driving HTTP/2 directly.
//!
//! The messages of a call are encoded beforehand and sent together, whether the method takes one or
//! a stream of them; a call ends with the last message of its reply and the status after it.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use h2::{RecvStream, client::SendRequest};
use http::{HeaderMap, HeaderValue, Request, header::CONTENT_TYPE};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{frame, payload::Exchange};
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::{
    Carried, Failure, ServerEndpoint,
    grpc_h2::{Calls, Grpc, PREFIX, ask, check_end, head_at, message_length},
    http2,
    prepared::Prepared,
};

/// Longest message of a reply, in bytes: netping's longest payload, and the fields around it.
const LONGEST: usize = frame::DEFAULT_MAX + (64 << 10);

/// The longest deadline that gRPC can tell in seconds.
const LONGEST_DEADLINE: Duration = Duration::from_secs(99_999_999);

/// Calls of the method that the target names.
#[derive(Debug, Clone)]
pub struct MethodCalls {
    head: Request<()>,
    prepared: Arc<Prepared>,
}

impl MethodCalls {
    /// Returns a transport for the endpoint's prepared requests.
    pub fn transport(endpoint: ServerEndpoint) -> Grpc<Self> {
        let prepared = Arc::clone(&endpoint.destination.prepared);
        let (authority, headers) = prepared.for_http2(&endpoint.destination.url);
        let mut head = head_at(&endpoint, &authority, &endpoint.destination.url.path);
        head.headers_mut().extend(headers);
        if let Some(deadline) = prepared.deadline {
            head.headers_mut().extend(deadline_headers(deadline));
        }
        let calls = Self { head, prepared };
        Grpc { endpoint, calls }
    }
}

impl Calls for MethodCalls {
    async fn call(
        &self,
        send: &mut SendRequest<Bytes>,
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
        let messages = call(send, &self.head, body, examine).await?;
        let is_expected = prepared.check.has_contents();
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
    examine: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let reply = ask(send, head, body).await?;
    check_type(&reply.0)?;
    examine_all(reply, examine).await
}

/// Gives each message of a reply to `examine`, and returns their number.
///
/// # Errors
/// Any [`Failure`], with a status other than OK among them.
pub(crate) async fn examine_all(
    (headers, mut body): (HeaderMap, RecvStream),
    mut examine: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut reply = ReplyMessages::default();
    let mut messages = 0;
    // A wrong message is told only where the call's status is OK, which explains more.
    let mut examined = Ok(());
    while let Some(chunk) = http2::next_chunk(&mut body).await? {
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
    check_end(&headers, &mut body).await?;
    examined?;
    if !reply.is_at_end() {
        return Err(Failure::mismatch("ends within a message"));
    }
    Ok(messages)
}

/// Checks that a reply is gRPC's, and not a page of a web server.
fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let header = headers.get(CONTENT_TYPE);
    let kind = header.map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"application/grpc") {
        return Ok(());
    }
    let kind = kind.escape_ascii();
    let detail = format!("the reply is not gRPC: its content-type is '{kind}'");
    Err(Failure::request(ErrorKind::Protocol, detail))
}

/// The messages of a reply, cut from its chunks.
#[derive(Debug, Default)]
struct ReplyMessages {
    /// The last chunk, or what is left of it.
    chunk: Bytes,
    /// A message that is spread over several chunks, and what follows it.
    spread: BytesMut,
}

impl ReplyMessages {
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
        let end = PREFIX + message_length(*prefix);
        body = body.get(end..).unwrap_or_default();
        messages += 1;
    }
    messages
}

/// Returns the end of the message at the beginning of `bytes`; `None` if it is not whole yet.
fn end_of_message(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    if prefix[0] != 0 {
        return Err(Failure::mismatch("is compressed, which was not asked for"));
    }
    let length = message_length(*prefix);
    if length > LONGEST {
        let detail = format!("has a message of {length} bytes; the limit is {LONGEST}");
        return Err(Failure::mismatch(detail));
    }
    let end = PREFIX + length;
    Ok((bytes.len() >= end).then_some(end))
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

/// Returns the header that tells a server the time limit of its call.
fn deadline_headers(deadline: Duration) -> HeaderMap {
    let mut request = tonic::Request::new(());
    request.set_timeout(deadline.min(LONGEST_DEADLINE));
    request.into_parts().0.into_headers()
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
            let mut reply = ReplyMessages::default();
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
    fn a_deadline_has_at_most_eight_digits() {
        let sent = |time| deadline_headers(time)["grpc-timeout"].clone();
        assert_eq!(sent(Duration::from_nanos(1)), "1n");
        assert_eq!(sent(Duration::from_millis(50)), "50000000n");
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
