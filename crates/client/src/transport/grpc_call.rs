//! Calls of any gRPC method, by driving HTTP/2 directly.
//!
//! The messages of a call are encoded beforehand and sent together, whether the method takes one or
//! a stream of them; a call ends with the last message of its reply and the status after it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header::CONTENT_TYPE};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::payload::Exchange;

use super::{
    Carried, Failure, Result, ServerEndpoint,
    grpc_h2::{Calls, Grpc, ask, head_at},
    grpc_reply::{PREFIX, examine_all, is_well_formed, message_length},
    http2::Sender,
    prepared::Prepared,
};

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
        send: &mut Sender,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> Result<()> {
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
    send: &mut Sender,
    head: &Request<()>,
    body: Bytes,
    examine: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let reply = ask(send, head, body).await?;
    check_type(&reply.0)?;
    examine_all(reply, examine).await
}

/// Checks that a reply is gRPC's, and not a page of a web server.
fn check_type(headers: &HeaderMap) -> Result<()> {
    let header = headers.get(CONTENT_TYPE);
    let kind = header.map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"application/grpc") {
        return Ok(());
    }
    let kind = kind.escape_ascii();
    let detail = format!("the reply is not gRPC: its content-type is '{kind}'");
    Err(Failure::request(ErrorKind::Protocol, detail))
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

/// Returns the header that tells a server the time limit of its call.
fn deadline_headers(deadline: Duration) -> HeaderMap {
    let mut request = tonic::Request::new(());
    request.set_timeout(deadline.min(LONGEST_DEADLINE));
    request.into_parts().0.into_headers()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_at_most_eight_digits() {
        let sent = |time| deadline_headers(time)["grpc-timeout"].clone();
        assert_eq!(sent(Duration::from_nanos(1)), "1n");
        assert_eq!(sent(Duration::from_millis(50)), "50000000n");
        assert_eq!(sent(Duration::from_secs(5)), "5000000u");
        assert_eq!(sent(Duration::MAX), "99999999S");
    }
}
