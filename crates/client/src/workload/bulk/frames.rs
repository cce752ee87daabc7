//! Bulk over frames, on any pair of byte streams.
//!
//! Down: each message is the reply to a request that has the pattern as payload and asks for so
//! many bytes of it. Some requests are always ahead of their replies, so that the server never
//! waits for one. Up: each message is the payload of a request for an empty reply. A stream's last
//! message may be shorter.

use std::{cell::Cell, io, rc::Rc};

use netping_measure::{bulk::Direction, error_kind::ErrorKind};
use netping_protocol::{
    frame::{Reply, RequestHeader},
    payload::BULK_PATTERN,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
};

use super::{
    cut::{Carried, Cut},
    meter::Meter,
    replies::{Replies, Wrong},
    stream::{Batch, BulkStream, Shape, Transfer},
};
use crate::transport::Failure;

/// Bytes of replies requested ahead, unless the window is large: as many as a connection of 10
/// Gbit/s holds in 3 ms.
const AHEAD: usize = 4 << 20;

/// Limits on the requests that are ahead of their replies.
const FEWEST_AHEAD: usize = 2;
const MOST_AHEAD: usize = 1 << 16;

/// Size of the read buffer, in bytes.
const BUFFER: usize = 256 << 10;

/// Longest reply of unexpected length that is read for its text, in bytes.
const LONGEST_WORDS: usize = 4 << 10;

/// Both halves of a stream that carries frames.
pub(super) struct Frames<R, W> {
    recv: R,
    send: W,
    shape: Rc<Shape>,
    buffer: Vec<u8>,
    /// Full messages, or requests for them.
    batch: Batch,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Frames<R, W> {
    pub fn new(recv: R, send: W, shape: &Rc<Shape>) -> Self {
        let ahead = match shape.direction {
            Direction::Down => ahead(shape.chunk, shape.window),
            Direction::Up => shape.messages,
        };
        let batch = Batch::new(request(shape, shape.chunk), ahead);
        Self {
            recv,
            send,
            shape: Rc::clone(shape),
            buffer: vec![0; BUFFER],
            batch,
        }
    }

    /// Carries `bytes` over the stream.
    pub async fn carry(&mut self, bytes: u64, meter: &Meter) -> Result<(), Failure> {
        let Self {
            recv,
            send,
            shape,
            buffer,
            batch,
        } = self;
        let cut = shape.cut(bytes);
        let room = Room::new(match shape.direction {
            Direction::Down => ahead(shape.chunk, shape.window) as u64,
            Direction::Up => u64::MAX,
        });
        let replies = match shape.direction {
            Direction::Down => Replies::new(cut, shape.check(bytes)),
            Direction::Up => {
                let (full, chunk, rest) = (cut.messages(), 0, 0);
                Replies::new(Cut { full, chunk, rest }, shape.check(0))
            }
        };
        let writing = write_all(send, shape, cut, batch, &room, meter);
        let reading = read_all(recv, buffer, replies, &room, meter);
        tokio::pin!(writing, reading);
        tokio::select! {
            read = &mut reading => read,
            written = &mut writing => match written {
                Ok(()) => reading.await,
                // The server's last words explain more.
                Err(failure) => Err(reading.await.err().unwrap_or(failure)),
            },
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> BulkStream for Frames<R, W> {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Meter) -> Transfer<'a> {
        let longest = self.shape.cut(bytes).length(0).unwrap_or_default() as u64;
        Box::pin(async move {
            self.carry(bytes, meter).await?;
            Ok(Carried { bytes, longest })
        })
    }
}

/// Returns the number of requests for `chunk` bytes that are ahead of their replies: enough to fill
/// the window, and as much again for the time that they are on their way.
fn ahead(chunk: usize, window: usize) -> usize {
    (AHEAD.max(window.saturating_mul(2)) / chunk.max(1)).clamp(FEWEST_AHEAD, MOST_AHEAD)
}

/// Returns the request for a message of `length` bytes.
fn request(shape: &Shape, length: usize) -> Vec<u8> {
    let (payload, reply) = match shape.direction {
        Direction::Down => (BULK_PATTERN, Reply::Bytes(length as u32)),
        Direction::Up => (shape.message(length), Reply::Bytes(0)),
    };
    let header = RequestHeader {
        payload: payload.len() as u32,
        reply,
    };
    [&header.encode(), payload].concat()
}

/// The number of requests that may be sent before a reply comes.
struct Room {
    free: Cell<u64>,
    freed: Notify,
}

impl Room {
    fn new(free: u64) -> Self {
        Self {
            free: Cell::new(free),
            freed: Notify::new(),
        }
    }

    /// Waits until there is room, and takes it for at most `most` requests.
    async fn take(&self, most: u64) -> u64 {
        while self.free.get() == 0 {
            self.freed.notified().await;
        }
        let taken = self.free.get().min(most);
        self.free.set(self.free.get() - taken);
        taken
    }

    fn give_back(&self, requests: u64) {
        self.free.set(self.free.get().saturating_add(requests));
        self.freed.notify_one();
    }
}

/// Sends every request of a run.
async fn write_all<W: AsyncWrite + Unpin>(
    send: &mut W,
    shape: &Shape,
    cut: Cut,
    batch: &Batch,
    room: &Room,
    meter: &Meter,
) -> Result<(), Failure> {
    let mut left = cut.full;
    while left > 0 {
        let messages = room.take(left.min(batch.messages())).await;
        write(send, &batch.first(messages), meter).await?;
        left -= messages;
    }
    if cut.rest > 0 {
        room.take(1).await;
        write(send, &request(shape, cut.rest), meter).await?;
    }
    Ok(())
}

/// Writes `bytes`; every part written counts as progress.
async fn write<W: AsyncWrite + Unpin>(
    send: &mut W,
    mut bytes: &[u8],
    meter: &Meter,
) -> Result<(), Failure> {
    while !bytes.is_empty() {
        let written = send.write(bytes).await?;
        if written == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        meter.count(written);
        bytes = &bytes[written..];
    }
    // TLS may have buffered some of it.
    Ok(send.flush().await?)
}

/// Reads every reply of a run.
async fn read_all<R: AsyncRead + Unpin>(
    recv: &mut R,
    buffer: &mut [u8],
    mut replies: Replies,
    room: &Room,
    meter: &Meter,
) -> Result<(), Failure> {
    while !replies.are_complete() {
        let read = recv.read(buffer).await?;
        if read == 0 {
            let detail = "the server closed the connection in mid-run";
            return Err(Failure::lost(ErrorKind::Eof, detail));
        }
        meter.answered();
        meter.count(read);
        match replies.feed(&buffer[..read]) {
            Ok(0) => {}
            Ok(whole) => room.give_back(whole),
            Err(Wrong::Failure(failure)) => return Err(failure),
            Err(Wrong::Length {
                length,
                expected,
                begun,
            }) => return Err(words(recv, length, expected, begun).await),
        }
    }
    replies.check.finish()
}

/// Returns the failure of a reply of unexpected length: a server that refuses a request says why.
async fn words<R: AsyncRead + Unpin>(
    recv: &mut R,
    length: usize,
    expected: usize,
    mut begun: Vec<u8>,
) -> Failure {
    if length <= LONGEST_WORDS {
        while begun.len() < length && matches!(recv.read_buf(&mut begun).await, Ok(1..)) {}
    }
    begun.truncate(length);
    if length <= LONGEST_WORDS && begun.starts_with(b"error: ") {
        let words = String::from_utf8_lossy(&begun);
        let detail = format!("the server says: {}", words.trim_end());
        return Failure::lost(ErrorKind::Protocol, detail);
    }
    let detail = format!("a reply of {length} bytes where {expected} were asked for");
    Failure::lost(ErrorKind::Protocol, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_refusal_is_quoted() {
        let words = words(&mut &b"r: no\n!!"[..], 10, 5, b"erro".to_vec()).await;
        assert_eq!(
            (words.kind, &words.detail[..]),
            (ErrorKind::Protocol, "the server says: error: no")
        );
    }

    #[test]
    fn requests_ahead_are_bounded() {
        let without_a_window = |chunk| ahead(chunk, 0);
        assert_eq!(
            [1, 1 << 12, 1 << 18, 1 << 30].map(without_a_window),
            [1 << 16, 1024, 16, 2]
        );
    }

    #[test]
    fn requests_ahead_fill_the_window_twice() {
        let of_256_kib = |window| ahead(256 << 10, window);
        assert_eq!([1 << 16, 2 << 20, 64 << 20].map(of_256_kib), [16, 16, 512]);
    }
}
