//! Messages: their prefix, and the fields of Echo.

use std::borrow::Cow;

use netping_protocol::{echopb::EchoRequest, hello::BenchmarkMessage, message};
use prost::{
    Message,
    encoding::{WireType, decode_varint, encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::routes::Refusal;

/// Length of a message's prefix, in bytes: whether it is compressed, and its length.
pub(super) const PREFIX: usize = 5;

/// The field of the text, in requests and replies.
const TEXT: u32 = 1;
/// The field of the reply's length.
const RESPONSE_BYTES: u32 = 2;

/// Checks a prefix, and returns the message's length.
pub(super) fn length([flag, length @ ..]: [u8; PREFIX], limit: usize) -> Result<usize, Refusal> {
    let length = u32::from_be_bytes(length) as usize;
    match flag {
        0 if length > limit => Err(Refusal::TooLong),
        0 => Ok(length),
        _ => Err(Refusal::Compressed),
    }
}

/// Returns the one message of a request's body.
pub(super) fn unary(body: &[u8], limit: usize) -> Result<&[u8], Refusal> {
    let Some((prefix, message)) = body.split_first_chunk() else {
        return Err(if body.is_empty() {
            Refusal::NoMessage
        } else {
            Refusal::CutOff
        });
    };
    let length = length(*prefix, limit)?;
    match message.len() {
        whole if whole == length => Ok(message),
        more if more > length => Err(Refusal::Several),
        _ => Err(Refusal::CutOff),
    }
}

/// A request of Echo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Echo<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) response_bytes: usize,
}

impl<'a> Echo<'a> {
    pub(super) fn decode(message: &'a [u8]) -> Result<Self, Refusal> {
        if let Some(echo) = Self::of_known_fields(message) {
            return Ok(echo);
        }
        // Other fields, or no message at all.
        let decoded = EchoRequest::decode(message).map_err(|_| Refusal::NotProtobuf)?;
        Ok(Self {
            text: decoded.input.into(),
            response_bytes: decoded.response_bytes as usize,
        })
    }

    /// Decodes without a copy; `None` if there are other fields than these two.
    fn of_known_fields(mut message: &'a [u8]) -> Option<Self> {
        const TEXT_KEY: u8 = (TEXT << 3) as u8 | WireType::LengthDelimited as u8;
        const LENGTH_KEY: u8 = (RESPONSE_BYTES << 3) as u8 | WireType::Varint as u8;
        let (mut text, mut response_bytes) = (&[][..], 0);
        while let Some((&key, rest)) = message.split_first() {
            message = rest;
            let value = decode_varint(&mut message).ok()?;
            match key {
                TEXT_KEY => (text, message) = message.split_at_checked(value.try_into().ok()?)?,
                // As protobuf has it, the value of 32 bits is the low part.
                LENGTH_KEY => response_bytes = value as u32 as usize,
                _ => return None,
            }
            // Also of a text that another one follows: each must be UTF-8.
            if key == TEXT_KEY {
                std::str::from_utf8(text).ok()?;
            }
        }
        Some(Self {
            text: std::str::from_utf8(text).ok()?.into(),
            response_bytes,
        })
    }
}

/// Appends a reply of Echo whose text has `length` bytes, which `write` appends.
pub(super) fn echo_reply(length: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let field = match length as u64 {
        0 => 0,
        bytes => key_len(TEXT) + encoded_len_varint(bytes) + length,
    };
    prefix(field, out);
    if length > 0 {
        encode_key(TEXT, WireType::LengthDelimited, out);
        encode_varint(length as u64, out);
        write(out);
    }
}

/// Appends the reply of Say. Its message is decoded and encoded in full: that is what it measures.
pub(super) fn say_reply(message: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let request = BenchmarkMessage::decode(message).map_err(|_| Refusal::NotProtobuf)?;
    let reply = message::say(request);
    prefix(reply.encoded_len(), out);
    reply.encode_raw(out);
    Ok(())
}

fn prefix(length: usize, out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(length as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_one_message() {
        assert_eq!(unary(b"\0\0\0\0\x02ab", 2), Ok(&b"ab"[..]));
        assert_eq!(unary(b"\0\0\0\0\0", 2), Ok(&b""[..]));
        for (body, refusal) in [
            (&b""[..], Refusal::NoMessage),
            (b"\0\0\0\0", Refusal::CutOff),
            (b"\0\0\0\0\x02a", Refusal::CutOff),
            (b"\0\0\0\0\x01ab", Refusal::Several),
            (b"\0\0\0\0\x03abc", Refusal::TooLong),
            (b"\x01\0\0\0\x01a", Refusal::Compressed),
        ] {
            assert_eq!(unary(body, 2), Err(refusal), "{body:?}");
        }
    }

    #[test]
    fn requests_are_decoded_as_prost_does() {
        let messages: [&[u8]; 12] = [
            b"",
            b"\x0a\x03abc",
            b"\x0a\x03abc\x10\x07",
            b"\x10\x07\x0a\x03abc",
            b"\x0a\x03abc\x0a\x01d",
            b"\x0a\x01\xff\x0a\x01d",
            b"\x0a\x01\xff",
            b"\x0a\x05abc",
            b"\x0a",
            b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x1a\x01x\x0a\x01a",
            b"\x08\x01",
        ];
        for bytes in messages {
            let expected = EchoRequest::decode(bytes).ok();
            let decoded = Echo::decode(bytes).ok();
            let decoded = decoded.map(|echo| EchoRequest {
                input: echo.text.into_owned(),
                response_bytes: echo.response_bytes as u32,
            });
            assert_eq!(decoded, expected, "{bytes:?}");
        }
    }

    #[test]
    fn replies_are_encoded_as_prost_does() {
        for length in [0, 1, 127, 128, 70_000] {
            let output = "x".repeat(length);
            let mut reply = Vec::new();
            echo_reply(length, &mut reply, |out| {
                out.extend_from_slice(output.as_bytes());
            });
            let message = unary(&reply, 1 << 20).unwrap();
            let expected = netping_protocol::echopb::EchoResponse { output };
            assert_eq!(message, expected.encode_to_vec());
        }
    }
}
