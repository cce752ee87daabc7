//! A validated run of one step. The engine sees only this.

mod arrival;
pub(crate) mod credentials;

pub use self::arrival::Arrival;

use std::{num::NonZeroU64, time::Duration};

use netping_protocol::{frame::Reply, secure::Connector, target::Target, tls::Negotiated};
use netping_results::{connect::ChannelSecurity, run::StepSettings};

use crate::{
    probe::metrics::ServerSource,
    transport::{Kind, ReplyLength},
};

/// One step: one target, one set of settings.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// A name for the step's target, such as a ladder's rung.
    pub label: Option<String>,
    /// Where the server's counters are.
    pub server: ServerSource,
    /// How requests are put on the wire.
    pub kind: Kind,
    /// How connections are secured.
    pub connector: Connector,
    /// Whether the client knows the server by its certificate or key; and whether it shows a certificate of its own.
    pub trust: Trust,
    /// Whether the target's name is resolved anew for each connection.
    pub resolve_each: bool,
    /// How requests come about.
    pub arrival: Arrival,
    /// In an open loop, the most requests that may be due and wait for a caller.
    pub max_backlog: usize,
    /// Callers, each with one request outstanding.
    pub callers: usize,
    /// Connections; for a protocol without multiplexing, one for each caller.
    pub connections: usize,
    /// Worker threads; never more than connections.
    pub workers: usize,
    /// Whether each worker stays on a core of its own.
    pub pin: bool,
    /// Whether workers poll all the time.
    pub busy_poll: bool,
    /// Bytes of payload in each request.
    pub payload: usize,
    /// What each request asks to get back.
    pub reply: Reply,
    /// What comes before the window, where requests do not count.
    pub warmup: Warmup,
    /// How long the window is.
    pub extent: Extent,
    /// The most a request may take.
    pub timeout: Duration,
    /// Requests on a connection before it is opened anew; `None`: it is kept.
    pub requests_per_connection: Option<NonZeroU64>,
    /// How long a web server's replies are, where several plans must get the same; `None`: each step has its own.
    pub reply_length: Option<ReplyLength>,
}

/// Who knows whom on a secured connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust {
    /// The client checks who the server is.
    pub server_verified: bool,
    /// The client shows a certificate, if it is asked for one.
    pub client_certificate: bool,
}

impl Trust {
    /// What a result file says of connections with these credentials, of which this was agreed on.
    pub fn security(self, negotiated: Negotiated) -> ChannelSecurity {
        ChannelSecurity {
            protocol: negotiated.protocol,
            cipher_suite: negotiated.cipher_suite,
            key_exchange: negotiated.key_exchange,
            resumed: negotiated.resumed,
            server_verified: self.server_verified,
            client_certificate: self.client_certificate,
        }
    }
}

/// What comes before the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// This long.
    Time(Duration),
    /// Until the rate is steady, as the rule MSER-5 sees it.
    Auto,
}

impl Warmup {
    /// Returns its length, if that is known beforehand.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Time(duration) => Some(duration),
            Self::Auto => None,
        }
    }
}

/// The length of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This long.
    Time(Duration),
    /// Until so many requests are done.
    Requests(u64),
}

impl Extent {
    /// Returns its length, if that is known beforehand.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Time(duration) => Some(duration),
            Self::Requests(_) => None,
        }
    }
}

impl Plan {
    /// One caller on one connection with echoes of 4 bytes, without an end: what a command wants otherwise, it sets.
    pub fn new(
        target: Target,
        kind: Kind,
        server: ServerSource,
        (connector, trust): (Connector, Trust),
    ) -> Self {
        Self {
            target,
            label: None,
            server,
            kind,
            connector,
            trust,
            resolve_each: false,
            arrival: Arrival::Closed,
            max_backlog: 0,
            callers: 1,
            connections: 1,
            workers: 1,
            pin: false,
            busy_poll: false,
            payload: 4,
            reply: Reply::Echo,
            warmup: Warmup::Time(Duration::from_millis(200)),
            extent: Extent::Requests(u64::MAX),
            timeout: Duration::from_secs(5),
            requests_per_connection: None,
            reply_length: None,
        }
    }

    /// The form in which a result file has it, with the warm-up that the run had.
    pub fn settings(&self, warmup: Duration) -> StepSettings {
        let (duration, requests) = match self.extent {
            Extent::Time(duration) => (Some(duration.as_secs_f64()), None),
            Extent::Requests(requests) => (None, Some(requests)),
        };
        StepSettings {
            arrivals: self.arrival.name().to_owned(),
            planned_rate: self.arrival.rate(),
            seed: match self.arrival {
                Arrival::Poisson { seed, .. } => Some(seed),
                Arrival::Closed | Arrival::Constant(_) => None,
            },
            callers: self.callers,
            connections: self.connections,
            workers: self.workers,
            pinned: self.pin,
            busy_poll: self.busy_poll,
            client: self.kind.name().to_owned(),
            payload_bytes: self.payload,
            response_bytes: match self.reply {
                Reply::Bytes(length) => Some(length),
                Reply::Echo | Reply::Message => None,
            },
            message: (self.reply == Reply::Message).then(|| "benchmark".to_owned()),
            warmup_seconds: warmup.as_secs_f64(),
            duration_seconds: duration,
            requests,
            timeout_seconds: self.timeout.as_secs_f64(),
            requests_per_connection: self.requests_per_connection.map(NonZeroU64::get),
        }
    }
}
