//! The server's end of a connection.

mod receiving;
mod replies;
mod request;
mod streams;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, mem};

pub use self::request::{Request, Route};
use self::{request::Meaning, streams::Streams};
use crate::{
    Config as Receiving,
    block::Block,
    error::{Error, Reason},
    flow::{DEFAULT, LARGEST, ReceiveWindow, SendWindow},
    frame::{Header, kind},
    hpack::{encoder::Encoder, replies::Blocks},
    output::Output,
    settings::{self, PeerSettings, id},
};

/// Longest list of a request's fields, in bytes as RFC 9113, section 6.5.2 counts them.
pub(crate) const HEADER_LIST: u32 = 16 << 10;

/// Payload of the PING that follows the first GOAWAY of a drain.
const LEAVING: [u8; 8] = *b"leaving\0";

/// The settings of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Limits on what is received.
    pub receiving: Receiving,
    /// Concurrent streams of a connection.
    pub streams: u32,
}

/// The place of a request on its connection, from [`Event::Request`] to the reply or to [`Event::Reset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// Returns a small number that no other open request of the connection has.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a request, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a, R> {
    /// A request begins. With `is_end`, it has no body.
    Request {
        /// Its place.
        slot: Slot,
        /// Its route, which the head determines.
        route: R,
        /// It is whole.
        is_end: bool,
    },
    /// The next part of a request's body. Its room is given back to the client at once.
    Data {
        /// The place of the request.
        slot: Slot,
        /// The part; it may be empty at the end.
        data: &'a [u8],
        /// The request is whole.
        is_end: bool,
    },
    /// The request is over without a reply: the client reset it, or broke a rule.
    Reset(Slot),
}

/// The server's end of a connection, without its I/O.
///
/// Bytes that have been read go to [`next`](Self::next); those of [`output`](Self::output) are to be written,
/// before more is read. After an error there is only the output left, which tells the client.
pub struct Server<R> {
    output: Output,
    encoder: Encoder,
    blocks: Blocks<Meaning<R>>,
    streams: Streams,
    /// Slots of streams whose reply has bytes that the stream may send. One whose stream is over stays until its turn, each
    /// once.
    sending: VecDeque<u32>,
    peer: PeerSettings,
    config: Config,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// A header block that has not come to its end.
    block: Option<Block>,
    progress: Progress,
    /// The client has acknowledged the settings.
    is_settled: bool,
    /// Answers that the client made necessary since the output was last written to its end.
    answers: u32,
    /// Frames since the last end of a reply that carried nothing of use.
    idle_frames: u32,
    /// Streams that were reset for the client's errors.
    rejected: u32,
    /// The reasons of resets that have not been asked for.
    resets: Vec<Reason>,
    /// The last stream that GOAWAY has told.
    told: Option<u32>,
    failed: Option<Error>,
}

/// The client's progress in introducing itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Its preface is awaited.
    Preface,
    /// Its first SETTINGS are awaited.
    Settings,
    Greeted,
}

impl<R: Route> Server<R> {
    /// Begins a connection; the output holds the settings.
    pub fn new(config: Config) -> Self {
        let mut output = Output::default();
        let header = Header::new(kind::SETTINGS, 0, 0);
        let settings = settings::payload(&[
            (id::MAX_CONCURRENT_STREAMS, config.streams),
            (id::INITIAL_WINDOW_SIZE, config.receiving.stream_window),
            (id::MAX_FRAME_SIZE, config.receiving.frame),
            (id::MAX_HEADER_LIST_SIZE, HEADER_LIST),
        ]);
        output.frame(header, &settings);
        let window = config.receiving.connection_window.max(DEFAULT);
        if window > DEFAULT {
            output.window_update(0, window - DEFAULT);
        }
        Self {
            output,
            encoder: Encoder::new(),
            blocks: Blocks::meaning(Meaning::of),
            streams: Streams::default(),
            sending: VecDeque::new(),
            peer: PeerSettings {
                may_push: true,
                ..PeerSettings::default()
            },
            config,
            send_window: SendWindow::new(DEFAULT),
            receive_window: ReceiveWindow::new(window),
            block: None,
            progress: Progress::Preface,
            is_settled: false,
            answers: 0,
            idle_frames: 0,
            rejected: 0,
            resets: Vec::new(),
            told: None,
            failed: None,
        }
    }

    /// Returns the bytes to be written.
    pub fn output(&self) -> &[u8] {
        self.output.waiting()
    }

    /// Notes that the first `bytes` of the output have been written. There may be more of it then.
    pub fn written(&mut self, bytes: usize) {
        if self.output.advance(bytes) {
            self.answers = 0;
            self.send_bodies();
        }
    }

    /// Returns the number of streams that are open: their requests or their replies are not whole.
    pub fn open(&self) -> usize {
        self.streams.open()
    }

    /// Returns the number of frames with data for the client, since it was last asked for: for each, it may give window.
    pub fn take_data_frames(&mut self) -> u64 {
        self.output.take_data_frames()
    }

    /// Takes the reasons of the streams that were reset for the client's errors since the last call.
    pub fn take_resets(&mut self) -> Vec<Reason> {
        mem::take(&mut self.resets)
    }

    /// Begins to take leave: asks the client for no more requests, and waits until it has read that. Requests
    /// that are under way until then are served (RFC 9113, section 6.8).
    pub fn drain(&mut self) {
        if self.failed.is_none() && self.told.is_none() {
            self.say_goodbye(LARGEST, Reason::NO_ERROR, "");
            self.output.frame(Header::new(kind::PING, 0, 0), &LEAVING);
        }
    }

    /// Takes leave: refuses all further requests.
    pub fn leave(&mut self) {
        if self.failed.is_none() && !self.has_left() {
            self.close(Reason::NO_ERROR, "");
        }
    }

    /// Takes leave for a reason, in words: the connection is about to be closed.
    pub fn close(&mut self, reason: Reason, detail: &str) {
        if self.failed.is_none() {
            self.say_goodbye(self.streams.last(), reason, detail);
        }
    }

    /// Returns true if all further requests are refused.
    pub fn has_left(&self) -> bool {
        self.told.is_some_and(|last| last < LARGEST)
    }

    /// Appends GOAWAY. Its last stream never increases.
    fn say_goodbye(&mut self, last: u32, reason: Reason, detail: &str) {
        let last = self.told.map_or(last, |told| told.min(last));
        self.told = Some(last);
        let mut payload = last.to_be_bytes().to_vec();
        payload.extend(reason.0.to_be_bytes());
        payload.extend(detail.as_bytes());
        self.output.frame(Header::new(kind::GOAWAY, 0, 0), &payload);
    }
}
