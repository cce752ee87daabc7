//! Replies to gRPC calls: their messages and their status.

use bytes::{Buf, Bytes, BytesMut};
use h2::{RecvStream, client::ResponseFuture};
use http::{HeaderMap, HeaderValue, StatusCode};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::frame;
use percent_encoding::percent_decode;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::{Failure, Result, http_reply::status_failure, http2};

/// Length of a gRPC message's prefix: a flag byte and a length of four bytes.
pub(crate) const PREFIX: usize = 5;

/// Longest message of a reply, in bytes: netping's longest payload, and the fields around it.
const LONGEST: usize = frame::DEFAULT_MAX + (64 << 10);

/// The headers of a reply, and its body to be read.
pub(crate) type Answer = (HeaderMap, RecvStream);

/// Waits for the headers of a reply.
pub(crate) async fn answer(response: ResponseFuture) -> Result<Answer> {
    let (head, body) = response.await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(status_failure(head.status));
    }
    Ok((head.headers, body))
}

/// Gives each message of a reply to `examine`, and returns their number.
///
/// # Errors
/// Any [`Failure`], with a status other than OK among them.
pub(crate) async fn examine_all(
    (headers, mut body): Answer,
    mut examine: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
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

/// Checks the status at a reply's end. An error without a message has it in the headers.
pub(crate) async fn check_end(headers: &HeaderMap, body: &mut RecvStream) -> Result<()> {
    match body.trailers().await? {
        Some(trailers) => check_status(&trailers),
        None => check_status(headers),
    }
}

/// Checks the call's status: in the trailers, or in the headers if there is no message.
pub(crate) fn check_status(headers: &HeaderMap) -> Result<()> {
    let status = headers.get("grpc-status");
    let code = status.and_then(|status| status.to_str().ok()?.parse().ok());
    let missing = || Failure::request(ErrorKind::Protocol, "the reply has no valid grpc-status");
    let code = code.ok_or_else(missing)?;
    if code == 0 {
        return Ok(());
    }
    let message = headers.get("grpc-message");
    let message = message.map_or(&[][..], HeaderValue::as_bytes);
    let message = percent_decode(message).decode_utf8_lossy();
    let detail = format!("gRPC status {code}: {message}");
    Err(Failure::request(ErrorKind::Grpc(code), detail))
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
    fn next(&mut self) -> Result<Option<Bytes>> {
        let is_spread = !self.spread.is_empty();
        let bytes = if is_spread {
            &*self.spread
        } else {
            &self.chunk
        };
        let Some(end) = end_of_message(bytes)? else {
            return Ok(None);
        };
        let mut message = if is_spread {
            self.spread.split_to(end).freeze()
        } else {
            self.chunk.split_to(end)
        };
        message.advance(PREFIX);
        Ok(Some(message))
    }

    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() && self.spread.is_empty()
    }
}

/// Returns the length of the message after this prefix, in bytes.
pub(super) fn message_length([_, length @ ..]: [u8; PREFIX]) -> usize {
    u32::from_be_bytes(length) as usize
}

/// Returns the end of the message at the beginning of `bytes`; `None` if it is not whole yet.
fn end_of_message(bytes: &[u8]) -> Result<Option<usize>> {
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
pub(super) fn is_well_formed(mut message: &[u8]) -> bool {
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

    /// Calls a server that answers with these headers alone.
    async fn called(server_says: http::response::Builder) -> Result<u64> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let serve = async {
            let mut server = h2::server::handshake(far).await.unwrap();
            let (_, mut respond) = server.accept().await.unwrap().unwrap();
            let head = server_says.body(()).unwrap();
            respond.send_response(head, true).unwrap();
            server.accept().await
        };
        let call = async {
            let (mut send, connection) = h2::client::handshake(near).await.unwrap();
            let request = http::Request::get("http://localhost/").body(()).unwrap();
            let (response, _) = send.send_request(request, true).unwrap();
            let replied = async { examine_all(answer(response).await?, |_| Ok(())).await };
            tokio::select! {
                result = replied => result,
                _ = connection => unreachable!("the server keeps it open"),
            }
        };
        tokio::select! {
            result = call => result,
            _ = serve => unreachable!("the client keeps it open"),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_status_without_a_message_is_in_the_headers() {
        let head = |status| http::Response::builder().header("grpc-status", status);
        let full = called(head("8").header("grpc-message", "too%20much")).await;
        let full = full.unwrap_err();
        assert_eq!(full.kind, ErrorKind::Grpc(8));
        assert_eq!(
            (&*full.detail, full.lost),
            ("gRPC status 8: too much", false)
        );
        // A server says nothing on a line of its own.
        let forged = called(head("8").header("grpc-message", "x%0A%1B[2JVALID: no warnings")).await;
        assert_eq!(
            forged.unwrap_err().detail,
            "gRPC status 8: x\u{fffd}\u{fffd}[2JVALID: no warnings"
        );
        assert_eq!(called(head("0")).await, Ok(0));
        let kind = |failed: Result<u64>| failed.unwrap_err().kind;
        let silent = called(http::Response::builder()).await;
        assert_eq!(kind(silent), ErrorKind::Protocol);
        let unavailable = called(http::Response::builder().status(503)).await;
        assert_eq!(kind(unavailable), ErrorKind::Http(503));
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
    fn a_message_that_ends_within_a_field_is_not_well_formed() {
        let message = prefixed(&echo("text")).slice(PREFIX..);
        assert!(is_well_formed(&message));
        assert!(!is_well_formed(&message[..3]));
        assert!(is_well_formed(b""));
    }
}
