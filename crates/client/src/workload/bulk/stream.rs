//! One stream, on which the bytes of a run go in one direction.

use std::{cell::Cell, iter::Sum, rc::Rc};

use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use netping_measure::{bulk::Direction, error_kind::ErrorKind};
use netping_protocol::{payload, tls::Negotiated};
use netping_results::bulk::{BulkSettings, SERVERS_CHOICE};

use crate::{
    clock::{Clock, Monotonic},
    transport::Result,
};

/// Short messages are batched to at least this many bytes before they are handed to the transport.
const BATCH: usize = 64 << 10;

/// The transfer of a run's bytes over a stream.
pub(super) type Transferring<'a> = LocalBoxFuture<'a, Result<Volume>>;

/// A stream of a plan. It is called once per run; all types on the bytes' way are static.
pub(super) trait BulkStream {
    /// Carries `bytes` over the stream, or as many as the server chooses. Afterwards all of them
    /// have arrived, and are right as far as that is checked.
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Rc<Meter>) -> Transferring<'a>;
}

/// The open streams of a plan, and their security; `None` in the clear.
pub(super) type Opened = Result<(Vec<Box<dyn BulkStream>>, Option<Negotiated>)>;

/// Sends a run's bytes until the answer is whole. A refusal comes early, and explains more than the
/// failure to send that follows it.
pub(super) async fn send_until_answered<T>(
    sending: impl Future<Output = Result<()>>,
    answering: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::pin!(sending, answering);
    tokio::select! {
        answer = &mut answering => answer,
        sent = &mut sending => answering.await.and_then(|answer| sent.map(|()| answer)),
    }
}

/// Progress of the streams of one run, or of one opening, which all run on one thread.
#[derive(Debug)]
pub(super) struct Meter {
    pub clock: Monotonic,
    /// The progress so far.
    pub moved: Cell<u64>,
    /// The failure to report if nothing moves from now on.
    pub overdue: Cell<(ErrorKind, &'static str)>,
    /// The time of the first byte of an answer, in nanoseconds.
    pub first_answer: Cell<Option<u64>>,
}

impl Meter {
    /// Returns a meter of no progress, with the failure to report if there is none.
    pub fn new(clock: Monotonic, kind: ErrorKind, detail: &'static str) -> Self {
        Self {
            clock,
            moved: Cell::new(0),
            overdue: Cell::new((kind, detail)),
            first_answer: Cell::new(None),
        }
    }

    /// Counts bytes that came or went.
    pub fn count(&self, bytes: usize) {
        self.moved.set(self.moved.get() + bytes as u64);
    }

    /// Counts an opened connection or stream, which is progress too.
    pub fn opened(&self) {
        self.count(1);
    }

    /// Counts bytes of an answer.
    pub fn received(&self, bytes: usize) {
        self.count(bytes);
        if self.first_answer.get().is_none() {
            self.first_answer.set(Some(self.clock.now()));
        }
    }
}

/// The messages of a plan's streams.
#[derive(Debug)]
pub(super) struct Shape {
    pub settings: BulkSettings,
    /// Bytes of each message but the last; [`SERVERS_CHOICE`] as in the settings.
    pub chunk: usize,
    /// Limit on such messages per stream and run.
    pub messages: usize,
    /// Every message is a prefix of this; empty if neither sent nor compared.
    pattern: Bytes,
}

impl Shape {
    /// Returns the messages for `settings`.
    pub fn new(settings: &BulkSettings) -> Self {
        // No message is longer than its stream's share.
        let shares = shares(settings.size_bytes, settings.streams);
        let share = shares.max().unwrap_or_default();
        let chunk = match settings.size_bytes {
            SERVERS_CHOICE => settings.chunk_bytes,
            _ => settings.chunk_bytes.min(share),
        } as usize;
        let mut pattern = BytesMut::new();
        if settings.verify || settings.direction == Direction::Up {
            pattern.reserve(chunk);
            payload::repeat_into(payload::BULK_PATTERN, chunk, &mut pattern);
        }
        Self {
            settings: settings.clone(),
            chunk,
            messages: Cut::new(share, chunk).full as usize,
            pattern: pattern.freeze(),
        }
    }

    /// Returns the requested window in bytes, of at most 31 bits; `None` if the transport's default
    /// is kept.
    pub fn window(&self) -> Option<u32> {
        let window = self.settings.window_bytes?;
        Some(u32::try_from(window).unwrap_or(u32::MAX))
    }

    /// Returns the volume of a stream whose `bytes` are cut so.
    pub fn volume(&self, bytes: u64) -> Volume {
        let longest = bytes.min(self.chunk as u64);
        Volume { bytes, longest }
    }

    /// Returns a message of `length` bytes to send, which is at most a chunk.
    pub fn message(&self, length: usize) -> &[u8] {
        &self.pattern[..length]
    }

    /// Returns the bytes that every message is a prefix of; `None` if they are not compared.
    pub fn right(&self) -> Option<Bytes> {
        self.settings.verify.then(|| self.pattern.clone())
    }
}

/// A message as it goes over the wire, repeated if it is short: made once, and handed over in large
/// pieces.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    bytes: Bytes,
    /// Bytes of one message on the wire.
    length: usize,
}

impl Batch {
    /// Repeats `message`, which is not empty, up to `most` times.
    pub fn new(message: Bytes, most: usize) -> Self {
        let length = message.len();
        // A long message is not copied.
        let bytes = match (BATCH / length.max(1)).min(most) {
            0 | 1 => message,
            times => message.repeat(times).into(),
        };
        Self { bytes, length }
    }

    /// Returns the number of messages.
    pub fn messages(&self) -> u64 {
        (self.bytes.len() / self.length.max(1)) as u64
    }

    /// Returns the first `messages` of them, at most as many as there are.
    pub fn first(&self, messages: u64) -> Bytes {
        self.bytes.slice(..messages as usize * self.length)
    }
}

/// A stream's share, cut into messages of equal length; the last one has the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Messages of the full length.
    pub full: u64,
    /// Bytes of the last message; 0 if all are full.
    pub rest: usize,
}

impl Cut {
    /// Cuts `bytes` into messages of `chunk` bytes, which is at least 1.
    pub fn new(bytes: u64, chunk: usize) -> Self {
        let length = chunk.max(1) as u64;
        Self {
            full: bytes / length,
            rest: (bytes % length) as usize,
        }
    }

    /// Returns the number of messages.
    pub fn messages(self) -> u64 {
        self.full + u64::from(self.rest > 0)
    }
}

/// The bytes that one stream or several carried in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Volume {
    /// Bytes of payload.
    pub bytes: u64,
    /// Bytes of the longest message.
    pub longest: u64,
}

impl Sum for Volume {
    fn sum<I: Iterator<Item = Self>>(streams: I) -> Self {
        streams.fold(Self::default(), |sum, stream| Self {
            bytes: sum.bytes + stream.bytes,
            longest: sum.longest.max(stream.longest),
        })
    }
}

/// Divides `bytes` among `streams`; the first has the remainder too.
pub(super) fn shares(bytes: u64, streams: usize) -> impl Iterator<Item = u64> {
    let count = streams.max(1) as u64;
    (0..streams).map(move |number| bytes / count + if number == 0 { bytes % count } else { 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_byte_is_lost_or_doubled(bytes in 0_u64..100_000, chunk in 1_usize..5000, streams in 1_usize..20) {
            prop_assert_eq!(shares(bytes, streams).count(), streams);
            prop_assert_eq!(shares(bytes, streams).sum::<u64>(), bytes);
            let cut = Cut::new(bytes, chunk);
            prop_assert_eq!(cut.full * chunk as u64 + cut.rest as u64, bytes);
            prop_assert!(cut.rest < chunk);
            prop_assert_eq!(cut.messages(), bytes.div_ceil(chunk as u64));
        }
    }

    #[test]
    fn the_first_stream_has_the_remainder() {
        assert_eq!(shares(11, 4).collect::<Vec<_>>(), [5, 2, 2, 2]);
    }

    #[test]
    fn short_messages_go_together_and_long_ones_alone() {
        let short = Batch::new(Bytes::from_static(b"abc"), usize::MAX);
        assert_eq!(short.messages(), (BATCH / 3) as u64);
        assert_eq!(short.first(2), "abcabc");
        assert_eq!(Batch::new(Bytes::from_static(b"abc"), 5).messages(), 5);
        assert_eq!(
            Batch::new(vec![0; BATCH + 1].into(), usize::MAX).messages(),
            1
        );
    }

    /// For runs of 1000 bytes on four streams.
    fn settings(chunk_bytes: u64, direction: Direction, verify: bool) -> BulkSettings {
        BulkSettings {
            direction,
            size_bytes: 1000,
            chunk_bytes,
            streams: 4,
            window_bytes: None,
            frame_bytes: None,
            verify,
            probes_per_s: None,
        }
    }

    #[test]
    fn no_message_is_longer_than_its_streams_share() {
        for (chunk, expected) in [
            (1000, (250, 1)),
            (250, (250, 1)),
            (249, (249, 1)),
            (10, (10, 25)),
        ] {
            let shape = Shape::new(&settings(chunk, Direction::Up, false));
            assert_eq!((shape.chunk, shape.messages), expected);
            assert_eq!(shape.message(shape.chunk).len(), shape.chunk);
        }
    }

    #[test]
    fn messages_are_held_only_where_they_are_sent_or_compared() {
        let held = |direction, verify| Shape::new(&settings(100, direction, verify)).pattern.len();
        assert_eq!(held(Direction::Down, false), 0);
        assert_eq!(
            [held(Direction::Down, true), held(Direction::Up, false)],
            [100, 100]
        );
    }
}
