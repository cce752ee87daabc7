//! Bodies of requests, under the server's flow control.

use bytes::Buf;

use super::{Client, Phase};

impl Client {
    /// Sends a piece of a body as far as the windows and the output have room, and returns the bytes sent. The
    /// last piece ends the request.
    pub(super) fn send_piece(&mut self, slot: u32, body: &[u8], is_last: bool) -> usize {
        let stream = self.streams.at(slot);
        let windows = [&mut stream.send_window, &mut self.send_window];
        self.output
            .data((stream.id, is_last), body, windows, self.peer.frame)
    }

    /// Queues the request in a slot if its stream's window allows it to send.
    pub(super) fn queue(&mut self, slot: u32) {
        let stream = self.streams.at(slot);
        let may_send = !stream.is_sent && stream.send_window.available() > 0;
        if may_send && !stream.is_queued {
            stream.is_queued = true;
            self.sending.push_back(slot);
        }
    }

    /// Sends of the queued bodies what is allowed now, by turns.
    pub(super) fn send_bodies(&mut self) {
        while self.send_window.available() > 0
            && self.output.room() > 0
            && let Some(slot) = self.sending.pop_front()
        {
            let stream = self.streams.at(slot);
            stream.is_queued = false;
            if stream.phase != Phase::Open || stream.is_sent {
                continue;
            }
            let mut body = std::mem::take(&mut stream.body);
            let piece = body.len().min(self.peer.frame);
            let is_last = piece == body.len();
            let sent = self.send_piece(slot, &body[..piece], is_last);
            body.advance(sent);
            let stream = self.streams.at(slot);
            stream.is_sent = body.is_empty();
            stream.body = body;
            self.queue(slot);
        }
    }
}
