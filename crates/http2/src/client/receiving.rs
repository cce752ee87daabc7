//! Frames of the server: those of replies.

use super::{Client, Event, Slot, streams::Owner};
use crate::{
    block::{self, Block},
    error::{Error, Reason},
    frame::{self, HEADER, Header, flag, kind, unpadded},
    hpack::replies::Meaning,
};

impl Client {
    /// Takes the whole frames at the beginning of `bytes`, and as much as there is of a DATA frame; gives `on`
    /// what becomes of the requests, and returns the bytes taken.
    ///
    /// # Errors
    /// Any violation of the protocol that concerns the connection, which has failed then: the output
    /// tells the server why.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        mut on: impl FnMut(Slot, Event<'_>),
    ) -> Result<usize, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut taken = 0;
        loop {
            match self.frame(&bytes[taken..], &mut on) {
                Ok(Some(length)) => taken += length,
                Ok(None) => return Ok(taken),
                Err(error) => {
                    self.say_why(error.reason, error.detail);
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    /// Takes the first frame if it is whole, or as much of DATA as there is, and returns the bytes taken.
    fn frame(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<Option<usize>, Error> {
        if let Some(part) = self.part.take() {
            return Ok(self.more_data(part, bytes, on));
        }
        if !self.is_greeted && bytes.starts_with(b"HTTP/") {
            return Err(Error::protocol("the server answers in HTTP/1"));
        }
        let Some((header, length, rest)) = frame::begin(bytes) else {
            return Ok(None);
        };
        let is_data = header.kind == kind::DATA;
        let longest = self.config.frame as usize;
        // Whoever reads has to keep no more of a frame that is not whole.
        let longest = if is_data {
            longest
        } else {
            longest.min(block::LONGEST)
        };
        frame::check_length(length, longest)?;
        if !is_data && rest.len() < length {
            return Ok(None);
        }
        if !self.is_greeted && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Error::protocol("the first frame is not SETTINGS"));
        }
        if self.block.is_some() && header.kind != kind::CONTINUATION {
            return Err(Error::protocol("a header block is interrupted"));
        }
        if is_data {
            return self.data((header, length), rest, on);
        }
        let payload = &rest[..length];
        match header.kind {
            kind::HEADERS => self.headers(header, payload, on)?,
            kind::CONTINUATION => self.continuation(header, payload, on)?,
            _ => self.control(header, payload, on)?,
        }
        Ok(Some(HEADER + length))
    }

    fn headers(
        &mut self,
        header: Header,
        payload: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let mut block = unpadded(header, payload)?;
        if header.has(flag::PRIORITY) {
            let too_short = Error::frame_size("HEADERS has no room for its priority");
            (_, block) = block.split_first_chunk::<5>().ok_or(too_short)?;
        }
        let is_end = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.header_block(header.stream, is_end, block, on);
        }
        self.block = Some(Block::new(header, block));
        Ok(())
    }

    fn continuation(
        &mut self,
        header: Header,
        payload: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let block = Block::continued(self.block.take(), header, payload)?;
        if header.has(flag::END_HEADERS) {
            return self.header_block(block.stream, block.is_end, &block.bytes, on);
        }
        self.block = Some(block);
        Ok(())
    }

    /// Takes a whole header block.
    fn header_block(
        &mut self,
        id: u32,
        is_end: bool,
        block: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        // The dynamic table has to follow, whoever's the block is.
        let meaning = self.replies.decode(block)?.clone();
        match self.owner(id, is_end)? {
            Some(slot) => self.fields(slot, is_end, &meaning, on),
            None => Ok(()),
        }
    }

    fn fields(
        &mut self,
        slot: u32,
        is_end: bool,
        meaning: &Meaning,
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let stream = self.streams.at(slot);
        let result = match (meaning, stream.is_answered) {
            (Err(detail), _) => Err(*detail),
            (Ok(fields), true) if fields.status().is_some() => Err("trailers have a status"),
            (Ok(_), true) if !is_end => Err("trailers are not the end"),
            (Ok(fields), true) => {
                on(Slot(slot), Event::Trailers(fields));
                Ok(())
            }
            (Ok(fields), false) => match fields.status() {
                None => Err("a reply has no status"),
                Some(100..200) if is_end => Err("an interim reply is the end"),
                Some(101) => Err("HTTP/2 has no status 101"),
                Some(100..200) => return self.idle(),
                Some(status) => {
                    stream.is_answered = true;
                    stream.is_bare |= matches!(status, 204 | 304);
                    let promised = fields.content_length();
                    stream.promised = if stream.is_bare { Some(0) } else { promised };
                    on(Slot(slot), Event::Head(fields));
                    Ok(())
                }
            },
        };
        match result {
            Err(detail) => self.malformed(slot, is_end, detail, on),
            Ok(()) if is_end => self.finish(slot, on),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Returns the slot of the request whose frame this is; `None` if it has been cancelled.
    pub(super) fn owner(&mut self, id: u32, is_end: bool) -> Result<Option<u32>, Error> {
        match self.streams.owner(id) {
            Owner::Slot(slot) => Ok(Some(slot)),
            Owner::Cancelled => {
                if is_end {
                    self.streams.cancelled.remove(id);
                }
                Ok(None)
            }
            Owner::Ended => {
                let detail = "a reply goes on after its end";
                Err(Error::new(Reason::STREAM_CLOSED, detail))
            }
            Owner::Nobody => Err(Error::protocol("a reply is on a stream without a request")),
        }
    }

    /// Ends a request whose reply is whole.
    pub(super) fn finish(&mut self, slot: u32, on: &mut impl FnMut(Slot, Event<'_>)) {
        let stream = self.streams.at(slot);
        if stream.promised.is_some_and(|rest| rest > 0) {
            let detail = "a body is shorter than its content-length";
            return self.malformed(slot, true, detail, on);
        }
        if !stream.is_sent {
            // What is left of the body is not wanted (RFC 9113, section 8.1).
            let id = stream.id;
            self.output.reset(id, Reason::CANCEL);
        }
        self.idle_frames = 0;
        self.end(slot);
        on(Slot(slot), Event::End);
    }

    /// Ends a request whose reply is malformed (RFC 9113, section 8.1.1).
    pub(super) fn malformed(
        &mut self,
        slot: u32,
        is_end: bool,
        detail: &'static str,
        on: &mut impl FnMut(Slot, Event<'_>),
    ) {
        if is_end {
            let id = self.streams.at(slot).id;
            self.output.reset(id, Reason::PROTOCOL_ERROR);
            self.end(slot);
        } else {
            self.reset(slot, Reason::PROTOCOL_ERROR);
        }
        on(Slot(slot), Event::Malformed(detail));
    }
}
