//! Parses the messages of a gRPC stream of `DataResponse` as their bytes come, without buffering.

use netping_measure::error_kind::ErrorKind;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::{
    check::Check,
    cut::{Carried, Lengths},
};
use crate::transport::{
    Failure,
    grpc_h2::{PREFIX, put_prefix},
};

/// Remedy for servers that send other lengths than they were asked for.
const CHOICE: &str = "; a server that chooses its own sizes needs --size server --chunk server";

/// The number of the field `data`.
const DATA: u32 = 1;

/// The key of that field: its number and its wire type, which is 2 for values with a length.
const KEY: u8 = ((DATA << 3) | 2) as u8;

/// Longest varint of 32 bits, in bytes.
const LONGEST_VARINT: usize = 5;

/// Longest sequence of bytes before a message's data.
const LONGEST_HEAD: usize = PREFIX + 1 + LONGEST_VARINT;

/// Encodes a message with its prefix, as it goes over the wire.
pub(super) fn message(data: &[u8]) -> Vec<u8> {
    let length = key_len(DATA) + encoded_len_varint(data.len() as u64) + data.len();
    let mut bytes = bytes::BytesMut::with_capacity(PREFIX + length);
    put_prefix(&mut bytes, length);
    encode_key(DATA, WireType::LengthDelimited, &mut bytes);
    encode_varint(data.len() as u64, &mut bytes);
    bytes.extend_from_slice(data);
    bytes.into()
}

/// The messages of one stream in one run.
#[derive(Debug)]
pub(super) struct Messages {
    lengths: Lengths,
    check: Check,
    /// Bytes of the current message before its data, as far as they have come.
    head: [u8; LONGEST_HEAD],
    filled: usize,
    /// Bytes of the current message's data that are still to come.
    left: usize,
}

impl Messages {
    pub fn new(lengths: Lengths, check: Check) -> Self {
        Self {
            lengths,
            check,
            head: [0; LONGEST_HEAD],
            filled: 0,
            left: 0,
        }
    }

    /// Parses the next bytes of the stream.
    pub fn feed(&mut self, mut input: &[u8]) -> Result<(), Failure> {
        while let Some((&next, rest)) = input.split_first() {
            if self.left > 0 {
                let (own, rest) = input.split_at(self.left.min(input.len()));
                self.check.take(own)?;
                self.left -= own.len();
                input = rest;
                continue;
            }
            self.head[self.filled] = next;
            self.filled += 1;
            input = rest;
            if let Some(length) = data_length(&self.head[..self.filled])? {
                self.filled = 0;
                self.begin(length)?;
            }
        }
        Ok(())
    }

    /// Begins a message with `length` bytes of data.
    fn begin(&mut self, length: usize) -> Result<(), Failure> {
        let begun = self.lengths.begin(length as u64);
        begun.map_err(|what| Failure::request(ErrorKind::Mismatch, what + CHOICE))?;
        self.left = length;
        self.check.begin();
        Ok(())
    }

    /// Ends the stream, which must not be within a message and must be complete. Returns what it
    /// carried.
    pub fn finish(&self) -> Result<Carried, Failure> {
        if self.filled > 0 || self.left > 0 {
            return Err(wrong("ends within a message"));
        }
        self.check.finish()?;
        let carried = self.lengths.carried();
        if carried.bytes == 0 {
            let detail = "the server sent no byte";
            return Err(Failure::request(ErrorKind::Mismatch, detail));
        }
        Ok(carried)
    }
}

/// Returns the length of a message's data once `head` is complete.
fn data_length(head: &[u8]) -> Result<Option<usize>, Failure> {
    let Some((prefix, field)) = head.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(wrong("has a compressed message"));
    }
    let message = u32::from_be_bytes(length) as usize;
    let varint = match field {
        // A message without data has no field.
        _ if message == 0 => return Ok(Some(0)),
        [] => return Ok(None),
        [KEY, varint @ ..] => varint,
        _ => return Err(wrong("has a message that is not a DataResponse")),
    };
    if varint.last().is_none_or(|last| last & 0x80 != 0) {
        let endless = varint.len() == LONGEST_VARINT;
        return if endless {
            Err(wrong("has a message of endless length"))
        } else {
            Ok(None)
        };
    }
    let data = varint
        .iter()
        .rev()
        .fold(0, |sum, byte| (sum << 7) | usize::from(byte & 0x7F));
    if 1 + varint.len() + data != message {
        return Err(wrong("has a message with more in it than its data"));
    }
    Ok(Some(data))
}

fn wrong(what: &str) -> Failure {
    Failure::request(ErrorKind::Protocol, format!("the stream {what}"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use netping_protocol::grpc_bench::DataResponse;
    use prost::Message;

    use super::*;

    #[test]
    fn messages_are_encoded_as_prost_does() {
        for length in [1, 127, 128, 16_383, 16_384, 3_000_000] {
            let data = vec![b'x'; length];
            let own = message(&data);
            assert_eq!(own[1..PREFIX], ((own.len() - PREFIX) as u32).to_be_bytes());
            assert!(
                DataResponse::decode(&own[PREFIX..]).unwrap().data == data,
                "{length}"
            );
        }
    }

    #[test]
    fn frame_boundaries_within_messages_do_not_matter() {
        let pattern = Bytes::from(vec![b'x'; 300]);
        let stream = [
            message(&pattern),
            message(&pattern),
            message(&pattern[..129]),
        ]
        .concat();
        for step in (1..20).chain([100, 304, 305, 400, 1000]) {
            let mut messages = Messages::new(
                Lengths::new(300, 729),
                Check::new(729, Some(pattern.clone())),
            );
            for part in stream.chunks(step) {
                messages.feed(part).unwrap();
            }
            messages.finish().unwrap();
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let fed = |bytes: &[u8]| {
            let mut messages = Messages::new(Lengths::new(3, 3), Check::new(3, None));
            messages
                .feed(bytes)
                .and_then(|()| messages.finish())
                .unwrap_err()
        };
        let cases: [(&[u8], &str); 7] = [
            (b"\x01\0\0\0\x05\x0a\x03abc", "compressed"),
            (b"\0\0\0\0\x05\x12\x03abc", "not a DataResponse"),
            (b"\0\0\0\0\x07\x0a\x03abc\x10\x01", "more in it"),
            (b"\0\0\0\0\x07\x0a\xff\xff\xff\xff\xff", "endless"),
            (b"\0\0\0\0\x05\x0a\x03ab", "within a message"),
            (b"\0\0\0", "within a message"),
            (b"", "received 0 bytes instead of 3"),
        ];
        for (bytes, says) in cases {
            assert!(fed(bytes).detail.contains(says), "{says}: {}", fed(bytes));
        }
    }

    #[test]
    fn messages_of_unexpected_length_are_rejected() {
        let fed = |lengths: &[usize]| {
            // Messages of 3, 3 and 1 bytes.
            let mut messages = Messages::new(Lengths::new(3, 7), Check::new(7, None));
            lengths
                .iter()
                .try_for_each(|length| messages.feed(&message(&vec![b'x'; *length])))
        };
        assert_eq!(fed(&[3, 3, 1]), Ok(()));
        let cases: [(&[usize], &str); 4] = [
            (&[7], "a message of 7 bytes where 3 were asked for"),
            (&[3, 1], "a message of 1 bytes where 3 were asked for"),
            (&[3, 3, 3], "a message of 3 bytes where 1 were asked for"),
            (&[3, 3, 1, 1], "an unrequested message of 1 bytes"),
        ];
        for (lengths, says) in cases {
            let failure = fed(lengths).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::Mismatch);
            assert_eq!(failure.detail, format!("{says}{CHOICE}"));
        }
        // A message without data, as gRPC has it.
        let mut messages = Messages::new(Lengths::new(3, 7), Check::new(7, None));
        assert_eq!(
            messages.feed(&[0; PREFIX]).unwrap_err().kind,
            ErrorKind::Mismatch
        );
    }
}
