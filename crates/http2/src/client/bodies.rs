//! Bodies of requests, under the server's flow control.

use bytes::Buf;

use super::{Body, Client, Phase, Slot};
use crate::frame::{Header, flag, kind};

impl Client {
    /// Sends the next piece of a [stream](Self::stream) as far as the server allows now, and the rest as soon as it
    /// does; with `is_last`, the body ends with it. Returns false if the request is at its end.
    ///
    /// A piece that is given while bytes of the last one are [unsent](Self::unsent) is copied behind them: who waits
    /// for [`next_sent`](Self::next_sent) needs no more memory than a piece.
    pub fn send(&mut self, slot: Slot, piece: Body<'_>, is_last: bool) -> bool {
        let Slot(slot) = slot;
        let stream = self.streams.at(slot);
        if stream.phase == Phase::Ended || stream.is_given {
            return false;
        }
        stream.is_given = is_last;
        if stream.phase == Phase::Waiting || !stream.body.is_empty() {
            if stream.body.is_empty() {
                stream.body = piece.to_owned();
            } else {
                stream.body = [&stream.body, piece.as_slice()].concat().into();
            }
        } else if !piece.as_slice().is_empty() {
            self.send_first(slot, piece);
        } else if is_last {
            stream.is_sent = true;
            let end = Header::new(kind::DATA, flag::END_STREAM, stream.id);
            self.output.frame(end, &[]);
        }
        true
    }

    /// Returns the bytes of a request's body that were given and not sent. If there are some and no output, the
    /// server holds them back: by its windows, or its limit of streams.
    pub fn unsent(&mut self, slot: Slot) -> usize {
        self.streams.at(slot.0).body.len()
    }

    /// Returns true if the server does not let all go that is unsent: its windows have no room for it, or its limit of
    /// streams keeps the request waiting.
    pub fn is_held_back(&mut self, slot: Slot) -> bool {
        let room = self.send_window.available();
        let stream = self.streams.at(slot.0);
        let room = room.min(stream.send_window.available());
        let room = if stream.phase == Phase::Waiting {
            0
        } else {
            room
        };
        stream.body.len() > room
    }

    /// Returns a [stream](Self::stream) of which nothing is unsent any more; each once for every piece that could
    /// not be sent at once.
    pub fn next_sent(&mut self) -> Option<Slot> {
        self.sent.pop_front().map(Slot)
    }

    /// Sends of a body of which nothing is unsent what is allowed now, and keeps the rest.
    pub(super) fn send_first(&mut self, slot: u32, body: Body<'_>) {
        let is_last = self.streams.at(slot).is_given;
        let sent = self.send_piece(slot, body, is_last);
        let stream = self.streams.at(slot);
        if sent < body.as_slice().len() {
            stream.body = body.rest(sent);
            self.queue(slot);
        } else {
            stream.is_sent = is_last;
        }
    }

    /// Sends a piece of a body as far as the windows and the output have room, and returns the bytes sent. The
    /// last piece ends the request.
    fn send_piece(&mut self, slot: u32, piece: Body<'_>, is_last: bool) -> usize {
        let stream = self.streams.at(slot);
        let windows = [&mut stream.send_window, &mut self.send_window];
        let shared = match piece {
            Body::Short(_) => None,
            Body::Shared(body) => Some(body),
        };
        let (piece, longest) = ((piece.as_slice(), shared), self.peer.frame);
        self.output
            .data((stream.id, is_last), piece, windows, longest)
    }

    /// Queues the request in a slot if its stream's window allows it to send.
    pub(super) fn queue(&mut self, slot: u32) {
        let stream = self.streams.at(slot);
        let may_send = !stream.body.is_empty() && stream.send_window.available() > 0;
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
            if stream.phase != Phase::Open || stream.body.is_empty() {
                continue;
            }
            let is_given = stream.is_given;
            let mut body = std::mem::take(&mut stream.body);
            let piece = body.len().min(self.peer.frame);
            let is_last = is_given && piece == body.len();
            let piece = body.slice(..piece);
            let sent = self.send_piece(slot, Body::Shared(&piece), is_last);
            body.advance(sent);
            let stream = self.streams.at(slot);
            if body.is_empty() {
                stream.is_sent = is_given;
                if stream.takes_pieces {
                    self.sent.push_back(slot);
                }
            } else {
                stream.body = body;
                self.queue(slot);
            }
        }
    }
}
