//! A stream under an HTTP/2 client that is not netping's own, and what that client gave up for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use netping_protocol::secure::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that notes whether its client ends the connection over a mistake of the server: it then
/// says GOAWAY with an error.
pub(super) struct Watched {
    stream: Stream,
    frames: Frames,
    given_up: Arc<AtomicBool>,
}

impl Watched {
    /// Watches a new connection; `given_up` becomes true with the client's error.
    pub fn new(stream: Stream, given_up: Arc<AtomicBool>) -> Self {
        let frames = Frames::default();
        Self {
            stream,
            frames,
            given_up,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        if self.frames.have_error(&bytes[..written]) {
            self.given_up.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Bytes of the preface: RFC 9113, section 3.4.
const PREFACE: usize = 24;

/// The frame that ends a connection: RFC 9113, section 6.8.
const GOAWAY: u8 = 7;

/// The frames of a client, which come in pieces.
struct Frames {
    /// Bytes to pass over before the next frame.
    skip: usize,
    /// The beginning of the next frame: its header, and of a GOAWAY the last stream and the error.
    begun: Vec<u8>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            skip: PREFACE,
            begun: Vec::new(),
        }
    }
}

impl Frames {
    /// Takes the next bytes; returns true if a GOAWAY with an error is among them.
    fn have_error(&mut self, bytes: &[u8]) -> bool {
        let (mut at, mut has_error) = (0, false);
        while at < bytes.len() {
            if self.skip > 0 {
                let passed = self.skip.min(bytes.len() - at);
                self.skip -= passed;
                at += passed;
                continue;
            }
            self.begun.push(bytes[at]);
            at += 1;
            // The length, the type, the flags, and the stream: RFC 9113, section 4.1.
            let [high, middle, low, kind, _, _, _, _, _, payload @ ..] = &self.begun[..] else {
                continue;
            };
            // A GOAWAY has the last stream first, and then the error.
            if *kind == GOAWAY && payload.len() < 8 {
                continue;
            }
            has_error |= payload.len() == 8 && payload[4..] != [0; 4];
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            self.skip = length.saturating_sub(payload.len());
            self.begun.clear();
        }
        has_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a client's GOAWAY with this error is seen, after a request and before more
    /// debugging data, in pieces of so many bytes.
    fn is_seen(error: u8, piece: usize) -> bool {
        let bytes = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            // SETTINGS without any, and five bytes of DATA that look like a GOAWAY.
            &b"\0\0\0\x04\0\0\0\0\0"[..],
            b"\0\0\x05\0\0\0\0\0\x01\0\0\x08\x07\0",
            b"\0\0\x0A\x07\0\0\0\0\0\0\0\0\x01\0\0\0",
            &[error],
            b"ab",
            // PING: what follows is read as a frame again.
            b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\x01",
        ]
        .concat();
        let mut frames = Frames::default();
        let seen = bytes
            .chunks(piece)
            .filter(|piece| frames.have_error(piece))
            .count();
        assert_eq!((frames.skip, &frames.begun[..]), (0, &[][..]));
        assert!(seen <= 1);
        seen == 1
    }

    #[test]
    fn an_error_is_seen_however_the_bytes_are_cut() {
        for piece in 1..100 {
            assert!(is_seen(6, piece), "pieces of {piece}");
            assert!(!is_seen(0, piece), "pieces of {piece}");
        }
    }
}
