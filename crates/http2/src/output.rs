//! The bytes that wait to be written.

use crate::{
    error::Reason,
    flow::SendWindow,
    frame::{HEADER, Header, flag, kind},
    head::Head,
    hpack::encoder::Encoder,
};

/// Bytes after which no further DATA is appended: a large body goes through a buffer that stays in the
/// processor's cache.
const ENOUGH: usize = 256 << 10;

/// The bytes that wait to be written, in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    /// Bytes at the beginning that have been written.
    written: usize,
}

impl Output {
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// Notes that bytes have been written; returns true if none is left.
    pub(crate) fn advance(&mut self, bytes: usize) -> bool {
        self.written += bytes;
        let is_empty = self.written == self.buffer.len();
        if is_empty {
            self.buffer.clear();
            self.written = 0;
        }
        is_empty
    }

    /// Returns the bytes of DATA that may still be appended.
    pub(crate) fn room(&self) -> usize {
        ENOUGH.saturating_sub(self.buffer.len())
    }

    /// Appends DATA of the stream `id`, in frames of up to `longest` bytes, as far as the stream's and the connection's
    /// windows and the output have room; returns the bytes of `body` that it took. With `is_last`, the end of the body
    /// ends the stream.
    pub(crate) fn data(
        &mut self,
        (id, is_last): (u32, bool),
        body: &[u8],
        [stream, connection]: [&mut SendWindow; 2],
        longest: usize,
    ) -> usize {
        let mut sent = 0;
        while sent < body.len() {
            let rest = &body[sent..];
            let allowed = stream.available().min(connection.available());
            let length = rest.len().min(allowed).min(longest).min(self.room());
            if length == 0 {
                break;
            }
            let is_end = is_last && length == rest.len();
            let flags = if is_end { flag::END_STREAM } else { 0 };
            self.frame(Header::new(kind::DATA, flags, id), &rest[..length]);
            stream.sent(length);
            connection.sent(length);
            sent += length;
        }
        sent
    }

    /// Appends the reset of a stream.
    pub(crate) fn reset(&mut self, id: u32, reason: Reason) {
        let header = Header::new(kind::RST_STREAM, 0, id);
        self.frame(header, &reason.0.to_be_bytes());
    }

    /// Appends more room for the peer, on a stream or, with 0, the connection.
    pub(crate) fn window_update(&mut self, id: u32, increment: u32) {
        let header = Header::new(kind::WINDOW_UPDATE, 0, id);
        self.frame(header, &increment.to_be_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn frame(&mut self, header: Header, payload: &[u8]) {
        self.buffer.extend_from_slice(&header.encode(payload.len()));
        self.buffer.extend_from_slice(payload);
    }

    /// Appends a frame whose payload `write` appends, and returns where it begins, and its length.
    fn frame_with(&mut self, header: Header, write: impl FnOnce(&mut Vec<u8>)) -> (usize, usize) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
        write(&mut self.buffer);
        let length = self.buffer.len() - start - HEADER;
        self.buffer[start..start + HEADER].copy_from_slice(&header.encode(length));
        (start, length)
    }

    /// Appends the header block of a head, in as many frames of up to `longest` bytes as it needs.
    pub(crate) fn header_block(
        &mut self,
        (id, is_end): (u32, bool),
        head: &Head,
        encoder: &mut Encoder,
        longest: usize,
    ) {
        let end = if is_end { flag::END_STREAM } else { 0 };
        let header = Header::new(kind::HEADERS, end | flag::END_HEADERS, id);
        let (start, length) = self.frame_with(header, |out| encoder.encode(head, out));
        if length <= longest {
            return;
        }
        let whole = self.take_from(start);
        let mut header = Header::new(kind::HEADERS, end, id);
        let mut parts = whole[HEADER..].chunks(longest).peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                header.flags |= flag::END_HEADERS;
            }
            self.frame(header, part);
            header = Header::new(kind::CONTINUATION, 0, id);
        }
    }

    /// Removes and returns what follows the place `start`.
    fn take_from(&mut self, start: usize) -> Vec<u8> {
        self.buffer.split_off(start)
    }
}
