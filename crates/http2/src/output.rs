//! The bytes that wait to be written.

use std::{collections::VecDeque, io::IoSlice, mem};

use bytes::{Buf, Bytes};

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

/// Length from which a part of a shared body is not copied, in bytes.
const LARGE: usize = 16 << 10;

/// The bytes that wait to be written: a buffer, and large parts of shared bodies in between.
#[derive(Debug, Default)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    /// Bytes at the beginning that have been written.
    written: usize,
    /// The parts, and the places in the buffer before which they come.
    shared: VecDeque<(usize, Bytes)>,
    /// Bytes of the parts.
    shared_bytes: usize,
    /// Frames with data, since they were last asked for.
    data_frames: u64,
}

impl Output {
    /// Returns the next bytes to be written: all of them, unless there are parts of shared bodies. Empty if there are
    /// none.
    pub(crate) fn waiting(&self) -> &[u8] {
        match self.shared.front() {
            None => &self.buffer[self.written..],
            Some((place, part)) if *place == self.written => part,
            Some((place, _)) => &self.buffer[self.written..*place],
        }
    }

    /// Returns true if [`waiting`](Self::waiting) is not all.
    pub(crate) fn is_in_parts(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Puts what is to be written into `slices`, as far as these suffice, and returns their number.
    pub(crate) fn parts<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut from = self.written;
        let shared = self.shared.iter().flat_map(|(place, part)| {
            let own = &self.buffer[std::mem::replace(&mut from, *place)..*place];
            [own, part]
        });
        let last = self.shared.back().map_or(self.written, |(place, _)| *place);
        let parts = shared.chain([&self.buffer[last..]]);
        let parts = parts.filter(|part| !part.is_empty());
        let pairs = slices.iter_mut().zip(parts);
        pairs
            .map(|(slice, part)| *slice = IoSlice::new(part))
            .count()
    }

    /// Notes that bytes have been written; returns true if none is left.
    pub(crate) fn advance(&mut self, mut bytes: usize) -> bool {
        while let Some((place, part)) = self.shared.front_mut() {
            let own = bytes.min(*place - self.written);
            self.written += own;
            let shared = part.len().min(bytes - own);
            part.advance(shared);
            self.shared_bytes -= shared;
            bytes -= own + shared;
            if !part.is_empty() {
                return false;
            }
            self.shared.pop_front();
        }
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
        ENOUGH.saturating_sub(self.buffer.len() + self.shared_bytes)
    }

    /// Appends DATA of the stream `id`, in frames of up to `longest` bytes, as far as the stream's and the connection's
    /// windows and the output have room; returns the bytes of `body` that it took. With `is_last`, the end of the body
    /// ends the stream. Large parts of a body that is `shared` too are not copied.
    pub(crate) fn data(
        &mut self,
        (id, is_last): (u32, bool),
        (body, shared): (&[u8], Option<&Bytes>),
        [stream, connection]: [&mut SendWindow; 2],
        longest: usize,
    ) -> usize {
        let mut sent = 0;
        while sent < body.len() {
            let rest = &body[sent..];
            let allowed = stream.available().min(connection.available());
            // What is not copied need not be cut: a rest would cost a frame and a write of its own.
            let room = match shared {
                Some(_) if self.room() > 0 => usize::MAX,
                _ => self.room(),
            };
            let length = rest.len().min(allowed).min(longest).min(room);
            if length == 0 {
                break;
            }
            let is_end = is_last && length == rest.len();
            let flags = if is_end { flag::END_STREAM } else { 0 };
            let header = Header::new(kind::DATA, flags, id);
            match shared {
                Some(body) if length >= LARGE => {
                    self.buffer.extend_from_slice(&header.encode(length));
                    let part = body.slice(sent..sent + length);
                    self.shared.push_back((self.buffer.len(), part));
                    self.shared_bytes += length;
                }
                _ => self.frame(header, &rest[..length]),
            }
            self.data_frames += 1;
            stream.sent(length);
            connection.sent(length);
            sent += length;
        }
        sent
    }

    /// Returns the number of frames with data that were appended, since it was last asked for.
    pub(crate) fn take_data_frames(&mut self) -> u64 {
        mem::take(&mut self.data_frames)
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
