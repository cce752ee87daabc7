//! Replies to gRPC calls: their messages and their status.

use bytes::Buf;
use http::StatusCode;
use netping_http2::fields::Fields;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::frame;
use percent_encoding::percent_decode;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::{
    Failure, Result,
    http_reply::status_failure,
    http2::{self, Reader},
};

/// Length of a gRPC message's prefix: a flag byte and a length of four bytes.
pub(crate) const PREFIX: usize = 5;

/// Longest message of a reply, in bytes: netping's longest payload, and the fields around it.
const LONGEST: usize = frame::DEFAULT_MAX + (64 << 10);

/// A reply whose messages are examined one by one. With `STREAMS`, each is wanted as soon as it is there.
pub(crate) struct GrpcReply<F, const STREAMS: bool = false> {
    examine: F,
    cut: ReplyMessages,
    /// A wrong message is told only where the call's status is OK, which explains more.
    examined: Result<()>,
    /// The number of messages so far.
    pub(crate) messages: u64,
}

impl<F: FnMut(&[u8]) -> Result<()>, const STREAMS: bool> GrpcReply<F, STREAMS> {
    /// Returns a reply of which nothing has come yet, whose messages are given to `examine`.
    pub(crate) fn expected(examine: F) -> Self {
        Self {
            examine,
            cut: ReplyMessages::default(),
            examined: Ok(()),
            messages: 0,
        }
    }
}

impl<F: FnMut(&[u8]) -> Result<()>, const STREAMS: bool> Reader for GrpcReply<F, STREAMS> {
    fn streams(&self) -> bool {
        STREAMS
    }

    fn head(&mut self, head: &Fields) -> Result<()> {
        check_head(head)
    }

    fn data(&mut self, data: &[u8]) -> Result<()> {
        if self.examined.is_ok() {
            self.examined = self.cut.feed(data, |message| {
                self.messages += 1;
                (self.examine)(message)
            });
        }
        Ok(())
    }

    fn end(&mut self, last: &Fields) -> Result<()> {
        check_end(last)?;
        std::mem::replace(&mut self.examined, Ok(()))?;
        if !self.cut.is_at_end() {
            return Err(Failure::mismatch("ends within a message"));
        }
        Ok(())
    }
}

/// Checks the head of a reply: its HTTP status and its type.
pub(crate) fn check_head(head: &Fields) -> Result<()> {
    let status = http2::status(head);
    if status != StatusCode::OK {
        return Err(status_failure(status));
    }
    check_type(head.get("content-type").unwrap_or_default())
}

/// Checks the end of a reply, which has the call's status.
pub(crate) fn check_end(last: &Fields) -> Result<()> {
    check_status(last.get("grpc-status"), last.get("grpc-message"))
}

/// Checks that a reply is gRPC's, and not a page of a web server.
pub(super) fn check_type(kind: &[u8]) -> Result<()> {
    // gRPC-Web's, which begins so too, has other frames.
    let rest = kind.strip_prefix(b"application/grpc");
    if rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';'))) {
        return Ok(());
    }
    let kind = kind.escape_ascii();
    let detail = format!("the reply is not gRPC: its content-type is '{kind}'");
    Err(Failure::request(ErrorKind::Protocol, detail))
}

/// Checks a call's status and message: those of the trailers, or of the head if there is no reply.
fn check_status(status: Option<&[u8]>, message: Option<&[u8]>) -> Result<()> {
    if status == Some(b"0") {
        return Ok(());
    }
    let code = status.and_then(|status| str::from_utf8(status).ok()?.parse().ok());
    let missing = || Failure::request(ErrorKind::Protocol, "the reply has no valid grpc-status");
    let code = code.ok_or_else(missing)?;
    if code == 0 {
        return Ok(());
    }
    let message = percent_decode(message.unwrap_or_default()).decode_utf8_lossy();
    let detail = format!("gRPC status {code}: {message}");
    Err(Failure::request(ErrorKind::Grpc(code), detail))
}

/// The messages of a reply, cut from its parts.
#[derive(Debug, Default)]
pub(crate) struct ReplyMessages {
    /// The beginning of a message that is spread over several parts.
    spread: Vec<u8>,
}

impl ReplyMessages {
    /// Gives each message that is whole with the next part to `examine`, without its prefix.
    pub(crate) fn feed(
        &mut self,
        mut part: &[u8],
        mut examine: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while !part.is_empty() {
            if self.spread.is_empty() {
                // Most messages are in one part, and are not copied.
                if let Some(end) = end_of_message(part)?
                    && let Some((message, rest)) = part.split_at_checked(end)
                {
                    examine(&message[PREFIX..])?;
                    part = rest;
                    continue;
                }
            }
            let wanted = end_of_message(&self.spread)?.unwrap_or(PREFIX);
            let length = part.len().min(wanted - self.spread.len());
            self.spread.extend_from_slice(&part[..length]);
            part = &part[length..];
            let end = end_of_message(&self.spread)?;
            if end == Some(self.spread.len()) {
                examine(&self.spread[PREFIX..])?;
                self.spread.clear();
            } else if let Some(end) = end {
                self.spread.reserve(end - self.spread.len());
            }
        }
        Ok(())
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.spread.is_empty()
    }
}

/// Returns the length of the message after this prefix, in bytes.
pub(super) fn message_length([_, length @ ..]: [u8; PREFIX]) -> usize {
    u32::from_be_bytes(length) as usize
}

/// Returns the end of the message at the beginning of `bytes`; `None` if its prefix is not whole.
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
    Ok(Some(PREFIX + length))
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
    use bytes::BytesMut;
    use netping_http2::{Config, client::Body};
    use netping_protocol::echopb::EchoRequest;
    use proptest::prelude::*;
    use tokio::task::LocalSet;

    use super::{
        super::{
            grpc_h2::{prefixed, put_prefix},
            http2::Handle,
        },
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
            let whole: Vec<_> = inputs.iter().map(|input| prefixed(&echo(input))).collect();
            let whole = whole.concat();
            let mut rest = &whole[..];
            let mut reply = ReplyMessages::default();
            let mut found = Vec::new();
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let length = cuts.next().unwrap_or(1).min(rest.len());
                let (part, after) = rest.split_at(length);
                rest = after;
                reply.feed(part, |message| {
                    assert!(is_well_formed(message));
                    found.push(<EchoRequest as prost::Message>::decode(message).unwrap().input);
                    Ok(())
                }).unwrap();
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
            let mut connection = Handle::open(near, Config::default()).await?;
            let request = http::Request::get("http://localhost/").body(()).unwrap();
            let mut reply = GrpcReply::<_>::expected(|_: &[u8]| Ok(()));
            let head = http2::prepare(&request);
            connection.call(&head, Body::Short(&[]), &mut reply).await?;
            Ok(reply.messages)
        };
        LocalSet::new()
            .run_until(async {
                tokio::select! {
                    result = call => result,
                    _ = serve => unreachable!("the client keeps it open"),
                }
            })
            .await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_status_without_a_message_is_in_the_headers() {
        let grpc = || http::Response::builder().header("content-type", "application/grpc+proto");
        let head = |status| grpc().header("grpc-status", status);
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
        assert_eq!(kind(called(grpc()).await), ErrorKind::Protocol);
        let page = http::Response::builder().header("content-type", "text/html");
        let page = called(page.header("grpc-status", "0")).await.unwrap_err();
        assert_eq!(page.kind, ErrorKind::Protocol);
        assert!(page.detail.contains("'text/html'"), "{page}");
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
