//! The messages that a stream brings, parsed and checked as their bytes come, without buffering.

use std::marker::PhantomData;

use bytes::Bytes;
use netping_measure::error_kind::ErrorKind;

use super::stream::Volume;
use crate::transport::{Failure, Result};

/// The longest head that an encoding has, in bytes.
pub(super) const LONGEST_HEAD: usize = 11;

/// The encoding of messages on a stream: each is a head, and then its data.
pub(super) trait Encoding {
    /// Returns the length of a message's data in bytes, once `head` is complete.
    ///
    /// # Errors
    /// A failure if no message begins so.
    fn data_length(head: &[u8]) -> Result<Option<usize>>;

    /// Returns the failure of a message that is not as long as requested.
    fn unexpected(length: &str) -> Failure;
}

/// The messages of one stream in one run.
#[derive(Debug)]
pub(super) struct Incoming<E> {
    /// Bytes of each message but the last; `None`: the server's choice.
    chunk: Option<u64>,
    /// Bytes of all messages; `None`: the server's choice.
    total: Option<u64>,
    /// Every message must be a prefix of this; `None`: bytes are only counted.
    pattern: Option<Bytes>,
    /// The messages begun so far.
    begun: Volume,
    /// The last one was shorter than a chunk, so no other may follow.
    ended: bool,
    /// The head of the next message, as far as it has come.
    head: [u8; LONGEST_HEAD],
    filled: usize,
    /// Bytes of the last message whose head has come.
    pub length: usize,
    /// Bytes of the current message that are still to come.
    left: usize,
    encoding: PhantomData<E>,
}

impl<E: Encoding> Incoming<E> {
    /// Expects messages of `chunk` bytes and a shorter last one, of `total` bytes in all.
    pub fn new(chunk: Option<u64>, total: Option<u64>, pattern: Option<Bytes>) -> Self {
        Self {
            chunk,
            total,
            pattern,
            begun: Volume::default(),
            ended: false,
            head: [0; LONGEST_HEAD],
            filled: 0,
            length: 0,
            left: 0,
            encoding: PhantomData,
        }
    }

    /// Parses the next bytes of the stream; returns the number of messages that they complete.
    ///
    /// # Errors
    /// A failure for a wrong byte. A message of unexpected length is one before its data: `input` is
    /// left with all that follows its head.
    pub fn feed(&mut self, input: &mut &[u8]) -> Result<u64> {
        let mut whole = 0;
        while let Some((&next, rest)) = input.split_first() {
            if self.left > 0 {
                let (data, rest) = input.split_at(self.left.min(input.len()));
                self.compare(data)?;
                self.left -= data.len();
                *input = rest;
                whole += u64::from(self.left == 0);
                continue;
            }
            self.head[self.filled] = next;
            self.filled += 1;
            *input = rest;
            if let Some(length) = E::data_length(&self.head[..self.filled])? {
                self.filled = 0;
                self.begin(length)?;
                whole += u64::from(length == 0);
            }
        }
        Ok(whole)
    }

    /// Begins a message with `length` bytes of data.
    fn begin(&mut self, length: usize) -> Result<()> {
        self.length = length;
        let length = length as u64;
        let left = self.total.map(|total| total - self.begun.bytes);
        let is_unrequested = self.ended || left == Some(0);
        let (limit, is_exact) = match (self.chunk, left) {
            _ if is_unrequested => (0, true),
            (Some(chunk), Some(left)) => (chunk.min(left), true),
            (chunk, left) => (chunk.or(left).unwrap_or(u64::MAX), false),
        };
        if is_unrequested || length > limit || (is_exact && length < limit) {
            let text = format!("of {length} bytes where {limit} were asked for");
            return Err(E::unexpected(&text));
        }
        self.ended = left.is_none() && self.chunk.is_some_and(|chunk| length < chunk);
        self.begun.bytes += length;
        self.begun.longest = self.begun.longest.max(length);
        self.left = self.length;
        Ok(())
    }

    /// Compares the next bytes of the current message with the pattern.
    fn compare(&self, data: &[u8]) -> Result<()> {
        let Some(pattern) = &self.pattern else {
            return Ok(());
        };
        let from = self.length - self.left;
        let right = pattern.get(from..from + data.len()).unwrap_or_default();
        if data == right {
            return Ok(());
        }
        let pairs = data.iter().zip(right);
        let same = pairs.take_while(|(byte, right)| byte == right).count();
        let place = self.begun.bytes - self.left as u64 + same as u64;
        let [byte, right] = [data, right].map(|bytes| bytes.get(same).copied().unwrap_or_default());
        let detail = format!("byte {place} of the stream is {byte:#04x} instead of {right:#04x}");
        Err(Failure::lost(ErrorKind::Mismatch, detail))
    }

    /// Ends the stream; returns what it carried.
    ///
    /// # Errors
    /// A failure if the stream ends within a message, or bytes are missing.
    pub fn finish(&self) -> Result<Volume> {
        if self.filled > 0 || self.left > 0 {
            let detail = "the stream ends within a message";
            return Err(Failure::lost(ErrorKind::Protocol, detail));
        }
        let received = self.begun.bytes;
        let detail = match self.total {
            Some(total) if total != received => {
                format!("received {received} bytes instead of {total}")
            }
            None if received == 0 => "the server sent no byte".to_owned(),
            _ => return Ok(self.begun),
        };
        Err(Failure::lost(ErrorKind::Mismatch, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages whose head is their length, of one byte.
    #[derive(Debug)]
    struct Short;

    impl Encoding for Short {
        fn data_length(head: &[u8]) -> Result<Option<usize>> {
            Ok(head.first().map(|length| usize::from(*length)))
        }

        fn unexpected(length: &str) -> Failure {
            Failure::lost(ErrorKind::Protocol, length)
        }
    }

    fn incoming(chunk: u64, total: u64, pattern: Option<&'static [u8]>) -> Incoming<Short> {
        let chosen = |bytes| Some(bytes).filter(|bytes| *bytes > 0);
        Incoming::new(
            chosen(chunk),
            chosen(total),
            pattern.map(Bytes::from_static),
        )
    }

    const RIGHT: &[u8] = b"\x05abcde\x05abcde\x02ab";

    #[test]
    fn every_message_begins_with_the_pattern_however_it_is_cut() {
        for step in 1..=RIGHT.len() {
            let mut incoming = incoming(5, 12, Some(b"abcde"));
            let parts = RIGHT.chunks(step);
            let whole: u64 = parts
                .map(|mut part| incoming.feed(&mut part).unwrap())
                .sum();
            let (bytes, longest) = (12, 5);
            assert_eq!(
                (whole, incoming.finish()),
                (3, Ok(Volume { bytes, longest }))
            );
        }
    }

    #[test]
    fn a_wrong_byte_is_named_by_its_place() {
        let failure = incoming(6, 100, Some(b"abcdef"))
            .feed(&mut &b"\x06abcdef\x06abcx"[..])
            .unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Mismatch);
        assert_eq!(
            failure.detail,
            "byte 9 of the stream is 0x78 instead of 0x64"
        );
    }

    #[test]
    fn a_message_of_unexpected_length_ends_before_its_data() {
        let mut incoming = incoming(5, 12, None);
        let mut input = &b"\x09error"[..];
        let failure = incoming.feed(&mut input).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Protocol);
        assert_eq!((incoming.length, input), (9, &b"error"[..]));
    }

    #[test]
    fn missing_bytes_are_noticed_without_a_pattern_too() {
        let end = |mut input: &[u8]| {
            let mut incoming = incoming(3, 5, None);
            incoming.feed(&mut input).unwrap();
            incoming.finish().map_err(Failure::into_detail)
        };
        assert_eq!(
            end(b"\x03???"),
            Err("received 3 bytes instead of 5".to_owned())
        );
        assert_eq!(
            end(b"\x03?"),
            Err("the stream ends within a message".to_owned())
        );
        assert!(end(b"\x03???\x02??").is_ok());
    }

    /// Begins messages of these lengths; the error of the first wrong one.
    fn begun(chunk: u64, total: u64, lengths: &[usize]) -> Result<Volume, String> {
        let mut all = incoming(chunk, total, None);
        let begun = lengths.iter().try_for_each(|length| all.begin(*length));
        begun.map(|()| all.begun).map_err(Failure::into_detail)
    }

    #[test]
    fn a_server_may_choose_what_was_not_asked_for() {
        let carried = |bytes, longest| Ok(Volume { bytes, longest });
        assert_eq!(begun(3, 7, &[3, 3, 1]), carried(7, 3));
        assert_eq!(begun(0, 7, &[5, 2]), carried(7, 5));
        assert_eq!(begun(3, 0, &[3, 3, 3, 2]), carried(11, 3));
        assert_eq!(begun(0, 0, &[9, 1, 4]), carried(14, 9));
        let wrong = |length, limit| Err(format!("of {length} bytes where {limit} were asked for"));
        assert_eq!(begun(3, 0, &[3, 2, 1]), wrong(1, 0));
        assert_eq!(begun(0, 7, &[7, 1]), wrong(1, 0));
        assert_eq!(begun(3, 7, &[3, 3, 1, 0]), wrong(0, 0));
        assert_eq!(begun(3, 7, &[7]), wrong(7, 3));
        assert_eq!(begun(3, 7, &[3, 1]), wrong(1, 3));
        assert_eq!(begun(3, 0, &[4]), wrong(4, 3));
        assert_eq!(begun(0, 7, &[4, 4]), wrong(4, 3));
    }
}
