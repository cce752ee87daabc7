//! One stream, on which the bytes of a run go in one direction.

use std::{fmt, rc::Rc};

use bytes::{Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use netping_measure::bulk::Direction;
use netping_protocol::{payload, tls::Negotiated};
use netping_results::bulk::{BulkSettings, SERVERS_CHOICE};

use super::{
    check::Check,
    cut::{self, Carried, Cut},
    meter::Meter,
};
use crate::transport::{Endpoint, Failure};

/// Short messages are batched to at least so many bytes before they are handed to the transport.
const BATCH: usize = 64 << 10;

/// Opens the streams of a plan.
pub(super) type Open = fn(Spec) -> LocalBoxFuture<'static, Result<Opened, Failure>>;

/// The transfer of a run's bytes over a stream.
pub(super) type Transfer<'a> = LocalBoxFuture<'a, Result<Carried, Failure>>;

/// A stream of a plan. It is called once per run; all types on the bytes' way are static.
pub(super) trait BulkStream {
    /// Carries `bytes` over the stream, or as many as the server chooses. Afterwards all of them
    /// have arrived, and are right as far as that is checked.
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Meter) -> Transfer<'a>;
}

/// The open streams of a plan.
pub(super) struct Opened {
    pub streams: Vec<Box<dyn BulkStream>>,
    /// Their security; `None` in the clear.
    pub negotiated: Option<Negotiated>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("streams", &self.streams.len())
            .finish_non_exhaustive()
    }
}

/// A description of the streams to open.
#[derive(Debug)]
pub(super) struct Spec {
    pub endpoint: Endpoint,
    pub settings: BulkSettings,
    pub shape: Rc<Shape>,
    /// Counts everything that is opened as progress.
    pub meter: Rc<Meter>,
}

impl Spec {
    /// Returns the requested window, of at most 31 bits.
    pub fn window(&self) -> Option<u32> {
        self.settings
            .window_bytes
            .map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

/// The messages of a plan's streams.
#[derive(Debug)]
pub(super) struct Shape {
    pub direction: Direction,
    /// Bytes of each message but the last; [`SERVERS_CHOICE`] as in the settings.
    pub chunk: usize,
    /// Limit on such messages per stream and run.
    pub messages: usize,
    /// The requested window, in bytes; 0 if the transport's default is kept.
    pub window: usize,
    verify: bool,
    /// Every message is a prefix of this; empty if neither sent nor compared.
    pattern: Bytes,
}

impl Shape {
    /// Returns the messages for `settings`.
    pub fn new(settings: &BulkSettings) -> Self {
        // No message is longer than its stream's share.
        let share = cut::shares(settings.size_bytes, settings.streams)
            .max()
            .unwrap_or_default();
        let longest = if settings.size_bytes == SERVERS_CHOICE {
            u64::MAX
        } else {
            share
        };
        let chunk = longest.min(settings.chunk_bytes) as usize;
        let needed = if settings.verify || settings.direction == Direction::Up {
            chunk
        } else {
            0
        };
        let mut pattern = BytesMut::with_capacity(needed);
        payload::repeat_into(payload::BULK_PATTERN, needed, &mut pattern);
        Self {
            direction: settings.direction,
            chunk,
            messages: Cut::new(share, chunk).full as usize,
            window: settings.window_bytes.unwrap_or_default() as usize,
            verify: settings.verify,
            pattern: pattern.freeze(),
        }
    }

    /// Cuts the bytes of a stream into messages.
    pub fn cut(&self, bytes: u64) -> Cut {
        Cut::new(bytes, self.chunk)
    }

    /// Returns a message of `length` bytes to send, which is at most a chunk.
    pub fn message(&self, length: usize) -> &[u8] {
        &self.pattern[..length]
    }

    /// Returns the check of a stream that carries `bytes` to the client.
    pub fn check(&self, bytes: u64) -> Check {
        Check::new(bytes, self.verify.then(|| self.pattern.clone()))
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
    pub fn new(message: Vec<u8>, most: usize) -> Self {
        let length = message.len();
        let times = (BATCH / length.max(1)).clamp(1, most.max(1));
        // A long message is not copied.
        let bytes = if times == 1 {
            message
        } else {
            message.repeat(times)
        };
        Self {
            bytes: bytes.into(),
            length,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_go_together_and_long_ones_alone() {
        let short = Batch::new(b"abc".to_vec(), usize::MAX);
        assert_eq!(short.messages(), (BATCH / 3) as u64);
        assert_eq!(short.first(2), "abcabc");
        assert_eq!(Batch::new(b"abc".to_vec(), 5).messages(), 5);
        assert_eq!(Batch::new(vec![0; BATCH + 1], usize::MAX).messages(), 1);
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
