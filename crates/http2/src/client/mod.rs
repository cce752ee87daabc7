//! The client's end of a connection.

mod bodies;
mod control;
mod data;
mod receiving;
mod requests;
mod streams;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    io::IoSlice,
    rc::Rc,
};

use bytes::Bytes;

use self::{
    data::Part,
    streams::{Phase, Streams},
};
use crate::{
    block::Block,
    error::{Error, Reason},
    fields::Fields,
    flow::{DEFAULT, ReceiveWindow, SendWindow},
    frame::{DEFAULT_MAX_SIZE, Header, PREFACE, kind},
    head::Head,
    hpack::{encoder::Encoder, replies::Replies},
    output::Output,
    settings::{self, Config, PeerSettings, id},
};

/// The place of a request on its connection, from [`Client::request`] to [`Client::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// Returns a small number that no other open request of the connection has.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// A short one, which is copied.
    Short(&'a [u8]),
    /// One that is kept until it has been sent.
    Shared(&'a Bytes),
}

/// A part of a reply, or the end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The head of the reply. Interim replies (1xx) are left out.
    Head(&'a Rc<Fields>),
    /// The next part of the reply's body, which counts for flow control until [`Client::release`].
    Data(&'a [u8]),
    /// The trailers of the reply.
    Trailers(&'a Rc<Fields>),
    /// The reply is whole.
    End,
    /// The server reset the stream with this code.
    Reset(Reason),
    /// The reply breaks this rule; the stream is reset.
    Malformed(&'static str),
    /// The server did not process the request, which may be sent again on another connection: it sent
    /// this.
    Left(&'a Goaway),
    /// The server did not process the request, which may be sent again: it refused the stream.
    Refused,
}

/// The server's GOAWAY.
#[derive(Debug, PartialEq, Eq)]
pub struct Goaway {
    /// Last stream that the server may have processed.
    last: u32,
    /// Its code.
    reason: Reason,
    /// The beginning of its debug data, in ASCII, with escapes.
    detail: String,
}

impl fmt::Display for Goaway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, detail, .. } = self;
        if detail.is_empty() {
            write!(f, "{reason}")
        } else {
            write!(f, "{reason} ({detail})")
        }
    }
}

/// The client's end of a connection, without its I/O.
///
/// Bytes that have been read go to [`receive`](Self::receive); those of [`output`](Self::output) are to be
/// written. After an error there is only the output left, which tells the server.
pub struct Client {
    output: Output,
    encoder: Encoder,
    replies: Replies,
    streams: Streams,
    /// Requests that wait for a stream, by their turns.
    waiting: BTreeMap<u64, u32>,
    /// Requests whose body has bytes that their stream may send.
    sending: VecDeque<u32>,
    /// Requests whose last piece has been sent since [`Client::next_sent`].
    sent: VecDeque<u32>,
    peer: PeerSettings,
    config: Config,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// A header block that has not come to its end.
    block: Option<Block>,
    /// A DATA frame that has not come to its end.
    part: Option<Part>,
    /// The server's first frame, its SETTINGS, has come.
    is_greeted: bool,
    /// Answers that the server made necessary since the output was last written to its end.
    answers: u32,
    /// Frames without use since the last content or end of a reply.
    idle_frames: u32,
    /// The server's GOAWAY: its last stream and code.
    goaway: Option<Goaway>,
    failed: Option<Error>,
}

impl Client {
    /// Begins a connection; the output holds what introduces it to the server.
    pub fn new(config: Config) -> Self {
        let mut output = Output::default();
        output.raw(PREFACE);
        let header = Header::new(kind::SETTINGS, 0, 0);
        let mut settings = vec![
            (id::ENABLE_PUSH, 0),
            (id::INITIAL_WINDOW_SIZE, config.stream_window),
        ];
        if config.frame as usize > DEFAULT_MAX_SIZE {
            settings.push((id::MAX_FRAME_SIZE, config.frame));
        }
        output.frame(header, &settings::payload(&settings));
        let more = config.connection_window.saturating_sub(DEFAULT);
        if more > 0 {
            output.window_update(0, more);
        }
        Self {
            output,
            encoder: Encoder::new(),
            replies: Replies::new(),
            streams: Streams::default(),
            waiting: BTreeMap::new(),
            sending: VecDeque::new(),
            sent: VecDeque::new(),
            peer: PeerSettings::default(),
            config,
            send_window: SendWindow::new(DEFAULT),
            receive_window: ReceiveWindow::new(config.connection_window.max(DEFAULT)),
            block: None,
            part: None,
            is_greeted: false,
            answers: 0,
            idle_frames: 0,
            goaway: None,
            failed: None,
        }
    }

    /// Sends a request as far as the server allows now, and the rest as soon as it does. `None` if the
    /// connection takes no more requests.
    pub fn request(&mut self, head: &Head, body: Body<'_>) -> Option<Slot> {
        self.begin(head, body, true)
    }

    /// Sends a request whose body is given piece by piece to [`send`](Self::send). `None` if the connection takes
    /// no more requests.
    pub fn stream(&mut self, head: &Head) -> Option<Slot> {
        self.begin(head, Body::Short(&[]), false)
    }

    /// Begins a request, whose body is the whole of it or only the first piece.
    fn begin(&mut self, head: &Head, body: Body<'_>, is_whole: bool) -> Option<Slot> {
        if self.is_spent() {
            return None;
        }
        let slot = self.streams.reserve();
        let stream = self.streams.at(slot);
        stream.is_given = is_whole;
        stream.takes_pieces = !is_whole;
        // Whoever waits is sent as soon as there is a stream, so that nobody does if there is one now.
        if self.may_open() {
            self.open(slot, head, body);
        } else {
            let last = self.waiting.last_key_value();
            let turn = last.map_or(0, |(last, _)| last + 1);
            self.waiting.insert(turn, slot);
            let stream = self.streams.at(slot);
            stream.turn = turn;
            stream.head = Some(head.clone());
            stream.body = body.to_owned();
        }
        Some(Slot(slot))
    }

    /// Ends the interest in a request, whose slot is free again. One that is not at its end is cancelled.
    pub fn close(&mut self, slot: Slot) {
        let Slot(slot) = slot;
        let stream = self.streams.at(slot);
        match stream.phase {
            Phase::Waiting => drop(self.waiting.remove(&stream.turn)),
            Phase::Open => self.reset(slot, Reason::CANCEL),
            Phase::Ended => {}
        }
        self.streams.free(slot);
        self.open_waiting();
    }

    /// Gives the server room for `bytes` more of a reply's body.
    pub fn release(&mut self, slot: Slot, bytes: usize) {
        let stream = self.streams.at(slot.0);
        // The room of a stream that has ended has been given back with its end.
        if stream.phase != Phase::Open {
            return;
        }
        stream.held -= bytes;
        if let Some(increment) = stream.receive_window.release(bytes) {
            self.output.window_update(stream.id, increment);
        }
        self.release_connection(bytes);
    }

    /// Returns the bytes of replies that were received and not released, all streams together.
    pub fn unreleased(&self) -> usize {
        self.receive_window.unreleased()
    }

    /// Returns the next bytes to be written: all of them, unless the output [is in parts](Self::is_in_parts). Empty
    /// if there are none.
    pub fn output(&self) -> &[u8] {
        self.output.waiting()
    }

    /// Returns true if the output has large parts of bodies, which are not copied.
    pub fn is_in_parts(&self) -> bool {
        self.output.is_in_parts()
    }

    /// Puts the bytes to be written into `slices`, as far as these suffice, and returns the number of slices.
    pub fn parts<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.output.parts(slices)
    }

    /// Notes that the first `bytes` of the output have been written. There may be more of it then.
    pub fn written(&mut self, bytes: usize) {
        if self.output.advance(bytes) {
            self.answers = 0;
            self.send_bodies();
        }
    }

    /// Returns true if the connection takes no more requests: the server said so, no stream is left, or
    /// it has failed.
    pub fn is_spent(&self) -> bool {
        // Each that waits needs a stream too.
        self.has_ended() || self.streams.left() <= self.waiting.len()
    }

    /// Returns true if the server said that it takes no more requests, or the connection has failed.
    fn has_ended(&self) -> bool {
        self.goaway.is_some() || self.failed.is_some()
    }

    /// Returns the requests that wait for a stream: nothing of them has been sent.
    pub fn waiting(&self) -> impl Iterator<Item = Slot> {
        self.waiting.values().copied().map(Slot)
    }

    /// Returns the server's GOAWAY, if that has come.
    pub fn goaway(&self) -> Option<&Goaway> {
        self.goaway.as_ref()
    }

    /// Takes leave of the server.
    pub fn say_goodbye(&mut self) {
        if self.failed.is_none() {
            self.say_why(Reason::NO_ERROR, "");
        }
    }

    /// Appends GOAWAY. No stream is the server's, so the last one of these is 0.
    fn say_why(&mut self, reason: Reason, detail: &str) {
        let mut payload = [0; 8].to_vec();
        payload[4..].copy_from_slice(&reason.0.to_be_bytes());
        payload.extend(detail.as_bytes());
        self.output.frame(Header::new(kind::GOAWAY, 0, 0), &payload);
    }

    fn release_connection(&mut self, bytes: usize) {
        if let Some(increment) = self.receive_window.release(bytes) {
            self.output.window_update(0, increment);
        }
    }
}

impl Body<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(body) => body,
            Self::Shared(body) => body,
        }
    }

    /// Returns the body to be kept.
    fn to_owned(self) -> Bytes {
        self.rest(0)
    }

    /// Returns what follows the first bytes, to be kept.
    fn rest(self, from: usize) -> Bytes {
        match self {
            Self::Short(body) => Bytes::copy_from_slice(&body[from..]),
            Self::Shared(body) => body.slice(from..),
        }
    }
}
