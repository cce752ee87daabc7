//! Replies, under the client's flow control.

use bytes::{Buf, Bytes};

use super::{Route, Server, Slot};
use crate::{error::Reason, head::Head};

impl<R: Route> Server<R> {
    /// Replies to a request with a head, a body, and trailers. What the client does not allow to be sent now is
    /// copied, and sent as soon as it does.
    pub fn reply(&mut self, slot: Slot, head: &Head, body: &[u8], trailers: &Head) {
        let sent = self.begin(slot, head, body);
        if sent == body.len() {
            self.finish(slot.0, trailers);
        } else {
            self.keep(slot.0, Bytes::copy_from_slice(&body[sent..]), trailers);
        }
    }

    /// Replies as [`reply`](Self::reply), but keeps the body instead of a copy until it has been sent.
    pub fn reply_shared(&mut self, slot: Slot, head: &Head, mut body: Bytes, trailers: &Head) {
        let sent = self.begin(slot, head, &body);
        body.advance(sent);
        if body.is_empty() {
            self.finish(slot.0, trailers);
        } else {
            self.keep(slot.0, body, trailers);
        }
    }

    /// Replies to a request with a head only.
    pub fn reply_head(&mut self, slot: Slot, head: &Head) {
        self.finish(slot.0, head);
    }

    /// Returns the length of what the client does not allow to be sent of a reply's body, in bytes.
    pub fn unsent(&self, slot: Slot) -> usize {
        self.streams.body(slot.0).len()
    }

    /// Resets a stream whose reply the client does not take.
    pub fn give_up(&mut self, slot: Slot) {
        let stream = self.streams.at(slot.0);
        let (id, is_whole) = (stream.id, stream.is_whole);
        self.output.reset(id, Reason::CANCEL);
        if !is_whole {
            self.streams.cancelled.insert(id);
        }
        self.streams.remove(slot.0);
    }

    /// Sends the head, and of the body what is allowed; returns the bytes sent of it.
    fn begin(&mut self, slot: Slot, head: &Head, body: &[u8]) -> usize {
        let stream = self.streams.at(slot.0);
        stream.is_replied = true;
        let id = stream.id;
        let longest = self.peer.frame;
        self.output
            .header_block((id, false), head, &mut self.encoder, longest);
        self.send_piece(slot.0, body)
    }

    fn keep(&mut self, slot: u32, body: Bytes, trailers: &Head) {
        let stream = self.streams.at(slot);
        stream.body = body;
        stream.trailers = Some(trailers.clone());
        self.queue(slot);
    }

    /// Sends the last header block of a reply.
    fn finish(&mut self, slot: u32, last: &Head) {
        let stream = self.streams.at(slot);
        let (id, is_whole) = (stream.id, stream.is_whole);
        let longest = self.peer.frame;
        self.output
            .header_block((id, true), last, &mut self.encoder, longest);
        if !is_whole {
            // The rest of the request is not wanted (RFC 9113, section 8.1).
            self.output.reset(id, Reason::NO_ERROR);
            self.streams.cancelled.insert(id);
        }
        self.idle_frames = 0;
        self.streams.remove(slot);
    }

    /// Sends a piece of a body as far as the windows and the output have room, and returns the bytes sent.
    fn send_piece(&mut self, slot: u32, body: &[u8]) -> usize {
        let stream = self.streams.at(slot);
        let windows = [&mut stream.send_window, &mut self.send_window];
        self.output
            .data((stream.id, false), (body, None), windows, self.peer.frame)
    }

    /// Queues the stream in a slot if its window allows it to send.
    pub(super) fn queue(&mut self, slot: u32) {
        let stream = self.streams.at(slot);
        let may_send = !stream.body.is_empty() && stream.send_window.available() > 0;
        if may_send && !stream.is_queued {
            stream.is_queued = true;
            self.sending.push_back(slot);
        }
    }

    /// Sends of the queued replies what is allowed now, by turns.
    pub(super) fn send_bodies(&mut self) {
        while self.send_window.available() > 0
            && self.output.room() > 0
            && let Some(slot) = self.sending.pop_front()
        {
            let stream = self.streams.at(slot);
            stream.is_queued = false;
            // Nothing, where the stream is over: its slot may be another's, whose own window counts.
            let mut body = std::mem::take(&mut stream.body);
            let piece = body.len().min(self.peer.frame);
            let sent = self.send_piece(slot, &body[..piece]);
            body.advance(sent);
            let stream = self.streams.at(slot);
            if !body.is_empty() {
                stream.body = body;
                self.queue(slot);
            } else if let Some(trailers) = stream.trailers.take() {
                self.finish(slot, &trailers);
            }
        }
    }
}
