//! The payload of a request, and the reply it must get.
//!
//! Payloads are printable ASCII. A payload of [`TAGGED`] bytes or more begins with the caller's and
//! the request's number in hexadecimal; a shorter one has as many low digits of the request's
//! number as fit. A reply to another request is therefore noticed.

use std::sync::LazyLock;

use bytes::BufMut;
use prost::Message;

use crate::{
    frame::{self, REQUEST_HEADER, Reply, RequestHeader},
    hello::BenchmarkMessage,
    message,
};

/// Length of the shortest payload that carries both numbers, in bytes.
pub const TAGGED: usize = 16;

/// Pattern that each message of a bulk stream repeats from its beginning. Its length is prime, so a
/// chunk that begins at the wrong place is noticed.
pub const BULK_PATTERN: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW\n.";

/// Bytes of a bulk stream that are taken from memory at once.
pub const BULK_PART: usize = 256 << 10;

/// Returns [`BULK_PART`] bytes of the repeated pattern, from this place in the pattern on.
///
/// # Panics
/// Panics beyond the pattern.
pub fn bulk_part(at: usize) -> &'static [u8] {
    static REPEATED: LazyLock<Vec<u8>> =
        LazyLock::new(|| BULK_PATTERN.repeat(BULK_PART / BULK_PATTERN.len() + 2));
    assert!(at < BULK_PATTERN.len(), "a place beyond the pattern");
    &REPEATED[at..][..BULK_PART]
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The requests of one caller: the bytes of the current one, and the check of its reply.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Frame header, payload and end of line, so that both forms are slices.
    bytes: Vec<u8>,
    reply: Reply,
    caller: u32,
    sequence: u32,
    /// The message and its reply, if requests are messages; all are the same, as in rpcx-benchmark.
    messages: Option<Box<MessagePair>>,
}

#[derive(Debug, Clone)]
struct MessagePair {
    request: BenchmarkMessage,
    reply: BenchmarkMessage,
}

impl Exchange {
    /// Creates the requests of caller number `caller`, each with `length` bytes of payload. With
    /// [`Reply::Message`] the payload is [`message::benchmark`], whatever the length.
    pub fn new(caller: u32, length: usize, reply: Reply) -> Self {
        let messages = (reply == Reply::Message).then(|| {
            let request = message::benchmark();
            let reply = message::say(request.clone());
            Box::new(MessagePair { request, reply })
        });
        let mut bytes = Vec::new();
        if let Some(messages) = &messages {
            put_frame(&messages.request, &mut bytes);
        } else {
            let payload = length as u32;
            bytes.extend(RequestHeader { payload, reply }.encode());
            // Letters that differ from byte to byte, so that a shifted reply differs too.
            bytes.extend((0..length).map(|at| b'a' + (at % 23) as u8));
            if length >= TAGGED {
                write_hex(&mut bytes[REQUEST_HEADER..][..8], caller);
            }
        }
        bytes.push(b'\n');
        let mut exchange = Self {
            bytes,
            reply,
            caller,
            sequence: 0,
            messages,
        };
        exchange.number();
        exchange
    }

    /// Moves on to the next request.
    pub fn advance(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        self.number();
    }

    /// Returns the number of the caller.
    pub fn caller(&self) -> u32 {
        self.caller
    }

    /// Returns the number of the caller's current request, from 0 on.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Returns the payload alone.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[REQUEST_HEADER..self.bytes.len() - 1]
    }

    /// Returns the payload as a line, with its `\n`.
    pub fn line(&self) -> &[u8] {
        &self.bytes[REQUEST_HEADER..]
    }

    /// Returns the payload as a frame, with its header.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - 1]
    }

    /// Returns the message to encode for each request, or `None` if requests are only bytes.
    pub fn message(&self) -> Option<&BenchmarkMessage> {
        self.messages.as_ref().map(|messages| &messages.request)
    }

    /// Returns the reply that the request asks for.
    pub fn reply(&self) -> Reply {
        self.reply
    }

    /// Returns the length of the right reply, in bytes.
    pub fn reply_length(&self) -> usize {
        let messages = self.messages.as_ref();
        match self.reply {
            Reply::Echo => self.payload().len(),
            Reply::Message => messages.map_or(0, |messages| messages.reply.encoded_len()),
            Reply::Times => frame::TIMES,
            Reply::Bytes(length) => length as usize,
        }
    }

    /// Returns true if `reply` is the right one. Bytes are compared one by one, a message field by
    /// field; of times only the length is known.
    pub fn verify(&self, reply: &[u8]) -> bool {
        let payload = self.payload();
        match self.reply {
            Reply::Echo => reply == payload,
            Reply::Message => {
                BenchmarkMessage::decode(reply).is_ok_and(|reply| self.verify_message(&reply))
            }
            Reply::Times => reply.len() == frame::TIMES,
            Reply::Bytes(length) => {
                let unit = unit(payload);
                let mut chunks = reply.chunks(unit.len());
                reply.len() == length as usize && chunks.all(|chunk| *chunk == unit[..chunk.len()])
            }
        }
    }

    /// Returns true if `reply` is the right reply to the message.
    pub fn verify_message(&self, reply: &BenchmarkMessage) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.reply == *reply)
    }

    fn number(&mut self) {
        if self.messages.is_some() {
            return;
        }
        let end = self.bytes.len() - 1;
        let payload = &mut self.bytes[REQUEST_HEADER..end];
        let place = match payload.len() {
            TAGGED.. => 8..TAGGED,
            length => 0..length.min(8),
        };
        write_hex(&mut payload[place], self.sequence);
    }
}

/// Appends a message as a frame that asks for a message.
pub fn put_frame(message: &BenchmarkMessage, out: &mut Vec<u8>) {
    let header = RequestHeader {
        payload: message.encoded_len() as u32,
        reply: Reply::Message,
    };
    out.put_slice(&header.encode());
    message.encode_raw(out);
}

/// Length to which a short payload is repeated before it is copied, in bytes: it fits the L1 cache.
const BLOCK: usize = 4 << 10;

/// Bytes that are repeated in place of an empty payload.
const EMPTY: &[u8] = b"x";

/// Appends `payload`, repeated and cut to `length` bytes; an empty payload counts as `x`.
pub fn repeat_into(payload: &[u8], length: usize, out: &mut impl BufMut) {
    let payload = unit(payload);
    if payload.len() > BLOCK / 2 || length <= payload.len() * 4 {
        return put_repeated(payload, length, out);
    }
    let mut block = [0; BLOCK];
    let mut filled = 0;
    // Whole payloads only, so that blocks can follow each other.
    for part in block[..length.min(BLOCK)].chunks_exact_mut(payload.len()) {
        part.copy_from_slice(payload);
        filled += payload.len();
    }
    put_repeated(&block[..filled], length, out);
}

/// Returns the bytes that a reply repeats.
pub(crate) fn unit(payload: &[u8]) -> &[u8] {
    if payload.is_empty() { EMPTY } else { payload }
}

fn put_repeated(unit: &[u8], length: usize, out: &mut impl BufMut) {
    let mut left = length;
    while left > 0 {
        let part = &unit[..unit.len().min(left)];
        out.put_slice(part);
        left -= part.len();
    }
}

/// Fills `out` with the low hexadecimal digits of `number`.
fn write_hex(out: &mut [u8], mut number: u32) {
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(number & 0xF) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_payload_carries_caller_and_number() {
        let mut exchange = Exchange::new(0x2a, 20, Reply::Echo);
        exchange.advance();
        assert_eq!(exchange.payload(), b"0000002a00000001qrst");
        assert_eq!(exchange.line(), b"0000002a00000001qrst\n");
        assert_eq!(
            exchange.frame(),
            b"\0\0\0\x14\xFF\xFF\xFF\xFF0000002a00000001qrst"
        );
    }

    #[test]
    fn a_short_payload_still_differs_from_request_to_request() {
        let mut exchange = Exchange::new(7, 4, Reply::Echo);
        let first = exchange.payload().to_vec();
        exchange.advance();
        assert!(!exchange.verify(&first));
        assert!(exchange.verify(b"0001"));
    }

    #[test]
    fn the_servers_reply_to_a_message_is_verified() {
        let exchange = Exchange::new(0, 4, Reply::Message);
        assert_eq!(exchange.payload().len(), message::LENGTH);
        let reply =
            message::say(BenchmarkMessage::decode(exchange.payload()).unwrap()).encode_to_vec();
        assert_eq!(reply.len(), exchange.reply_length());
        assert!(
            exchange.verify(&reply)
                && !exchange.verify(exchange.payload())
                && !exchange.verify(&reply[1..])
        );
        let mut again = Vec::new();
        put_frame(exchange.message().unwrap(), &mut again);
        assert_eq!(again, exchange.frame());
    }

    #[test]
    fn long_replies_repeat_a_payload_of_any_length() {
        for length in [1, 3, 61, 2047, 2048, 2049, 5000] {
            let payload: Vec<u8> = (0..length).map(|at: usize| at as u8).collect();
            for reply in [
                0,
                1,
                4 * length,
                4 * length + 1,
                BLOCK - 1,
                BLOCK,
                BLOCK + 1,
                100_003,
            ] {
                let mut answer = b"before".to_vec();
                repeat_into(&payload, reply, &mut answer);
                let expected: Vec<u8> = payload.iter().copied().cycle().take(reply).collect();
                assert!(answer[6..] == expected, "{length} repeated to {reply}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_servers_reply_is_the_one_the_client_expects(
            length in 0_usize..200, reply in 0_u32..500, steps in 0_usize..5, flip: prop::sample::Index,
        ) {
            let mut exchange = Exchange::new(3, length, Reply::Bytes(reply));
            for _ in 0..steps {
                exchange.advance();
            }
            prop_assert!(exchange.payload().iter().all(u8::is_ascii_graphic));
            let mut answer = Vec::new();
            repeat_into(exchange.payload(), reply as usize, &mut answer);
            prop_assert!(exchange.verify(&answer));
            if reply > 0 {
                answer[flip.index(reply as usize)] ^= 1;
                prop_assert!(!exchange.verify(&answer));
                answer.pop();
                prop_assert!(!exchange.verify(&answer));
            }
        }
    }
}
