//! Frames of the server that are not part of a reply.

use super::{Client, Event, Goaway, Slot, streams::Owner};
use crate::{
    error::{Error, Reason},
    frame::{Header, fixed, flag, kind, number},
};

/// Answers that may wait to be written: a server that asks for more does not read.
const ANSWERS: u32 = 1000;

/// Frames in a row that carry nothing of use.
const IDLE_FRAMES: u32 = 10_000;

/// Bytes of the debug data of a GOAWAY that are kept.
const DETAIL: usize = 64;

impl Client {
    /// Takes a frame that is not part of a reply.
    #[cold]
    pub(super) fn control(
        &mut self,
        header: Header,
        payload: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let is_of_connection = header.stream == 0;
        match header.kind {
            kind::SETTINGS | kind::PING | kind::GOAWAY if !is_of_connection => {
                Err(Error::protocol("a frame of the connection is on a stream"))
            }
            kind::PRIORITY | kind::RST_STREAM if is_of_connection => {
                Err(Error::protocol("a stream's frame is on none"))
            }
            kind::SETTINGS => self.settings(header, payload),
            kind::PING => self.ping(header, payload),
            kind::GOAWAY => self.goodbye(payload, on),
            kind::RST_STREAM => self.rst_stream(header.stream, payload, on),
            kind::WINDOW_UPDATE => self.window_update(header.stream, payload),
            kind::PUSH_PROMISE => Err(Error::protocol("the server pushes, which is turned off")),
            kind::PRIORITY => {
                fixed::<5>(payload, "PRIORITY is not of 5 bytes")?;
                self.idle()
            }
            // Types that are not known are ignored (RFC 9113, section 5.5).
            _ => self.idle(),
        }
    }

    fn settings(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        if header.has(flag::ACK) {
            fixed::<0>(payload, "an acknowledgement of SETTINGS has a payload")?;
            return self.idle();
        }
        self.is_greeted = true;
        let before = i64::from(self.peer.window);
        if !self.peer.has_told_streams {
            // A server that tells no limit has none.
            self.peer.streams = u32::MAX;
            self.peer.has_told_streams = true;
        }
        self.peer.apply(payload)?;
        let change = i64::from(self.peer.window) - before;
        if change != 0 {
            self.streams.change_windows(change)?;
            for slot in self.streams.open_slots(|stream| !stream.body.is_empty()) {
                self.queue(slot);
            }
        }
        self.encoder.resize(self.peer.table);
        self.peer.table.0 = self.peer.table.1;
        self.answer()?;
        let acknowledgement = Header::new(kind::SETTINGS, flag::ACK, 0);
        self.output.frame(acknowledgement, &[]);
        self.open_waiting();
        self.send_bodies();
        Ok(())
    }

    fn ping(&mut self, header: Header, payload: &[u8]) -> Result<(), Error> {
        let payload = fixed::<8>(payload, "PING is not of 8 bytes")?;
        if header.has(flag::ACK) {
            return self.idle();
        }
        self.answer()?;
        let acknowledgement = Header::new(kind::PING, flag::ACK, 0);
        self.output.frame(acknowledgement, &payload);
        Ok(())
    }

    fn goodbye(
        &mut self,
        payload: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let too_short = Error::frame_size("GOAWAY is shorter than 8 bytes");
        let &[a, b, c, d, reason @ ..] = payload.first_chunk::<8>().ok_or(too_short)?;
        let detail = &payload[8..];
        let goaway = Goaway {
            last: number([a, b, c, d]),
            reason: Reason(u32::from_be_bytes(reason)),
            detail: detail[..detail.len().min(DETAIL)]
                .escape_ascii()
                .to_string(),
        };
        let earlier = self.goaway.as_ref();
        if earlier.is_some_and(|earlier| goaway.last > earlier.last) {
            return Err(Error::protocol("the last stream in GOAWAY increases"));
        }
        self.leave(&goaway, on);
        self.goaway = Some(goaway);
        self.idle()
    }

    fn rst_stream(
        &mut self,
        id: u32,
        payload: &[u8],
        on: &mut impl FnMut(Slot, Event<'_>),
    ) -> Result<(), Error> {
        let code = fixed::<4>(payload, "RST_STREAM is not of 4 bytes")?;
        match self.streams.owner(id) {
            Owner::Slot(slot) => {
                let reason = Reason(u32::from_be_bytes(code));
                let is_refused =
                    reason == Reason::REFUSED_STREAM && !self.streams.at(slot).is_answered;
                self.end(slot);
                let event = if is_refused {
                    Event::Refused
                } else {
                    Event::Reset(reason)
                };
                on(Slot(slot), event);
                Ok(())
            }
            Owner::Cancelled => {
                self.streams.cancelled.remove(id);
                Ok(())
            }
            Owner::Ended => self.idle(),
            Owner::Nobody => Err(Error::protocol("a stream without a request is reset")),
        }
    }

    fn window_update(&mut self, id: u32, payload: &[u8]) -> Result<(), Error> {
        let increment = number(fixed(payload, "WINDOW_UPDATE is not of 4 bytes")?);
        if increment == 0 {
            return Err(Error::protocol("WINDOW_UPDATE adds nothing"));
        }
        let increment = i64::from(increment);
        if id == 0 {
            self.send_window.change(increment)?;
            self.send_bodies();
            return Ok(());
        }
        match self.streams.owner(id) {
            Owner::Slot(slot) => {
                self.streams.at(slot).send_window.change(increment)?;
                self.queue(slot);
                self.send_bodies();
                Ok(())
            }
            Owner::Cancelled | Owner::Ended => self.idle(),
            Owner::Nobody => {
                let detail = "WINDOW_UPDATE is on a stream without a request";
                Err(Error::protocol(detail))
            }
        }
    }

    /// Counts an answer to the server.
    fn answer(&mut self) -> Result<(), Error> {
        self.answers += 1;
        if self.answers > ANSWERS {
            let detail = "the server asks for answers and does not read them";
            return Err(Error::abuse(detail));
        }
        Ok(())
    }

    /// Counts a frame that carries nothing of use.
    pub(super) fn idle(&mut self) -> Result<(), Error> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES {
            return Err(Error::abuse("the server sends frames without content"));
        }
        Ok(())
    }
}
