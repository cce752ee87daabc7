//! The server's side of a byte stream: lines or frames in, replies out. No socket, and no clock but
//! the time of day, which a peer may ask for.
//!
//! ```
//! use bytes::BytesMut;
//! use netping_protocol::codec::{Codec, Limits};
//!
//! let mut codec = Codec::new(Limits::default());
//! let mut input = &b"ping\npo"[..];
//! let mut output = BytesMut::new();
//! while let Some(request) = codec.next(&mut input)? {
//!     let mut rest = codec.reply(request, &mut output);
//!     while let Some(part) = rest.next(&mut output) {
//!         // A server writes the output and then the part here, and clears the output.
//!         output.extend_from_slice(part);
//!     }
//! }
//! assert_eq!(output, "ping\n");
//! assert_eq!(input, b"po");
//! # Ok::<(), netping_protocol::codec::Violation>(())
//! ```

use std::{
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{Buf, BytesMut};
use prost::Message;

use crate::{
    frame::{self, Reply, RequestHeader},
    hello::BenchmarkMessage,
    line, message,
    payload::{self, BULK_PART, BULK_PATTERN},
    tls,
};

/// Time a server keeps reading after reporting a [`Violation`], so that the peer receives the
/// error.
pub const LINGER: Duration = Duration::from_secs(1);

/// Bytes of a reply that are appended at once, unless memory has them already. Longer replies are made as the peer takes them, so
/// that a few bytes of a request never cost more memory than this.
pub const PART: usize = 64 << 10;

/// Bytes for which room is made when a frame begins; for a longer one it grows as its bytes come.
const ROOM: usize = 4 << 10;

/// Limits on the requests of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest line without its `\n`, in bytes.
    pub max_line: usize,
    /// Longest payload and longest reply of a frame, in bytes.
    pub max_frame: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_line: line::DEFAULT_MAX,
            max_frame: frame::DEFAULT_MAX,
        }
    }
}

/// A peer broke the protocol. The connection ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// No `\n` within the limit.
    #[error("a line longer than {0} bytes (the server's --max-line)")]
    LineTooLong(usize),
    /// A payload or a reply over the limit.
    #[error("a frame of {length} bytes, longer than {limit} (the server's --max-frame)")]
    FrameTooLong {
        /// Requested length, in bytes.
        length: usize,
        /// Allowed length, in bytes.
        limit: usize,
    },
    /// The connection opens with a zero byte but not with [`frame::MAGIC`].
    #[error("the connection opens with a zero byte but not with the frames' magic bytes")]
    Magic,
    /// The peer began a TLS handshake on a clear-text port.
    #[error("the peer speaks TLS, and this port does not")]
    Tls,
    /// The payload of a [`Reply::Message`] request could not be decoded.
    #[error("the payload is not a BenchmarkMessage: {0}")]
    Message(String),
}

impl Violation {
    /// Returns the kind under which the violation is counted.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::LineTooLong(_) => "line_too_long",
            Self::FrameTooLong { .. } => "frame_too_long",
            Self::Magic => "magic",
            Self::Tls => "tls",
            Self::Message(_) => "message",
        }
    }
}

impl From<Violation> for io::Error {
    fn from(violation: Violation) -> Self {
        Self::new(io::ErrorKind::InvalidData, violation)
    }
}

/// A request as the peer sent it, in the input.
#[derive(Debug, Clone, PartialEq)]
pub enum Request<'a> {
    /// A line, with its `\n`.
    Line(&'a [u8]),
    /// The payload of a frame, and the length of the reply it asks for, in bytes.
    Frame(&'a [u8], u32),
    /// The message of a frame that asks for the `Hello` service's reply to it.
    Message(Box<BenchmarkMessage>),
    /// A frame that asks for the server's times; it was received this many nanoseconds after 1970.
    Times(u64),
}

/// Returns the time of day, in nanoseconds since 1970, UTC.
#[expect(clippy::disallowed_methods, reason = "peers ask for the time of day")]
fn time_of_day() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |since| since.as_nanos() as u64)
}

/// The rest of a long reply to a request that is still in the input; nothing of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "the reply may not be whole"]
pub struct Rest<'a> {
    /// The bytes that the reply repeats; empty only where nothing is left.
    pattern: &'a [u8],
    /// Place in the pattern at which it goes on.
    at: usize,
    /// Bytes that are left.
    left: usize,
}

impl Rest<'_> {
    /// Takes the next part off it; `None` at its end. A bulk stream's part is returned, as memory has
    /// it already, and follows what is in `output`. Any other is appended there, and what is returned
    /// is empty.
    pub fn next(&mut self, output: &mut BytesMut) -> Option<&'static [u8]> {
        if self.left == 0 {
            return None;
        }
        let at = self.at;
        if self.pattern == BULK_PATTERN {
            let part = self.take(BULK_PART);
            return Some(&payload::bulk_part(at)[..part]);
        }
        let part = self.take(PART);
        output.reserve(part);
        let first = part.min(self.pattern.len() - at);
        output.extend_from_slice(&self.pattern[at..][..first]);
        payload::repeat_into(self.pattern, part - first, output);
        Some(&[])
    }

    /// Takes at most `most` bytes off it; returns their number.
    fn take(&mut self, most: usize) -> usize {
        let part = self.left.min(most);
        self.at = (self.at + part) % self.pattern.len();
        self.left -= part;
        part
    }
}

/// The state of one stream.
#[derive(Debug)]
pub struct Codec {
    limits: Limits,
    /// True for frames, false for lines; `None` until the first byte tells.
    is_framed: Option<bool>,
    /// Bytes of the current line that have been searched for `\n`.
    scanned: usize,
    /// Bytes to make room for.
    room: usize,
}

impl Codec {
    /// Creates the codec of a connection on which nothing has been read yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            is_framed: None,
            scanned: 0,
            room: 0,
        }
    }

    /// Creates the codec of a stream that begins with frames, as QUIC's streams do.
    pub fn frames(limits: Limits) -> Self {
        Self {
            is_framed: Some(true),
            ..Self::new(limits)
        }
    }

    /// Takes the next whole request off `input`. Returns `None` if it needs more bytes: the next
    /// call's input begins with what this one has left.
    ///
    /// # Errors
    /// Fails with a [`Violation`] as soon as the input shows one, without waiting for the rest of
    /// an over-long line or frame.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Request<'a>>, Violation> {
        self.room = 0;
        if self.is_framed.is_none() {
            self.is_framed = detect(input)?;
        }
        match self.is_framed {
            None => Ok(None),
            Some(true) => self.next_frame(input),
            Some(false) => self.next_line(input),
        }
    }

    /// Returns the bytes to make room for, once [`Codec::next`] has returned `None`: as many as are
    /// missing of a frame, and at most as many again as have come.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Appends the reply to `request`, or the head of a long one; returns what is left, which comes
    /// before the next reply.
    pub fn reply<'a>(&self, request: Request<'a>, output: &mut BytesMut) -> Rest<'a> {
        match request {
            Request::Line(line) => return repeat(line, line.len(), output),
            Request::Frame(payload, length) => {
                output.extend_from_slice(&length.to_be_bytes());
                return repeat(payload, length as usize, output);
            }
            Request::Message(request) => {
                let reply = message::say(*request);
                let length = reply.encoded_len();
                // Without the doubling of what grows as it comes.
                output.reserve(size_of::<u32>() + length);
                output.extend_from_slice(&(length as u32).to_be_bytes());
                reply.encode_raw(output);
            }
            Request::Times(received) => {
                output.extend_from_slice(&(frame::TIMES as u32).to_be_bytes());
                output.extend_from_slice(&frame::encode_times(received, time_of_day()));
            }
        }
        Rest::default()
    }

    /// Appends the error for a peer that broke the protocol, as a line or a frame.
    pub fn refuse(&self, violation: &Violation, output: &mut BytesMut) {
        let text = format!("error: {violation}\n");
        if self.is_framed == Some(true) {
            output.extend_from_slice(&(text.len() as u32).to_be_bytes());
        }
        output.extend_from_slice(text.as_bytes());
    }

    fn next_line<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Request<'a>>, Violation> {
        let found = line::find(input, self.scanned);
        if found.unwrap_or(input.len()) > self.limits.max_line {
            return Err(Violation::LineTooLong(self.limits.max_line));
        }
        let Some(length) = found else {
            self.scanned = input.len();
            return Ok(None);
        };
        self.scanned = 0;
        Ok(Some(Request::Line(take(input, length + 1))))
    }

    fn next_frame<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Request<'a>>, Violation> {
        let Some(header) = RequestHeader::decode(input) else {
            return Ok(None);
        };
        let payload = header.payload as usize;
        let length = match header.reply {
            Reply::Bytes(reply) => payload.max(reply as usize),
            Reply::Echo | Reply::Message | Reply::Times => payload,
        };
        let limit = self.limits.max_frame;
        if length > limit {
            return Err(Violation::FrameTooLong { length, limit });
        }
        if input.len() < frame::REQUEST_HEADER + payload {
            let missing = frame::REQUEST_HEADER + payload - input.len();
            self.room = missing.min(input.len().max(ROOM));
            return Ok(None);
        }
        input.advance(frame::REQUEST_HEADER);
        let payload = take(input, payload);
        Ok(Some(match header.reply {
            Reply::Echo => Request::Frame(payload, header.payload),
            Reply::Bytes(length) => Request::Frame(payload, length),
            Reply::Message => BenchmarkMessage::decode(payload)
                .map(|message| Request::Message(Box::new(message)))
                .map_err(|error| Violation::Message(error.to_string()))?,
            Reply::Times => Request::Times(time_of_day()),
        }))
    }
}

/// Decides between frames and lines, and takes the frames' magic bytes off the input. Returns `None`
/// if it needs more bytes.
fn detect(input: &mut &[u8]) -> Result<Option<bool>, Violation> {
    match input.first() {
        None => Ok(None),
        Some(0) => {
            let seen = input.len().min(frame::MAGIC.len());
            if input[..seen] != frame::MAGIC[..seen] {
                return Err(Violation::Magic);
            }
            if seen < frame::MAGIC.len() {
                return Ok(None);
            }
            input.advance(seen);
            Ok(Some(true))
        }
        Some(&tls::HANDSHAKE) => Err(Violation::Tls),
        Some(_) => Ok(Some(false)),
    }
}

/// Takes the first bytes of the input, which has as many.
fn take<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(length);
    *input = rest;
    taken
}

/// Appends `payload`, repeated and cut to `length` bytes, unless that is long: then it is what is left.
fn repeat<'a>(payload: &'a [u8], length: usize, output: &mut BytesMut) -> Rest<'a> {
    if length <= PART {
        payload::repeat_into(payload, length, output);
        return Rest::default();
    }
    Rest {
        pattern: payload::unit(payload),
        at: 0,
        left: length,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the replies to the whole requests in the input, which keeps the rest.
    fn serve(codec: &mut Codec, input: &mut BytesMut) -> Result<BytesMut, Violation> {
        let mut output = BytesMut::new();
        let whole = input.split();
        let mut left = &whole[..];
        while let Some(request) = codec.next(&mut left)? {
            let mut rest = codec.reply(request, &mut output);
            let mut before = output.len();
            while let Some(part) = rest.next(&mut output) {
                assert!(output.len() - before <= PART && part.len() <= BULK_PART);
                output.extend_from_slice(part);
                before = output.len();
            }
        }
        input.extend_from_slice(left);
        Ok(output)
    }

    fn framed(payload: &[u8], reply: Reply) -> Vec<u8> {
        let header = RequestHeader {
            payload: payload.len() as u32,
            reply,
        };
        [&header.encode(), payload].concat()
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_same_replies(
            payloads in prop::collection::vec("[a-z]{0,40}", 1..8), frames: bool, step in 1_usize..50,
        ) {
            let mut bytes = if frames { frame::MAGIC.to_vec() } else { Vec::new() };
            let mut expected = Vec::new();
            for payload in &payloads {
                if frames {
                    bytes.extend(framed(payload.as_bytes(), Reply::Echo));
                    expected.extend((payload.len() as u32).to_be_bytes());
                    expected.extend(payload.bytes());
                } else {
                    bytes.extend(format!("{payload}\n").bytes());
                    expected.extend(format!("{payload}\n").bytes());
                }
            }
            let mut codec = Codec::new(Limits::default());
            let (mut input, mut output) = (BytesMut::new(), Vec::new());
            for chunk in bytes.chunks(step) {
                input.extend_from_slice(chunk);
                output.extend(serve(&mut codec, &mut input)?);
            }
            prop_assert_eq!(output, expected);
            prop_assert!(input.is_empty());
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), frames: bool) {
            let mut input = BytesMut::new();
            if frames {
                input.extend_from_slice(&frame::MAGIC);
            }
            input.extend_from_slice(&bytes);
            let limits = Limits { max_line: 64, max_frame: 64 };
            let _ = serve(&mut Codec::new(limits), &mut input);
        }
    }

    #[test]
    fn a_reply_has_the_length_asked_for() {
        let mut input = BytesMut::from(&frame::MAGIC[..]);
        input.extend_from_slice(&framed(b"abc", Reply::Bytes(7)));
        let output = serve(&mut Codec::new(Limits::default()), &mut input).unwrap();
        assert_eq!(&output[..], b"\0\0\0\x07abcabca");
    }

    #[test]
    fn times_are_those_of_receiving_and_sending() {
        let before = time_of_day();
        let mut input = BytesMut::from(&frame::MAGIC[..]);
        input.extend_from_slice(&framed(b"ignored", Reply::Times));
        let mut codec = Codec::new(Limits::default());
        let request = codec.next(&mut &input[..]).unwrap().unwrap();
        let decoded = time_of_day();
        let mut output = BytesMut::new();
        assert_eq!(codec.reply(request, &mut output), Rest::default());
        let (length, times) = output.split_at(frame::REPLY_HEADER);
        assert_eq!(length, (frame::TIMES as u32).to_be_bytes());
        let (received, sent) = frame::decode_times(times.try_into().unwrap());
        assert!(before <= received && received <= decoded, "{received}");
        assert!(decoded <= sent, "{sent}");
    }

    #[test]
    fn a_long_reply_comes_in_parts() {
        let long = vec![b'y'; PART + 7];
        for payload in [&b""[..], b"abc", BULK_PATTERN, &long] {
            for length in [PART, PART + 1, 3 * PART + 5, 3 * BULK_PART + 5] {
                let mut input = BytesMut::from(&frame::MAGIC[..]);
                let reply = Reply::Bytes(length as u32);
                input.extend_from_slice(&framed(payload, reply));
                let output = serve(&mut Codec::new(Limits::default()), &mut input).unwrap();
                let mut expected = (length as u32).to_be_bytes().to_vec();
                payload::repeat_into(payload, length, &mut expected);
                assert!(output == expected, "{} {length}", payload.len());
            }
        }
    }

    #[test]
    fn a_header_alone_makes_little_room() {
        let mut input = BytesMut::from(&frame::MAGIC[..]);
        let header = RequestHeader {
            payload: 16 << 20,
            reply: Reply::Echo,
        };
        input.extend_from_slice(&header.encode());
        let mut codec = Codec::new(Limits::default());
        assert_eq!(codec.next(&mut &input[..]), Ok(None));
        assert_eq!(codec.room(), ROOM);
    }

    #[test]
    fn a_message_is_decoded_and_answered() {
        let message = BenchmarkMessage {
            field1: "hello".into(),
            field2: 1,
            field3: 3,
            ..Default::default()
        };
        let mut input = BytesMut::from(&frame::MAGIC[..]);
        input.extend_from_slice(&framed(&message.encode_to_vec(), Reply::Message));
        let output = serve(&mut Codec::new(Limits::default()), &mut input).unwrap();
        let reply = BenchmarkMessage::decode(&output[frame::REPLY_HEADER..]).unwrap();
        assert_eq!(
            (reply.field1.as_str(), reply.field2, reply.field3),
            ("OK", 100, 3)
        );
    }

    #[test]
    fn violations_are_reported_before_the_rest_arrives() {
        let limits = Limits {
            max_line: 8,
            max_frame: 8,
        };
        let check = |bytes: &[u8]| serve(&mut Codec::new(limits), &mut BytesMut::from(bytes));
        assert_eq!(check(b"123456789"), Err(Violation::LineTooLong(8)));
        assert_eq!(check(b"12345678\n").unwrap(), "12345678\n");
        assert_eq!(check(b"\0NPx"), Err(Violation::Magic));
        assert_eq!(check(b"\x16\x03\x01\x02\n"), Err(Violation::Tls));
        let long = Violation::FrameTooLong {
            length: 9,
            limit: 8,
        };
        assert_eq!(check(b"\0NP1\0\0\0\x09\0\0\0\0"), Err(long.clone()));
        assert_eq!(check(b"\0NP1\0\0\0\0\0\0\0\x09"), Err(long));
        let bad = check(&[&frame::MAGIC[..], &framed(b"\xff", Reply::Message)].concat());
        assert_eq!(bad.unwrap_err().kind(), "message");
    }
}
