//! Frames: length-prefixed requests with a reply whose length the client chooses.
//!
//! A connection that opens with [`MAGIC`] speaks frames from then on.
//! Request: payload length (u32 BE), [`Reply`] (u32 BE), payload. Reply: length (u32 BE), bytes.

/// The first four bytes of a connection that speaks frames. A line never begins with a zero byte.
pub const MAGIC: [u8; 4] = *b"\0NP1";

/// The longest payload or reply a server takes unless told otherwise, in bytes.
pub const DEFAULT_MAX: usize = 16 << 20;

/// The length of a request's header, in bytes.
pub const REQUEST_HEADER: usize = 8;

/// The length of a reply's header, in bytes.
pub const REPLY_HEADER: usize = 4;

const ECHO: u32 = 0xFFFF_FFFF;
const MESSAGE: u32 = 0xFFFF_FFFE;

/// What a request asks to get back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The payload.
    Echo,
    /// The payload is a `BenchmarkMessage`; the reply is what [`crate::message::say`] makes of it.
    Message,
    /// The payload, repeated and cut to this many bytes (see [`crate::payload::repeat_into`]).
    Bytes(u32),
}

impl Reply {
    /// The form on the wire.
    pub fn to_wire(self) -> u32 {
        match self {
            Self::Echo => ECHO,
            Self::Message => MESSAGE,
            Self::Bytes(length) => length,
        }
    }

    /// The inverse of [`Reply::to_wire`]; every value is valid.
    pub fn from_wire(word: u32) -> Self {
        match word {
            ECHO => Self::Echo,
            MESSAGE => Self::Message,
            length => Self::Bytes(length),
        }
    }
}

/// A request's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// Bytes of payload that follow.
    pub payload: u32,
    /// What to reply.
    pub reply: Reply,
}

impl RequestHeader {
    /// The form on the wire.
    pub fn encode(self) -> [u8; REQUEST_HEADER] {
        let mut bytes = [0; REQUEST_HEADER];
        bytes[..4].copy_from_slice(&self.payload.to_be_bytes());
        bytes[4..].copy_from_slice(&self.reply.to_wire().to_be_bytes());
        bytes
    }

    /// Reads the header at the start of `input`; `None` until it is whole.
    pub fn decode(input: &[u8]) -> Option<Self> {
        let (payload, rest) = input.split_first_chunk()?;
        let (reply, _) = rest.split_first_chunk()?;
        Some(Self {
            payload: u32::from_be_bytes(*payload),
            reply: Reply::from_wire(u32::from_be_bytes(*reply)),
        })
    }
}

/// Reads the length at the start of a reply; `None` until it is whole.
pub fn reply_length(input: &[u8]) -> Option<u32> {
    input.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_survives_the_wire(payload: u32, reply: u32) {
            let header = RequestHeader { payload, reply: Reply::from_wire(reply) };
            prop_assert_eq!(header.reply.to_wire(), reply);
            prop_assert_eq!(RequestHeader::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn a_header_has_the_documented_bytes() {
        let header = RequestHeader {
            payload: 5,
            reply: Reply::Echo,
        };
        assert_eq!(header.encode(), [0, 0, 0, 5, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!(RequestHeader::decode(&header.encode()[..7]), None);
        assert_eq!(reply_length(&[0, 0, 1]), None);
        assert_eq!(reply_length(&[0, 0, 1, 2, 9]), Some(258));
    }
}
