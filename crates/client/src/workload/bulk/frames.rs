//! Bulk over frames, on any pair of byte streams.
//!
//! Down: each message is the reply to a request that has the pattern as payload and asks for a number
//! of its bytes. Some requests are always ahead of their replies, so that the server never
//! waits for one. Up: each message is the payload of a request for an empty reply. A stream's last
//! message may be shorter.

use std::{io, rc::Rc};

use bytes::Bytes;
use netping_measure::{bulk::Direction, error_kind::ErrorKind};
use netping_protocol::{
    frame::{self, Reply, RequestHeader},
    payload::BULK_PATTERN,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Semaphore,
};

use super::{
    incoming::{Encoding, Incoming},
    stream::{Batch, BulkStream, Cut, Meter, Shape, Transferring, send_until_answered},
};
use crate::transport::{Failure, Result};

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

/// Replies in frames.
struct Replies;

impl Encoding for Replies {
    fn data_length(head: &[u8]) -> Result<Option<usize>> {
        Ok(frame::reply_length(head).map(|length| length as usize))
    }

    fn unexpected(length: &str) -> Failure {
        Failure::lost(ErrorKind::Protocol, format!("a reply {length}"))
    }
}

/// Both halves of a stream that carries frames.
pub(super) struct Frames<R, W> {
    recv: R,
    send: W,
    shape: Rc<Shape>,
    buffer: Vec<u8>,
    /// Limit on the requests that are ahead of their replies.
    ahead: usize,
    /// Full messages, or requests for them.
    batch: Batch,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Frames<R, W> {
    pub fn new(recv: R, send: W, shape: &Rc<Shape>) -> Self {
        let ahead = match shape.settings.direction {
            Direction::Down => ahead(shape.chunk, shape.window().unwrap_or_default() as usize),
            // More than there ever are: a server may reply before it is asked.
            Direction::Up => Semaphore::MAX_PERMITS / 2,
        };
        Self {
            recv,
            send,
            shape: Rc::clone(shape),
            buffer: vec![0; BUFFER],
            ahead,
            batch: Batch::new(request(shape, shape.chunk), ahead.min(shape.messages)),
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> BulkStream for Frames<R, W> {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Rc<Meter>) -> Transferring<'a> {
        Box::pin(async move {
            let shape = &self.shape;
            let cut = Cut::new(bytes, shape.chunk);
            let replies = match shape.settings.direction {
                Direction::Down => {
                    Incoming::new(Some(shape.chunk as u64), Some(bytes), shape.right())
                }
                // All of them are empty.
                Direction::Up => Incoming::new(Some(0), None, None),
            };
            let room = Semaphore::new(self.ahead);
            send_until_answered(
                write_all(&mut self.send, shape, cut, &self.batch, &room, meter),
                read_all(
                    &mut self.recv,
                    &mut self.buffer,
                    (replies, cut.messages()),
                    &room,
                    meter,
                ),
            )
            .await?;
            Ok(shape.volume(bytes))
        })
    }
}

/// Returns the number of requests for `chunk` bytes that are ahead of their replies: enough to fill
/// the window, and as much again for the time that they are on their way.
fn ahead(chunk: usize, window: usize) -> usize {
    (AHEAD.max(window.saturating_mul(2)) / chunk.max(1)).clamp(FEWEST_AHEAD, MOST_AHEAD)
}

/// Returns the request for a message of `length` bytes.
fn request(shape: &Shape, length: usize) -> Bytes {
    let (payload, reply) = match shape.settings.direction {
        Direction::Down => (BULK_PATTERN, Reply::Bytes(length as u32)),
        Direction::Up => (shape.message(length), Reply::Bytes(0)),
    };
    let header = RequestHeader {
        payload: payload.len() as u32,
        reply,
    };
    [&header.encode(), payload].concat().into()
}

/// Waits until there is room for requests, and takes it for at most `most` of them.
async fn take_room(room: &Semaphore, most: u64) -> u64 {
    // Nobody else takes any meanwhile, or closes the semaphore.
    drop(room.acquire().await);
    room.forget_permits(most as usize) as u64
}

/// Sends every request of a run.
async fn write_all<W: AsyncWrite + Unpin>(
    send: &mut W,
    shape: &Shape,
    cut: Cut,
    batch: &Batch,
    room: &Semaphore,
    meter: &Meter,
) -> Result<()> {
    let mut left = cut.full;
    while left > 0 {
        let messages = take_room(room, left.min(batch.messages())).await;
        write(send, &batch.first(messages), meter).await?;
        left -= messages;
    }
    if cut.rest > 0 {
        take_room(room, 1).await;
        write(send, &request(shape, cut.rest), meter).await?;
    }
    Ok(())
}

/// Writes `bytes`; every part written counts as progress.
async fn write<W: AsyncWrite + Unpin>(send: &mut W, mut bytes: &[u8], meter: &Meter) -> Result<()> {
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

/// Reads every reply of a run, of which there are as many as the number beside them.
async fn read_all<R: AsyncRead + Unpin>(
    recv: &mut R,
    buffer: &mut [u8],
    (mut replies, mut left): (Incoming<Replies>, u64),
    room: &Semaphore,
    meter: &Meter,
) -> Result<()> {
    while left > 0 {
        let read = recv.read(buffer).await?;
        if read == 0 {
            let detail = "the server closed the connection in mid-run";
            return Err(Failure::lost(ErrorKind::Eof, detail));
        }
        meter.received(read);
        let mut input = &buffer[..read];
        let whole = match replies.feed(&mut input) {
            Ok(whole) => whole,
            Err(failure) if failure.kind == ErrorKind::Protocol => {
                let refusal = refusal(recv, replies.length, input).await;
                return Err(refusal.unwrap_or(failure));
            }
            Err(failure) => return Err(failure),
        };
        let unrequested = || Failure::lost(ErrorKind::Protocol, "an unrequested reply");
        left = left.checked_sub(whole).ok_or_else(unrequested)?;
        room.add_permits(whole as usize);
    }
    Ok(())
}

/// Returns the words of a server that refuses a request: a reply of another length, of which some
/// bytes have come.
async fn refusal<R: AsyncRead + Unpin>(recv: &mut R, size: usize, begun: &[u8]) -> Option<Failure> {
    if size > LONGEST_WORDS {
        return None;
    }
    let mut words = begun.to_vec();
    let missing = size.saturating_sub(words.len()) as u64;
    // Words that are cut off are better than none.
    let _ = recv.take(missing).read_to_end(&mut words).await;
    words.truncate(size);
    let words = String::from_utf8_lossy(&words);
    let says = format!("the server says: {}", words.trim_end());
    words
        .starts_with("error: ")
        .then(|| Failure::lost(ErrorKind::Protocol, says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_refusal_is_quoted() {
        let words = refusal(&mut &b"r: no\n!!"[..], 10, b"erro").await.unwrap();
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
