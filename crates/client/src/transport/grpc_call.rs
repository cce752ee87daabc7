//! Calls of any gRPC method, by driving HTTP/2 directly.
//!
//! The messages of a call are encoded beforehand and sent together, whether the method takes one or
//! a stream of them; a call ends with the last message of its reply and the status after it.

use std::{iter, sync::Arc, time::Duration};

use http::HeaderMap;
use netping_http2::{client::Body, head::Head};
use netping_protocol::{payload::Exchange, pool::Pool};

use super::{
    Carried, Failure, Result, ServerEndpoint,
    grpc_h2::{Caller, Calls, Grpc, head_at},
    grpc_messages::{Conversation, Messages},
    grpc_reply::{GrpcReply, PREFIX, is_well_formed, message_length},
    http2,
    prepared::Prepared,
};
use crate::service::Matching;

/// The longest deadline that gRPC can tell in seconds.
const LONGEST_DEADLINE: Duration = Duration::from_secs(99_999_999);

/// Calls of the method that the target names.
#[derive(Debug, Clone)]
pub struct MethodCalls {
    head: Head,
    prepared: Arc<Prepared>,
}

impl MethodCalls {
    /// Returns a transport for the endpoint's prepared requests.
    pub fn transport(endpoint: ServerEndpoint) -> Grpc<Self> {
        let calls = Self::of(&endpoint);
        Grpc { endpoint, calls }
    }

    /// Returns a transport for the messages of such calls.
    pub fn messages(endpoint: ServerEndpoint) -> Messages<Self> {
        let conversation = Self::of(&endpoint);
        Messages {
            endpoint,
            conversation,
        }
    }

    fn of(endpoint: &ServerEndpoint) -> Self {
        let prepared = Arc::clone(&endpoint.destination.prepared);
        let (authority, headers) = prepared.for_http2(&endpoint.destination.url);
        let mut head = head_at(endpoint, &authority, &endpoint.destination.url.path);
        head.headers_mut().extend(headers);
        if let Some(deadline) = prepared.deadline {
            head.headers_mut().extend(deadline_headers(deadline));
        }
        let head = http2::prepare(&head);
        Self { head, prepared }
    }

    /// Examines a message as the user wishes.
    fn examine(&self, message: &[u8]) -> Result<()> {
        if self.prepared.wants_contents() {
            self.prepared.examine(message)?;
        }
        if is_well_formed(message) {
            return Ok(());
        }
        Err(Failure::mismatch("has a message that is not valid"))
    }
}

impl Calls for MethodCalls {
    async fn call(
        &self,
        caller: &mut Caller,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> Result<()> {
        let prepared = &self.prepared;
        let body = prepared.bodies.body(exchange);
        let connection = &mut caller.connection;
        let messages = if prepared.streams_requests || prepared.streams_replies {
            carried.sent = messages(body).count() as u64;
            let mut reply = GrpcReply::<_, true>::expected(|message: &[u8]| {
                carried.receive();
                self.examine(message)
            });
            let body = Body::Shared(body);
            connection.call(&self.head, body, &mut reply).await?;
            reply.messages
        } else {
            let mut reply = GrpcReply::<_>::expected(|message: &[u8]| self.examine(message));
            let body = Body::Shared(body);
            connection.call(&self.head, body, &mut reply).await?;
            reply.messages
        };
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

impl Conversation for MethodCalls {
    fn head(&self) -> &Head {
        &self.head
    }

    fn matching(&self) -> Option<Arc<Matching>> {
        self.prepared.matching.clone()
    }

    fn put(&self, exchange: &Exchange, message: &mut Vec<u8>) {
        message.extend_from_slice(self.prepared.bodies.body(exchange));
    }

    fn examine(&self, _: &Exchange, _: &[u8], reply: &[u8]) -> Result<()> {
        self.examine(reply)
    }
}

/// Makes each message of the requests a body of its own; returns false if there is none.
pub fn split_messages(requests: &mut Prepared) -> bool {
    let mut split = Vec::new();
    for body in requests.bodies.bodies() {
        split.extend(messages(body).map(|message| body.slice_ref(message)));
    }
    let Some(bodies) = Pool::new(split, requests.bodies.order()) else {
        return false;
    };
    requests.bodies = bodies;
    true
}

/// Returns the messages in a request's body, which are whole, with their prefixes.
fn messages(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    iter::from_fn(move || {
        let end = PREFIX + message_length(*body.first_chunk()?);
        let (message, rest) = body.split_at_checked(end)?;
        body = rest;
        Some(message)
    })
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
