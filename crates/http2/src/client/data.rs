//! Bodies of replies, which are taken as they come.

use super::{Client, Event, Phase, Slot};
use crate::{
    error::Error,
    frame::{HEADER, Header, flag},
};

/// The rest of a DATA frame, which is still to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    stream: u32,
    /// The slot of the request that it belongs to; `None` if nobody wants it.
    slot: Option<u32>,
    is_end: bool,
    /// Bytes of data, and then of padding.
    data: usize,
    padding: usize,
}

impl Client {
    /// Takes a DATA frame with a payload of `length` bytes, of which `rest` has the beginning; returns the bytes
    /// taken.
    pub(super) fn data(
        &mut self,
        (header, length): (Header, usize),
        rest: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<Option<usize>, Error> {
        let is_padded = header.has(flag::PADDED);
        let mut part = Part {
            stream: header.stream,
            slot: None,
            is_end: header.has(flag::END_STREAM),
            data: length,
            padding: 0,
        };
        if is_padded {
            if length == 0 {
                return Err(Error::frame_size("a padded frame has no padding length"));
            }
            let Some(padding) = rest.first() else {
                return Ok(None);
            };
            part.pad(usize::from(*padding))?;
        }
        // Padding counts for flow control too (RFC 9113, section 6.1).
        self.receive_window.received(length)?;
        let owner = self.owner(header.stream, part.is_end)?;
        match owner {
            None => self.release_connection(length),
            Some(slot) => part.slot = self.begin_data(slot, length, part, on)?,
        }
        let before = HEADER + usize::from(is_padded);
        let rest = &rest[usize::from(is_padded)..];
        Ok(Some(before + self.take_part(part, rest, on)))
    }

    /// Takes more of a DATA frame that has begun; returns the bytes taken, if there are any.
    pub(super) fn more_data(
        &mut self,
        part: Part,
        bytes: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Option<usize> {
        if bytes.is_empty() {
            self.part = Some(part);
            return None;
        }
        Some(self.take_part(part, bytes, on))
    }

    /// Counts a DATA frame; returns the slot of the request if its data are wanted.
    fn begin_data(
        &mut self,
        slot: u32,
        length: usize,
        part: Part,
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<Option<u32>, Error> {
        let Part { data, is_end, .. } = part;
        let stream = self.streams.at(slot);
        stream.receive_window.received(length)?;
        stream.held += length;
        if !stream.is_answered {
            self.malformed(slot, is_end, "a body comes before its head", on);
            return Ok(None);
        }
        if let Some(promised) = &mut stream.promised {
            let Some(rest) = promised.checked_sub(data as u64) else {
                let detail = if stream.is_bare {
                    "a reply has a body that its request or status does not allow"
                } else {
                    "a body is longer than its content-length"
                };
                self.malformed(slot, is_end, detail, on);
                return Ok(None);
            };
            *promised = rest;
        }
        if data < length {
            self.release(Slot(slot), length - data);
        }
        if data > 0 {
            self.idle_frames = 0;
        } else if !is_end {
            self.idle()?;
        }
        Ok(Some(slot))
    }

    /// Takes what there is of a frame, and ends the request with the frame that is its last.
    fn take_part(
        &mut self,
        mut part: Part,
        bytes: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> usize {
        let data = &bytes[..part.data.min(bytes.len())];
        let taken = bytes.len().min(part.data + part.padding);
        part.data -= data.len();
        part.padding -= taken - data.len();
        // The request may have been cancelled meanwhile, and its slot be another's.
        let slot = part.slot.filter(|slot| {
            let stream = self.streams.at(*slot);
            stream.id == part.stream && stream.phase == Phase::Open
        });
        if let Some(slot) = slot
            && !data.is_empty()
        {
            on(Slot(slot), Event::Data(data));
        }
        let is_whole = part.data + part.padding == 0;
        match slot {
            _ if !is_whole => self.part = Some(part),
            Some(slot) if part.is_end => self.finish(slot, on),
            None if part.is_end => self.streams.cancelled.remove(part.stream),
            _ => {}
        }
        taken
    }
}

impl Part {
    /// Sets the length of the padding, which the first byte of the payload tells.
    ///
    /// # Errors
    /// Padding that is as long as the payload is a PROTOCOL_ERROR.
    fn pad(&mut self, padding: usize) -> Result<(), Error> {
        // The byte of the length counts too.
        let data = self.data.checked_sub(1 + padding);
        self.data = data.ok_or(Error::protocol("padding is longer than its frame"))?;
        self.padding = padding;
        Ok(())
    }
}
