//! Frames: length-prefixed requests with a reply whose length the client chooses.
//!
//! A connection that opens with [`MAGIC`] speaks frames from then on.
//! Request: payload length (u32 BE), [`Reply`] (u32 BE), payload. Reply: length (u32 BE), bytes.

/// First four bytes of a connection that speaks frames. A line never begins with a zero byte.
pub const MAGIC: [u8; 4] = *b"\0NP1";

/// Default limit on payloads and replies, in bytes.
pub const DEFAULT_MAX: usize = 16 << 20;

/// Length of a request's header, in bytes.
pub const REQUEST_HEADER: usize = 8;

/// Length of a reply's header, in bytes.
pub const REPLY_HEADER: usize = 4;

/// Length of the reply to [`Reply::Times`], in bytes.
pub const TIMES: usize = 16;

const ECHO: u32 = 0xFFFF_FFFF;
const MESSAGE: u32 = 0xFFFF_FFFE;
const SERVER_TIMES: u32 = 0xFFFF_FFFD;

/// The reply that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The payload.
    Echo,
    /// The result of [`crate::message::say`] on the payload, which is a `BenchmarkMessage`.
    Message,
    /// The times at which the server received the request and sent the reply, in nanoseconds since
    /// 1970 (two u64 BE).
    Times,
    /// The payload, repeated and cut to this many bytes (see [`crate::payload::repeat_into`]).
    Bytes(u32),
}

impl Reply {
    /// Returns the form on the wire.
    pub fn to_wire(self) -> u32 {
        match self {
            Self::Echo => ECHO,
            Self::Message => MESSAGE,
            Self::Times => SERVER_TIMES,
            Self::Bytes(length) => length,
        }
    }

    /// Reads the form on the wire; every value is valid.
    pub fn from_wire(word: u32) -> Self {
        match word {
            ECHO => Self::Echo,
            MESSAGE => Self::Message,
            SERVER_TIMES => Self::Times,
            length => Self::Bytes(length),
        }
    }
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// Length of the payload that follows, in bytes.
    pub payload: u32,
    /// Requested reply.
    pub reply: Reply,
}

impl RequestHeader {
    /// Returns the form on the wire.
    pub fn encode(self) -> [u8; REQUEST_HEADER] {
        let words = u64::from(self.payload) << 32 | u64::from(self.reply.to_wire());
        words.to_be_bytes()
    }

    /// Reads the header at the start of `input`. Returns `None` if it needs more bytes.
    pub fn decode(input: &[u8]) -> Option<Self> {
        let (payload, rest) = input.split_first_chunk()?;
        let (reply, _) = rest.split_first_chunk()?;
        Some(Self {
            payload: u32::from_be_bytes(*payload),
            reply: Reply::from_wire(u32::from_be_bytes(*reply)),
        })
    }
}

/// Reads the length at the start of a reply. Returns `None` if it needs more bytes.
pub fn reply_length(input: &[u8]) -> Option<u32> {
    input.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Encodes the reply to [`Reply::Times`].
pub fn encode_times(received: u64, sent: u64) -> [u8; TIMES] {
    (u128::from(received) << 64 | u128::from(sent)).to_be_bytes()
}

/// Reads the reply to [`Reply::Times`]: when the request was received, and when the reply was sent.
pub fn decode_times(bytes: &[u8; TIMES]) -> (u64, u64) {
    let times = u128::from_be_bytes(*bytes);
    ((times >> 64) as u64, times as u64)
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
    fn times_survive_the_wire() {
        let (received, sent) = (1_769_860_800_250_000_001, u64::MAX);
        assert_eq!(
            decode_times(&encode_times(received, sent)),
            (received, sent)
        );
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
