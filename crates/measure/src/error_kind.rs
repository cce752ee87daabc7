//! Why a request failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a request failed. Its text form is the name in tables and result files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub enum ErrorKind {
    /// Nobody listens there.
    Refused,
    /// The connection was not there within the request's time.
    ConnectTimeout,
    /// The TLS handshake, or a certificate.
    Tls,
    /// The peer broke the connection off.
    Reset,
    /// The peer closed the connection in mid-request.
    Eof,
    /// No whole reply within the request's time.
    Timeout,
    /// An HTTP/2 server said goodbye.
    Goaway,
    /// A gRPC status other than OK.
    Grpc(u16),
    /// An HTTP status that is no success.
    Http(u16),
    /// A reply that is not, byte for byte, the right one; over plain HTTP, one of another length
    /// than the first.
    Mismatch,
    /// Bytes that are not of the protocol.
    Protocol,
    /// Anything else that the system said.
    Other,
}

const NAMES: [(ErrorKind, &str); 10] = [
    (ErrorKind::Refused, "refused"),
    (ErrorKind::ConnectTimeout, "connect_timeout"),
    (ErrorKind::Tls, "tls"),
    (ErrorKind::Reset, "reset"),
    (ErrorKind::Eof, "eof"),
    (ErrorKind::Timeout, "timeout"),
    (ErrorKind::Goaway, "goaway"),
    (ErrorKind::Mismatch, "mismatch"),
    (ErrorKind::Protocol, "protocol"),
    (ErrorKind::Other, "other"),
];

impl ErrorKind {
    /// Returns true if the client gave up, so that the request's time is at least what it waited.
    pub fn is_timeout(self) -> bool {
        matches!(self, Self::Timeout | Self::ConnectTimeout)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grpc(code) => write!(f, "grpc_{code}"),
            Self::Http(status) => write!(f, "http_{status}"),
            named => f.write_str(
                NAMES
                    .iter()
                    .find(|(kind, _)| kind == named)
                    .map_or("other", |(_, name)| name),
            ),
        }
    }
}

impl From<ErrorKind> for String {
    fn from(kind: ErrorKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for ErrorKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = |prefix: &str| text.strip_prefix(prefix).and_then(|code| code.parse().ok());
        let named = NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(kind, _)| *kind);
        named
            .or_else(|| number("grpc_").map(Self::Grpc))
            .or_else(|| number("http_").map(Self::Http))
            .ok_or_else(|| format!("'{text}' is not a kind of error"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let all = NAMES
            .iter()
            .map(|(kind, _)| *kind)
            .chain([ErrorKind::Grpc(14), ErrorKind::Http(503)]);
        for kind in all {
            assert_eq!(ErrorKind::try_from(kind.to_string()), Ok(kind));
        }
        assert!(ErrorKind::try_from("grpc_x".to_owned()).is_err());
    }
}
