//! The bytes that wait to be written.

use crate::{
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
