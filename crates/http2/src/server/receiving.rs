//! Frames of the client.

use super::{Event, LEAVING, Meaning, Progress, Route, Server, Slot, streams::Owner};
use crate::{
    block::{self, Block},
    error::{Error, Reason},
    frame::{self, HEADER, Header, PREFACE, fixed, flag, kind, number, unpadded},
};

/// Answers that may wait to be written: a client that asks for more does not read.
const ANSWERS: u32 = 1000;

/// Frames in a row that carry nothing of use.
const IDLE_FRAMES: u32 = 10_000;

/// Streams that may be reset for the client's errors. hyper has the same limit (CVE-2023-44487 and the like).
const REJECTED: u32 = 1024;

/// An event, if the frame is one; or a violation of the protocol.
type Outcome<'a, R> = Result<Option<Event<'a, R>>, Error>;

const CLOSED: Error = Error::new(
    Reason::STREAM_CLOSED,
    "a frame is on a stream that has ended",
);

impl<R: Route> Server<R> {
    /// Takes whole frames from the beginning of `bytes` until one of them is an event, which it returns; `None`
    /// if more bytes are needed.
    ///
    /// # Errors
    /// Any violation of the protocol that concerns the connection, which has failed then: the output
    /// tells the client why.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Outcome<'a, R> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.frames(bytes).inspect_err(|error| {
            self.say_goodbye(self.streams.last(), error.reason, error.detail);
            self.failed = Some(error.clone());
        })
    }

    fn frames<'a>(&mut self, bytes: &mut &'a [u8]) -> Outcome<'a, R> {
        if self.progress == Progress::Preface && !self.preface(bytes)? {
            return Ok(None);
        }
        while let Some((header, payload)) =
            frame::first(bytes, self.config.receiving.frame as usize)?
        {
            *bytes = &bytes[HEADER + payload.len()..];
            let event = self.frame(header, payload)?;
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Takes the preface; returns false if it is not whole.
    fn preface(&mut self, bytes: &mut &[u8]) -> Result<bool, Error> {
        let begun = &PREFACE[..PREFACE.len().min(bytes.len())];
        if !bytes.starts_with(begun) {
            return Err(Error::protocol("the client does not begin as in HTTP/2"));
        }
        if begun.len() < PREFACE.len() {
            return Ok(false);
        }
        *bytes = &bytes[PREFACE.len()..];
        self.progress = Progress::Settings;
        Ok(true)
    }

    fn frame<'a>(&mut self, header: Header, payload: &'a [u8]) -> Outcome<'a, R> {
        if self.progress == Progress::Settings
            && (header.kind != kind::SETTINGS || header.has(flag::ACK))
        {
            return Err(Error::protocol("the first frame is not SETTINGS"));
        }
        if self.block.is_some() && header.kind != kind::CONTINUATION {
            return Err(Error::protocol("a header block is interrupted"));
        }
        match header.kind {
            kind::DATA => self.data(header, payload),
            kind::HEADERS => self.headers(header, payload),
            kind::CONTINUATION => self.continuation(header, payload),
            _ => self.control(header, payload),
        }
    }

    fn data<'a>(&mut self, header: Header, payload: &'a [u8]) -> Outcome<'a, R> {
        let data = unpadded(header, payload)?;
        let is_end = header.has(flag::END_STREAM);
        // Padding counts for flow control too (RFC 9113, section 6.1).
        self.receive_window.received(payload.len())?;
        if let Some(increment) = self.receive_window.release(payload.len()) {
            self.output.window_update(0, increment);
        }
        let slot = match self.streams.owner(header.stream) {
            Owner::Slot(slot) => slot,
            Owner::Cancelled => {
                if is_end {
                    self.streams.cancelled.remove(header.stream);
                }
                return Ok(None);
            }
            Owner::Ended | Owner::Skipped => return Err(CLOSED),
            Owner::New | Owner::Nobody => {
                return Err(Error::protocol("DATA is on a stream without a request"));
            }
        };
        let stream = self.streams.at(slot);
        if stream.is_whole {
            return self.break_off(slot, Reason::STREAM_CLOSED);
        }
        stream.is_whole = is_end;
        stream.receive_window.received(payload.len())?;
        if let Some(promised) = &mut stream.promised {
            let rest = promised.checked_sub(data.len() as u64);
            match rest {
                Some(rest) if rest == 0 || !is_end => *promised = rest,
                _ => return self.break_off(slot, Reason::PROTOCOL_ERROR),
            }
        }
        let is_replied = stream.is_replied;
        if !is_end && let Some(increment) = stream.receive_window.release(payload.len()) {
            self.output.window_update(header.stream, increment);
        }
        if data.is_empty() && !is_end {
            self.idle()?;
            return Ok(None);
        }
        let slot = Slot(slot);
        // What comes after the reply has begun is of no interest.
        Ok((!is_replied).then_some(Event::Data { slot, data, is_end }))
    }

    fn headers<'a>(&mut self, header: Header, payload: &'a [u8]) -> Outcome<'a, R> {
        let mut block = unpadded(header, payload)?;
        if header.has(flag::PRIORITY) {
            let too_short = Error::frame_size("HEADERS has no room for its priority");
            let (&[a, b, c, d, _], rest) = block.split_first_chunk().ok_or(too_short)?;
            check_priority(header.stream, number([a, b, c, d]))?;
            block = rest;
        }
        if block.len() > block::LONGEST {
            return Err(block::TOO_LONG);
        }
        let is_end = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.header_block(header.stream, is_end, block);
        }
        self.block = Some(Block::new(header, block));
        Ok(None)
    }

    fn continuation<'a>(&mut self, header: Header, payload: &'a [u8]) -> Outcome<'a, R> {
        let block = Block::continued(self.block.take(), header, payload)?;
        if header.has(flag::END_HEADERS) {
            return self.header_block(block.stream, block.is_end, &block.bytes);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Takes a whole header block.
    fn header_block<'a>(&mut self, id: u32, is_end: bool, block: &[u8]) -> Outcome<'a, R> {
        // The dynamic table has to follow, whatever becomes of the block.
        let meaning = *self.blocks.decode(block)?;
        match self.streams.owner(id) {
            Owner::New => self.request(id, is_end, meaning),
            Owner::Slot(slot) => self.trailers(slot, is_end, &meaning),
            Owner::Cancelled => {
                if is_end {
                    self.streams.cancelled.remove(id);
                }
                self.idle()?;
                Ok(None)
            }
            Owner::Ended => Err(CLOSED),
            Owner::Skipped => Err(Error::protocol("the identifier of a stream is too low")),
            Owner::Nobody => Err(Error::protocol("a stream is not a client's")),
        }
    }

    /// Takes the head of a request.
    fn request<'a>(&mut self, id: u32, is_end: bool, meaning: Meaning<R>) -> Outcome<'a, R> {
        if self.has_left() {
            // It came too late, and may be sent again on another connection.
            self.streams.note(id);
            self.refuse(id, is_end);
            return Ok(None);
        }
        self.streams.note(id);
        let (route, promised) = match meaning {
            Meaning::Request(..) if self.streams.open() >= self.config.streams as usize => {
                if self.is_settled {
                    self.count_rejected()?;
                }
                self.refuse(id, is_end);
                return Ok(None);
            }
            Meaning::Request(route, promised) if !is_end || promised.unwrap_or(0) == 0 => {
                (route, promised)
            }
            Meaning::TooLong => {
                self.reject(id, is_end, Reason::ENHANCE_YOUR_CALM)?;
                return Ok(None);
            }
            Meaning::Request(..) | Meaning::Trailers | Meaning::Malformed => {
                self.reject(id, is_end, Reason::PROTOCOL_ERROR)?;
                return Ok(None);
            }
        };
        let windows = (self.peer.window, self.config.receiving.stream_window);
        let slot = self.streams.add(id, windows);
        let stream = self.streams.at(slot);
        stream.is_whole = is_end;
        stream.promised = promised;
        let slot = Slot(slot);
        Ok(Some(Event::Request {
            slot,
            route,
            is_end,
        }))
    }

    /// Takes the header block after a request's body.
    fn trailers<'a>(&mut self, slot: u32, is_end: bool, meaning: &Meaning<R>) -> Outcome<'a, R> {
        let stream = self.streams.at(slot);
        if stream.is_whole {
            return self.break_off(slot, Reason::STREAM_CLOSED);
        }
        stream.is_whole = is_end;
        let is_promise_kept = stream.promised.unwrap_or(0) == 0;
        if !matches!(meaning, Meaning::Trailers) || !is_end || !is_promise_kept {
            return self.break_off(slot, Reason::PROTOCOL_ERROR);
        }
        let data = Event::Data {
            slot: Slot(slot),
            data: &[],
            is_end,
        };
        Ok((!stream.is_replied).then_some(data))
    }

    /// Resets a stream on which the client broke a rule.
    fn break_off<'a>(&mut self, slot: u32, reason: Reason) -> Outcome<'a, R> {
        let stream = self.streams.at(slot);
        let (id, is_whole, is_replied) = (stream.id, stream.is_whole, stream.is_replied);
        self.streams.remove(slot);
        self.reject(id, is_whole, reason)?;
        Ok((!is_replied).then_some(Event::Reset(Slot(slot))))
    }

    /// Resets a stream for the client's error.
    fn reject(&mut self, id: u32, is_end: bool, reason: Reason) -> Result<(), Error> {
        self.count_rejected()?;
        self.resets.push(reason);
        self.output.reset(id, reason);
        if !is_end {
            self.streams.cancelled.insert(id);
        }
        Ok(())
    }

    fn count_rejected(&mut self) -> Result<(), Error> {
        self.rejected += 1;
        if self.rejected > REJECTED {
            return Err(Error::abuse("too many streams had to be reset"));
        }
        Ok(())
    }

    /// Resets a stream that is not served, and may be sent again.
    fn refuse(&mut self, id: u32, is_end: bool) {
        self.resets.push(Reason::REFUSED_STREAM);
        self.output.reset(id, Reason::REFUSED_STREAM);
        if !is_end {
            self.streams.cancelled.insert(id);
        }
    }

    /// Takes a frame that is not part of a request.
    #[cold]
    fn control<'a>(&mut self, header: Header, payload: &[u8]) -> Outcome<'a, R> {
        let is_of_connection = header.stream == 0;
        match header.kind {
            kind::SETTINGS | kind::PING | kind::GOAWAY if !is_of_connection => {
                return Err(Error::protocol("a frame of the connection is on a stream"));
            }
            kind::PRIORITY | kind::RST_STREAM if is_of_connection => {
                return Err(Error::protocol("a stream's frame is on none"));
            }
            kind::RST_STREAM => return self.rst_stream(header.stream, payload),
            kind::WINDOW_UPDATE => return self.window_update(header.stream, payload),
            kind::SETTINGS => self.settings(header, payload)?,
            kind::PING => self.ping(header, payload)?,
            kind::GOAWAY => {
                let too_short = Error::frame_size("GOAWAY is shorter than 8 bytes");
                payload.first_chunk::<8>().ok_or(too_short)?;
                self.idle()?;
            }
            kind::PUSH_PROMISE => return Err(Error::protocol("a client pushes")),
            kind::PRIORITY => {
                let [a, b, c, d, _] = fixed(payload, "PRIORITY is not of 5 bytes")?;
                check_priority(header.stream, number([a, b, c, d]))?;
                self.idle()?;
            }
            // Types that are not known are ignored (RFC 9113, section 5.5).
            _ => self.idle()?,
        }
        Ok(None)
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        if header.has(flag::ACK) {
            fixed::<0>(payload, "an acknowledgement of SETTINGS has a payload")?;
            self.is_settled = true;
            return self.idle();
        }
        self.progress = Progress::Greeted;
        let before = i64::from(self.peer.window);
        self.peer.apply(payload)?;
        let change = i64::from(self.peer.window) - before;
        if change != 0 {
            self.streams.change_windows(change)?;
            for slot in self.streams.unsent() {
                self.queue(slot);
            }
        }
        self.encoder.resize(self.peer.table);
        self.peer.table.0 = self.peer.table.1;
        self.answer()?;
        let acknowledgement = Header::new(kind::SETTINGS, flag::ACK, 0);
        self.output.frame(acknowledgement, &[]);
        self.send_bodies();
        Ok(())
    }

    fn ping(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        let payload = fixed::<8>(payload, "PING is not of 8 bytes")?;
        if header.has(flag::ACK) {
            if payload == LEAVING && self.told.is_some() {
                self.leave();
            }
            return self.idle();
        }
        self.answer()?;
        let acknowledgement = Header::new(kind::PING, flag::ACK, 0);
        self.output.frame(acknowledgement, &payload);
        Ok(())
    }

    fn rst_stream<'a>(&mut self, id: u32, payload: &[u8]) -> Outcome<'a, R> {
        fixed::<4>(payload, "RST_STREAM is not of 4 bytes")?;
        match self.streams.owner(id) {
            Owner::Slot(slot) => {
                let stream = self.streams.at(slot);
                let (is_whole, is_replied) = (stream.is_whole, stream.is_replied);
                self.streams.remove(slot);
                // A request that ends before it is whole was of no use.
                if !is_whole {
                    self.idle()?;
                }
                Ok((!is_replied).then_some(Event::Reset(Slot(slot))))
            }
            Owner::Cancelled => {
                self.streams.cancelled.remove(id);
                self.idle()?;
                Ok(None)
            }
            Owner::Ended | Owner::Skipped => {
                self.idle()?;
                Ok(None)
            }
            Owner::New | Owner::Nobody => {
                Err(Error::protocol("a stream without a request is reset"))
            }
        }
    }

    fn window_update<'a>(&mut self, id: u32, payload: &[u8]) -> Outcome<'a, R> {
        let increment = number(fixed(payload, "WINDOW_UPDATE is not of 4 bytes")?);
        if id == 0 {
            if increment == 0 {
                return Err(Error::protocol("WINDOW_UPDATE adds nothing"));
            }
            self.send_window.change(increment.into())?;
            self.send_bodies();
            return Ok(None);
        }
        match self.streams.owner(id) {
            Owner::Slot(slot) if increment == 0 => self.break_off(slot, Reason::PROTOCOL_ERROR),
            Owner::Slot(slot) => {
                let window = &mut self.streams.at(slot).send_window;
                if window.change(increment.into()).is_err() {
                    return self.break_off(slot, Reason::FLOW_CONTROL_ERROR);
                }
                self.queue(slot);
                self.send_bodies();
                Ok(None)
            }
            Owner::Ended | Owner::Skipped if increment == 0 => {
                Err(Error::protocol("WINDOW_UPDATE adds nothing"))
            }
            Owner::Cancelled | Owner::Ended | Owner::Skipped => {
                self.idle()?;
                Ok(None)
            }
            Owner::New | Owner::Nobody => {
                let detail = "WINDOW_UPDATE is on a stream without a request";
                Err(Error::protocol(detail))
            }
        }
    }

    /// Counts an answer to the client.
    fn answer(&mut self) -> Result<(), Error> {
        self.answers += 1;
        if self.answers > ANSWERS {
            let detail = "the client asks for answers and does not read them";
            return Err(Error::abuse(detail));
        }
        Ok(())
    }

    /// Counts a frame that carries nothing of use.
    fn idle(&mut self) -> Result<(), Error> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES {
            return Err(Error::abuse("the client sends frames without content"));
        }
        Ok(())
    }
}

/// Checks that a stream does not depend on itself (RFC 7540, section 5.3.1). Priorities are ignored otherwise.
fn check_priority(id: u32, on: u32) -> Result<(), Error> {
    if id == on {
        return Err(Error::protocol("a stream depends on itself"));
    }
    Ok(())
}
