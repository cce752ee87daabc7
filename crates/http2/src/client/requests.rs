//! Heads of requests, and their streams' beginning and end.

use super::{Body, Client, Event, Goaway, Phase, Slot};
use crate::{error::Reason, head::Head};

impl Client {
    /// Returns true if the server allows one more stream.
    pub(super) fn may_open(&self) -> bool {
        let has_room = self.streams.open_count() < self.peer.streams as usize;
        has_room && !self.has_ended()
    }

    /// Opens a stream for the request in a slot; sends its head, and of its body what is allowed.
    pub(super) fn open(&mut self, slot: u32, head: &Head, body: Body<'_>) {
        let windows = (self.peer.window, self.config.stream_window);
        let id = self.streams.open(slot, windows.0, windows.1);
        let is_given = self.streams.at(slot).is_given;
        let is_end = is_given && body.as_slice().is_empty();
        let (stream, longest) = ((id, is_end), self.peer.frame);
        self.output
            .header_block(stream, head, &mut self.encoder, longest);
        let stream = self.streams.at(slot);
        stream.is_bare = head.is_head();
        stream.is_sent = is_end;
        if !body.as_slice().is_empty() {
            self.send_first(slot, body);
        }
    }

    /// Opens streams for the requests that wait, as far as the server allows.
    pub(super) fn open_waiting(&mut self) {
        while !self.waiting.is_empty()
            && self.may_open()
            && let Some((_, slot)) = self.waiting.pop_first()
        {
            let stream = self.streams.at(slot);
            let (head, body) = (stream.head.take(), std::mem::take(&mut stream.body));
            // A request that waits has its head.
            if let Some(head) = head {
                self.open(slot, &head, Body::Shared(&body));
                let stream = self.streams.at(slot);
                if !body.is_empty() && stream.body.is_empty() && stream.takes_pieces {
                    self.sent.push_back(slot);
                }
            }
        }
    }

    /// Ends the stream in a slot, of which the server has sent or wants no more.
    pub(super) fn end(&mut self, slot: u32) {
        let held = self.streams.end(slot);
        self.streams.at(slot).body.clear();
        self.release_connection(held);
        self.open_waiting();
    }

    /// Resets the stream in a slot, on which the server may still send.
    pub(super) fn reset(&mut self, slot: u32, reason: Reason) {
        let id = self.streams.at(slot).id;
        self.output.reset(id, reason);
        self.streams.cancelled.insert(id);
        self.end(slot);
    }

    /// Tells the requests that the server has not processed and will not: those on streams after its last one, and
    /// those that wait. They are told in their order, so that the oldest can be the first to be sent again.
    pub(super) fn leave(&mut self, goaway: &Goaway, on: &mut impl FnMut(Slot, Event<'_>)) {
        let mut left = self.streams.open_slots(|stream| stream.id > goaway.last);
        left.sort_unstable_by_key(|slot| self.streams.at(*slot).id);
        for slot in &left {
            self.end(*slot);
        }
        let waiting = std::mem::take(&mut self.waiting);
        for slot in waiting.into_values() {
            self.streams.at(slot).phase = Phase::Ended;
            left.push(slot);
        }
        for slot in left {
            on(Slot(slot), Event::Left(goaway));
        }
    }
}
