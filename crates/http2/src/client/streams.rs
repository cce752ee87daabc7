//! The streams of a connection.

use bytes::Bytes;

use crate::{
    cancelled::Cancelled,
    error::Error,
    flow::{LARGEST, ReceiveWindow, SendWindow},
    head::Head,
    places::Places,
};

/// Cancelled streams whose late frames are told from forbidden ones.
const CANCELLED: usize = 10_000;

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for a stream.
    Waiting,
    /// It has a stream.
    Open,
    /// It has none any more, or none at all.
    Ended,
}

/// A request, and its stream.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they do not depend on each other"
)]
pub(super) struct Stream {
    pub(super) phase: Phase,
    pub(super) id: u32,
    /// The turn in which it gets a stream, while the request waits.
    pub(super) turn: u64,
    /// The head, while the request waits.
    pub(super) head: Option<Head>,
    /// The rest of the body to be sent.
    pub(super) body: Bytes,
    /// The body is given piece by piece.
    pub(super) takes_pieces: bool,
    /// All of the body has been given to be sent.
    pub(super) is_given: bool,
    /// The end of the body has been sent.
    pub(super) is_sent: bool,
    /// The stream is in the queue of those that may send.
    pub(super) is_queued: bool,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    /// Bytes received and not released.
    pub(super) held: usize,
    /// The head of the reply has come.
    pub(super) is_answered: bool,
    /// The reply has no body, whatever its content-length: the method is `HEAD`, or the status 204 or 304.
    pub(super) is_bare: bool,
    /// The rest of the body that the reply's head has promised.
    pub(super) promised: Option<u64>,
}

/// The streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    slab: Vec<Stream>,
    free: Vec<u32>,
    /// The next identifier.
    next: u32,
    /// The slots of those that are open.
    places: Places,
    /// Streams that this end has reset, and on which the peer may not know it yet.
    pub(super) cancelled: Cancelled,
}

/// The owner of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The request's in this slot.
    Slot(u32),
    /// A request's that has been cancelled.
    Cancelled,
    /// A request's that has ended.
    Ended,
    /// No request's.
    Nobody,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            next: 1,
            places: Places::default(),
            cancelled: Cancelled::new(CANCELLED),
        }
    }
}

impl Streams {
    /// Reserves a slot.
    pub(super) fn reserve(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slab[slot as usize].phase = Phase::Waiting;
            return slot;
        }
        self.slab.push(Stream {
            phase: Phase::Waiting,
            id: 0,
            turn: 0,
            head: None,
            body: Bytes::new(),
            takes_pieces: false,
            is_given: false,
            is_sent: false,
            is_queued: false,
            send_window: SendWindow::new(0),
            receive_window: ReceiveWindow::new(0),
            held: 0,
            is_answered: false,
            is_bare: false,
            promised: None,
        });
        (self.slab.len() - 1) as u32
    }

    /// Frees a slot whose stream is not open.
    pub(super) fn free(&mut self, slot: u32) {
        let stream = self.at(slot);
        stream.phase = Phase::Ended;
        stream.head = None;
        stream.body = Bytes::new();
        self.free.push(slot);
    }

    /// Returns the request in a slot.
    pub(super) fn at(&mut self, slot: u32) -> &mut Stream {
        &mut self.slab[slot as usize]
    }

    /// Returns the number of open streams.
    pub(super) fn open_count(&self) -> usize {
        self.places.count()
    }

    /// Returns the number of identifiers that are left (RFC 9113, section 5.1.1).
    pub(super) fn left(&self) -> usize {
        (LARGEST + 2).saturating_sub(self.next) as usize / 2
    }

    /// Opens a stream with these windows, and returns its identifier.
    pub(super) fn open(&mut self, slot: u32, send_window: u32, receive_window: u32) -> u32 {
        let id = self.next;
        self.next += 2;
        let stream = self.at(slot);
        stream.phase = Phase::Open;
        stream.id = id;
        stream.is_sent = false;
        stream.send_window = SendWindow::new(send_window);
        stream.receive_window = ReceiveWindow::new(receive_window);
        stream.held = 0;
        stream.is_answered = false;
        stream.promised = None;
        self.places.insert(id, slot);
        id
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, next: u32) {
        self.next = next;
    }

    /// Ends an open stream; its slot stays reserved. Returns the bytes of it that were not released.
    pub(super) fn end(&mut self, slot: u32) -> usize {
        let stream = self.at(slot);
        stream.phase = Phase::Ended;
        let (id, held) = (stream.id, stream.held);
        self.places.remove(id);
        held
    }

    /// Returns whose the frames of a stream are.
    pub(super) fn owner(&self, id: u32) -> Owner {
        if let Some(slot) = self.places.find(id) {
            return Owner::Slot(slot);
        }
        match id {
            _ if id.is_multiple_of(2) || id >= self.next => Owner::Nobody,
            _ if self.cancelled.contains(id) => Owner::Cancelled,
            _ => Owner::Ended,
        }
    }

    /// Changes the send windows of all open streams.
    ///
    /// # Errors
    /// A window that becomes too large is a FLOW_CONTROL_ERROR.
    pub(super) fn change_windows(&mut self, by: i64) -> Result<(), Error> {
        let mut open = self
            .slab
            .iter_mut()
            .filter(|stream| stream.phase == Phase::Open);
        open.try_for_each(|stream| stream.send_window.change(by))
    }

    /// Returns the slots of the open streams of which `is_wanted` is true.
    pub(super) fn open_slots(&self, is_wanted: impl Fn(&Stream) -> bool) -> Vec<u32> {
        let slots = (0..).zip(&self.slab);
        let wanted = slots.filter(|(_, stream)| stream.phase == Phase::Open && is_wanted(stream));
        wanted.map(|(slot, _)| slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_streams() {
        let mut streams = Streams::default();
        assert_eq!(streams.owner(0), Owner::Nobody);
        let slot = streams.reserve();
        let id = streams.open(slot, 1, 1);
        assert_eq!(
            (streams.owner(id), streams.open_count()),
            (Owner::Slot(slot), 1)
        );
        assert_eq!([2, id + 2].map(|id| streams.owner(id)), [Owner::Nobody; 2]);
        streams.end(slot);
        assert_eq!((streams.owner(id), streams.open_count()), (Owner::Ended, 0));
    }

    #[test]
    fn cancelled_streams_are_known_up_to_a_number() {
        let mut streams = Streams::default();
        let slot = streams.reserve();
        let mut ids = Vec::new();
        for _ in 0..=CANCELLED + 1 {
            ids.push(streams.open(slot, 1, 1));
            streams.end(slot);
        }
        for id in &ids[1..] {
            streams.cancelled.insert(*id);
        }
        assert_eq!(streams.cancelled.len(), CANCELLED);
        assert!(
            ids[1..]
                .iter()
                .all(|id| streams.owner(*id) == Owner::Cancelled)
        );
        // One that has been open for long.
        streams.cancelled.insert(ids[0]);
        assert_eq!(streams.owner(ids[1]), Owner::Cancelled);
        streams.cancelled.remove(ids[3]);
        assert_eq!(streams.owner(ids[3]), Owner::Ended);
    }

    #[test]
    fn identifiers_run_out() {
        let mut streams = Streams {
            next: LARGEST,
            ..Streams::default()
        };
        assert_eq!(streams.left(), 1);
        let slot = streams.reserve();
        assert_eq!(streams.open(slot, 1, 1), LARGEST);
        assert_eq!(streams.left(), 0);
    }
}
