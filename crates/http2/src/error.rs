//! Errors that end a connection.

use std::fmt;

/// An error code (RFC 9113, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl Reason {
            $($(#[$doc])* pub const $name: Self = Self($code);)*

            /// Returns the name of the code; `None` if the RFC has none for it.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// Not an error: the end is orderly.
    NO_ERROR = 0;
    /// The peer broke a rule that has no code of its own.
    PROTOCOL_ERROR = 1;
    /// The sender of the code failed.
    INTERNAL_ERROR = 2;
    /// More was sent than the windows allowed, or a window exceeds 2^31-1 bytes.
    FLOW_CONTROL_ERROR = 3;
    /// Settings were not acknowledged in time.
    SETTINGS_TIMEOUT = 4;
    /// A frame came on a stream that had ended.
    STREAM_CLOSED = 5;
    /// A frame has a length that its type or the settings do not allow.
    FRAME_SIZE_ERROR = 6;
    /// The request was not processed.
    REFUSED_STREAM = 7;
    /// The request is no longer wanted.
    CANCEL = 8;
    /// A header block cannot be decoded.
    COMPRESSION_ERROR = 9;
    /// The connection that CONNECT made was reset.
    CONNECT_ERROR = 10;
    /// The peer behaves as if to exhaust resources.
    ENHANCE_YOUR_CALM = 11;
    /// The transport is not secure enough.
    INADEQUATE_SECURITY = 12;
    /// HTTP/1.1 is wanted.
    HTTP_1_1_REQUIRED = 13;
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A violation of the protocol by the peer, which ends the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Error {
    /// The code that GOAWAY tells the peer.
    pub reason: Reason,
    /// A description for people.
    pub detail: &'static str,
}

impl Error {
    pub(crate) const fn new(reason: Reason, detail: &'static str) -> Self {
        Self { reason, detail }
    }

    pub(crate) const fn protocol(detail: &'static str) -> Self {
        Self::new(Reason::PROTOCOL_ERROR, detail)
    }

    pub(crate) const fn frame_size(detail: &'static str) -> Self {
        Self::new(Reason::FRAME_SIZE_ERROR, detail)
    }

    pub(crate) const fn flow_control(detail: &'static str) -> Self {
        Self::new(Reason::FLOW_CONTROL_ERROR, detail)
    }

    pub(crate) const fn compression(detail: &'static str) -> Self {
        Self::new(Reason::COMPRESSION_ERROR, detail)
    }

    pub(crate) const fn abuse(detail: &'static str) -> Self {
        Self::new(Reason::ENHANCE_YOUR_CALM, detail)
    }
}
