//! Transports and their connections, as the engine sees them.

use std::{
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::pin,
    sync::Arc,
};

use netping_measure::connect::ConnectPhase;
use netping_protocol::{payload::Exchange, tls::Negotiated};

use super::{failure::Failure, quic_paths::QuicPaths, stamped::StampedSocket};

/// Opens connections of one kind to one server.
pub trait Transport: Clone + 'static {
    /// An open connection.
    type Connection: Connection;

    /// Opens a connection that is ready for requests; notes the time of each part, and the outcome of
    /// the handshake.
    fn connect(
        &self,
        milestones: &mut Milestones<'_>,
    ) -> impl Future<Output = Result<Self::Connection, Failure>>;

    /// Returns the account of its connections, if they are QUIC's.
    fn quic_paths(&self) -> Option<&QuicPaths> {
        None
    }

    /// Returns a wait until the servers have been told of the end of its connections, which may be dropped meanwhile.
    fn last_words(&self) -> impl Future<Output = ()> + use<Self> {
        async {}
    }
}

/// An open connection, or a caller's handle on it.
pub trait Connection: Sized + 'static {
    /// Returns another handle on the same connection; `None` if a connection serves one caller
    /// only.
    fn share(&self) -> Option<Self> {
        None
    }

    /// Returns true if the server has ended the connection, or asked for its end, without losing a
    /// request: the next one needs a new connection. Asked between requests.
    fn is_spent(&mut self) -> bool {
        false
    }

    /// Sends the exchange's current request, waits for the whole reply and verifies it: every byte,
    /// if they are known beforehand. Notes the messages of a call that streams.
    fn call(
        &mut self,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> impl Future<Output = Result<(), Failure>>;
}

/// The opening of a connection: the time of each part, and the outcome of the handshake.
pub struct Milestones<'a> {
    now: &'a dyn Fn() -> u64,
    /// The end of the last part, in nanoseconds.
    pub last: u64,
    /// The time of each [`ConnectPhase`], in nanoseconds; `None` if there was no such part.
    pub spent: [Option<u64>; ConnectPhase::ALL.len()],
    /// The security agreed on; `None` in the clear.
    pub negotiated: Option<Negotiated>,
    /// The port of the client's end is wanted.
    pub wants_port: bool,
    /// The server's address, and the port of the client's end if it is the connection's own.
    pub ends: (Option<SocketAddr>, Option<u16>),
    /// The kernel's time stamps are wanted.
    pub wants_stamps: bool,
    /// The socket that has them; `None` where they are not wanted, or on a Unix socket.
    pub stamps: Option<Arc<StampedSocket>>,
}

impl<'a> Milestones<'a> {
    /// Begins to open a connection.
    pub fn start(now: &'a dyn Fn() -> u64) -> Self {
        Self {
            now,
            last: now(),
            spent: [None; ConnectPhase::ALL.len()],
            negotiated: None,
            wants_port: false,
            ends: (None, None),
            wants_stamps: false,
            stamps: None,
        }
    }

    /// Begins to open a connection whose times are not wanted.
    pub fn untimed() -> Self {
        Self::start(&|| 0)
    }

    /// Ends a part; the next begins.
    pub fn reached(&mut self, phase: ConnectPhase) {
        let now = (self.now)();
        self.spent[phase as usize] = Some(now - self.last);
        self.last = now;
    }

    /// Notes an address that did not answer: its time belongs to no part, only to the total.
    pub fn tried_in_vain(&mut self) {
        self.last = (self.now)();
    }
}

/// Times between messages that are kept of a call.
const MOST_GAPS: usize = 1_000_000;

/// The messages of a call that streams, and the times that a server tells, noted while it runs.
pub struct Carried<'a> {
    now: &'a dyn Fn() -> u64,
    /// Messages sent; 0 if the call does not stream.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// When the first of them came, in nanoseconds.
    pub first: Option<u64>,
    /// When the last one came.
    last: u64,
    /// The times from each to the next, of the first million.
    pub gaps: Vec<u64>,
    /// Nanoseconds for which the server's flow control, or its limit of streams, held the request back.
    pub held_back: u64,
    /// When the server received the request and sent the reply, in nanoseconds since 1970; `None` if it was not asked.
    pub server_times: Option<(u64, u64)>,
}

impl<'a> Carried<'a> {
    /// Begins a call.
    pub fn start(now: &'a dyn Fn() -> u64) -> Self {
        Self {
            now,
            sent: 0,
            received: 0,
            first: None,
            last: 0,
            gaps: Vec::new(),
            held_back: 0,
            server_times: None,
        }
    }

    /// Notes a message that was received.
    pub fn receive(&mut self) {
        let now = (self.now)();
        if self.first.is_none() {
            self.first = Some(now);
        } else if self.gaps.len() < MOST_GAPS {
            self.gaps.push(now - self.last);
        }
        self.last = now;
        self.received += 1;
    }

    /// Sends, and notes for how long it has to wait from when the server holds it back.
    pub async fn held_back<O>(
        &mut self,
        sending: impl Future<Output = O>,
        is_held_back: impl Fn() -> bool,
    ) -> O {
        let mut sending = pin!(sending);
        let mut since = None;
        let sent = poll_fn(|cx| {
            let polled = sending.as_mut().poll(cx);
            if polled.is_pending() && since.is_none() && is_held_back() {
                since = Some((self.now)());
            }
            polled
        });
        let sent = sent.await;
        self.held_back += since.map_or(0, |since| (self.now)() - since);
        sent
    }
}
