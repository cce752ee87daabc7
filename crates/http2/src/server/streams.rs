//! The streams of a connection, which the client opens.

use bytes::Bytes;

use crate::{
    cancelled::Cancelled,
    error::Error,
    flow::{ReceiveWindow, SendWindow},
    head::Head,
    places::Places,
};

/// Reset streams whose late frames are told from forbidden ones.
const CANCELLED: usize = 1024;

/// A request and its reply.
#[derive(Debug)]
pub(super) struct Stream {
    /// The identifier; 0 if the slot is free.
    pub(super) id: u32,
    /// The request is whole.
    pub(super) is_whole: bool,
    /// The reply has begun.
    pub(super) is_replied: bool,
    /// The slot is in the queue of those that may send.
    pub(super) is_queued: bool,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    /// The rest of the body that the request's head has promised.
    pub(super) promised: Option<u64>,
    /// The rest of the reply to be sent: its body, and then its trailers.
    pub(super) body: Bytes,
    pub(super) trailers: Option<Head>,
}

/// The owner of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The open stream's in this slot.
    Slot(u32),
    /// A stream's that this end has reset.
    Cancelled,
    /// A stream's that has ended.
    Ended,
    /// A stream's that was passed over, and cannot be opened any more.
    Skipped,
    /// A stream's that the client may open.
    New,
    /// No stream's of a client.
    Nobody,
}

/// The streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    slab: Vec<Stream>,
    free: Vec<u32>,
    places: Places,
    /// The last identifier.
    last: u32,
    /// A bit for each of the 64 identifiers up to the last one: set if it was opened. The last one has the lowest.
    opened: u64,
    /// Streams that this end has reset, and on which the client may not know it yet.
    pub(super) cancelled: Cancelled,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            places: Places::default(),
            last: 0,
            opened: 0,
            cancelled: Cancelled::new(CANCELLED),
        }
    }
}

impl Streams {
    pub(super) fn open(&self) -> usize {
        self.places.count()
    }

    pub(super) fn last(&self) -> u32 {
        self.last
    }

    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.slab[slot as usize]
    }

    /// Returns the rest of the reply's body in a slot.
    pub(super) fn body(&self, slot: u32) -> &Bytes {
        &self.slab[slot as usize].body
    }

    /// Notes that the client has used a new identifier.
    pub(super) fn note(&mut self, id: u32) {
        let step = id.div_ceil(2) - self.last.div_ceil(2);
        self.opened = self.opened.checked_shl(step).unwrap_or(0) | 1;
        self.last = id;
    }

    /// Adds a stream with these windows to send and to receive, and returns its slot.
    pub(super) fn add(&mut self, id: u32, (send, receive): (u32, u32)) -> u32 {
        let slot = self.free.pop().unwrap_or(self.slab.len() as u32);
        self.places.insert(id, slot);
        let is_queued = self
            .slab
            .get(slot as usize)
            .is_some_and(|own| own.is_queued);
        let new = Stream {
            id,
            is_whole: false,
            is_replied: false,
            is_queued,
            send_window: SendWindow::new(send),
            receive_window: ReceiveWindow::new(receive),
            promised: None,
            body: Bytes::new(),
            trailers: None,
        };
        match self.slab.get_mut(slot as usize) {
            Some(stream) => *stream = new,
            None => self.slab.push(new),
        }
        slot
    }

    /// Removes an open stream.
    pub(super) fn remove(&mut self, slot: u32) {
        let stream = &mut self.slab[slot as usize];
        self.places.remove(stream.id);
        stream.id = 0;
        stream.body = Bytes::new();
        stream.trailers = None;
        self.free.push(slot);
    }

    /// Returns whose the frames of a stream are.
    pub(super) fn owner(&self, id: u32) -> Owner {
        if let Some(slot) = self.places.find(id) {
            return Owner::Slot(slot);
        }
        let is_skipped = || {
            let age = (self.last - id) / 2;
            self.opened
                .checked_shr(age)
                .is_some_and(|opened| opened & 1 == 0)
        };
        match id {
            _ if id.is_multiple_of(2) => Owner::Nobody,
            _ if id > self.last => Owner::New,
            _ if self.cancelled.contains(id) => Owner::Cancelled,
            _ if is_skipped() => Owner::Skipped,
            _ => Owner::Ended,
        }
    }

    /// Changes the send windows of all open streams.
    ///
    /// # Errors
    /// A window that becomes too large is a FLOW_CONTROL_ERROR.
    pub(super) fn change_windows(&mut self, by: i64) -> Result<(), Error> {
        let mut open = self.slab.iter_mut().filter(|stream| stream.id != 0);
        open.try_for_each(|stream| stream.send_window.change(by))
    }

    /// Returns the slots of the streams whose replies are not sent whole.
    pub(super) fn unsent(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.slab);
        let unsent = slots.filter(|(_, stream)| stream.id != 0 && !stream.body.is_empty());
        unsent.map(|(slot, _)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Owner::{Ended, New, Nobody, Skipped},
        *,
    };

    #[test]
    fn ended_and_skipped_streams_are_told_apart() {
        let mut streams = Streams::default();
        for id in [1, 5, 7] {
            streams.note(id);
            let slot = streams.add(id, (1, 1));
            assert_eq!(streams.owner(id), Owner::Slot(slot));
            streams.remove(slot);
        }
        let owners = [1, 2, 3, 5, 7, 9].map(|id| streams.owner(id));
        assert_eq!(owners, [Ended, Nobody, Skipped, Ended, Ended, New]);
        streams.note(1001);
        assert_eq!(streams.owner(999), Skipped);
        // Too long ago to be told.
        assert_eq!(streams.owner(9), Ended);
    }

    #[test]
    fn cancelled_streams_are_known_up_to_a_number() {
        let mut streams = Streams::default();
        let ids: Vec<_> = (1..).step_by(2).take(CANCELLED + 2).collect();
        for id in &ids {
            streams.note(*id);
        }
        for id in &ids[1..] {
            streams.cancelled.insert(*id);
        }
        assert_eq!(streams.cancelled.len(), CANCELLED);
        assert!(ids.iter().all(|id| streams.owner(*id) == Owner::Cancelled));
        streams.cancelled.remove(ids[3]);
        assert_eq!(streams.owner(ids[3]), Owner::Ended);
    }
}
