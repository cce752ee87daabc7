//! The methods of the floor, and the heads of its replies.

use std::time::Duration;

use netping_http2::{
    head::Head,
    server::{self, Request},
};
use tonic::Code;

use crate::deadline;

/// The meaning of a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) route: Route,
    /// The time that the caller gives the call.
    pub(super) timeout: Option<Duration>,
}

/// The method that a request calls, or why it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Echo,
    Say,
    Refused(Refusal),
}

/// A reply without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    NotPost,
    MediaType,
    UnknownMethod,
    Encoding,
    NoMessage,
    CutOff,
    Several,
    Compressed,
    NotProtobuf,
    TooLong,
    ReplyTooLong,
    NotAscii,
    Memory,
    Late,
    Deadline,
}

impl server::Route for Called {
    fn of(request: &Request) -> Self {
        Self {
            route: Route::of(request),
            timeout: request.get(deadline::TIMEOUT).and_then(deadline::timeout),
        }
    }
}

impl Route {
    fn of(request: &Request) -> Self {
        if request.method() != b"POST" {
            return Self::Refused(Refusal::NotPost);
        }
        if !request.get("content-type").is_some_and(is_grpc) {
            return Self::Refused(Refusal::MediaType);
        }
        let route = match request.path() {
            b"/echopb.Echo/Echo" => Self::Echo,
            b"/pb.Hello/Say" => Self::Say,
            _ => return Self::Refused(Refusal::UnknownMethod),
        };
        match request.get("grpc-encoding") {
            None | Some(b"identity") => route,
            Some(_) => Self::Refused(Refusal::Encoding),
        }
    }
}

/// Returns true for gRPC with protobuf, which is its default.
fn is_grpc(content_type: &[u8]) -> bool {
    let Some(rest) = content_type.strip_prefix(b"application/grpc") else {
        return false;
    };
    let rest = rest.strip_prefix(b"+proto").unwrap_or(rest);
    rest.is_empty() || rest[0] == b';'
}

impl Refusal {
    const ALL: [Self; 15] = [
        Self::NotPost,
        Self::MediaType,
        Self::UnknownMethod,
        Self::Encoding,
        Self::NoMessage,
        Self::CutOff,
        Self::Several,
        Self::Compressed,
        Self::NotProtobuf,
        Self::TooLong,
        Self::ReplyTooLong,
        Self::NotAscii,
        Self::Memory,
        Self::Late,
        Self::Deadline,
    ];

    /// Returns true if the request is gRPC.
    pub(super) fn is_of_grpc(self) -> bool {
        !matches!(self, Self::NotPost | Self::MediaType)
    }

    /// Returns the kind under which it is counted as an error, if it is.
    pub(super) fn kind(self) -> Option<&'static str> {
        match self {
            Self::TooLong => Some("grpc_out_of_range"),
            Self::ReplyTooLong | Self::NotAscii => Some("grpc_invalid_argument"),
            _ => None,
        }
    }

    /// Returns the head of the reply. The codes are tonic's.
    fn head(self, max_message: usize) -> Head {
        let of_limit = |what| {
            format!("{what} is longer than {max_message} bytes (the server's --max-message)")
        };
        let (code, message) = match self {
            Self::NotPost => return Head::of_reply(Some(405), &[("allow", "POST")]),
            Self::MediaType => return Head::of_reply(Some(415), &[]),
            Self::UnknownMethod => (Code::Unimplemented, String::new()),
            Self::Encoding => (
                Code::Unimplemented,
                "the server takes no compressed messages".to_owned(),
            ),
            Self::NoMessage => (Code::Internal, "the request has no message".to_owned()),
            Self::CutOff => (
                Code::Internal,
                "the request ends within a message".to_owned(),
            ),
            Self::Several => (
                Code::Internal,
                "the request has several messages".to_owned(),
            ),
            Self::Compressed => (
                Code::Internal,
                "a message is compressed, without a grpc-encoding".to_owned(),
            ),
            Self::NotProtobuf => (Code::Internal, "the message cannot be decoded".to_owned()),
            Self::TooLong => (Code::OutOfRange, of_limit("the message")),
            Self::ReplyTooLong => (Code::InvalidArgument, of_limit("the reply")),
            Self::NotAscii => (
                Code::InvalidArgument,
                "with response_bytes, the input must be ASCII".to_owned(),
            ),
            Self::Memory => (
                Code::ResourceExhausted,
                "the server's --max-memory is reached".to_owned(),
            ),
            Self::Late => (
                Code::DeadlineExceeded,
                "the request did not come within the server's --request-timeout".to_owned(),
            ),
            Self::Deadline => (Code::DeadlineExceeded, deadline::MISSED.to_owned()),
        };
        let code = (code as i32).to_string();
        let mut fields = vec![GRPC, (STATUS, &*code)];
        if !message.is_empty() {
            fields.push(("grpc-message", &message));
        }
        if self == Self::Encoding {
            fields.push(("grpc-accept-encoding", "identity"));
        }
        Head::of_reply(Some(200), &fields)
    }
}

const GRPC: (&str, &str) = ("content-type", "application/grpc");
const STATUS: &str = "grpc-status";

/// The heads of all replies. Connections know them again, and send a few bytes.
#[derive(Debug)]
pub(super) struct Heads {
    /// The head of a reply with a message.
    pub(super) begin: Head,
    /// The trailers of one.
    pub(super) end: Head,
    refusals: Vec<Head>,
}

impl Heads {
    /// Returns the heads of a server with this limit on messages, in bytes.
    pub(super) fn new(max_message: usize) -> Self {
        let refusals = Refusal::ALL.iter();
        Self {
            begin: Head::of_reply(Some(200), &[GRPC]),
            end: Head::of_reply(None, &[(STATUS, "0")]),
            refusals: refusals.map(|refusal| refusal.head(max_message)).collect(),
        }
    }

    pub(super) fn refusal(&self, refusal: Refusal) -> &Head {
        &self.refusals[refusal as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_stand_at_their_places() {
        for (place, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, place);
        }
    }

    #[test]
    fn the_content_type_is_that_of_protobuf() {
        for (text, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc; charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpc+json", false),
            ("text/plain", false),
        ] {
            assert_eq!(is_grpc(text.as_bytes()), expected, "{text}");
        }
    }
}
