//! The transports of requests. A new one is a file here and a line in `transports!`.

pub(crate) mod connect;
mod framed;
pub(crate) mod grpc_call;
pub(crate) mod grpc_h2;
mod grpc_tonic;
mod http;
mod http1;
pub(crate) mod http2;
mod http3;
pub(crate) mod http_reply;
#[cfg(any(test, feature = "simulation"))]
pub mod mock;
pub(crate) mod prepared;
pub(crate) mod quic;
mod tcp;
mod watched;

use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{payload::Exchange, secure::Connector, target::Target, tls::Negotiated};

use self::prepared::Prepared;

/// Opens connections of one kind to one server.
pub trait Transport: Clone + 'static {
    /// An open connection.
    type Connection: Connection;

    /// Opens a connection that is ready for requests, and notes the time of each part.
    fn connect(
        &self,
        milestones: &mut Milestones<'_>,
    ) -> impl Future<Output = Result<Self::Connection, Failure>>;
}

/// An open connection, or a caller's handle on it.
pub trait Connection: Sized + 'static {
    /// Returns another handle on the same connection; `None` if a connection serves one caller
    /// only.
    fn share(&self) -> Option<Self>;

    /// Returns the outcome of the handshake; `None` in the clear.
    fn negotiated(&self) -> Option<Negotiated> {
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

/// The time of each part of opening a connection, in nanoseconds.
pub struct Milestones<'a> {
    now: &'a dyn Fn() -> u64,
    last: u64,
    spent: [Option<u64>; ConnectPhase::ALL.len()],
}

impl<'a> Milestones<'a> {
    /// Begins to open a connection.
    pub fn start(now: &'a dyn Fn() -> u64) -> Self {
        Self {
            now,
            last: now(),
            spent: [None; ConnectPhase::ALL.len()],
        }
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

    /// Ends the opening; returns its times.
    pub fn finish(self) -> Opened {
        Opened {
            spent: self.spent,
            at: self.last,
        }
    }
}

/// The times of an opened connection.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// By [`ConnectPhase`], in nanoseconds; `None` if there was no such part.
    pub spent: [Option<u64>; ConnectPhase::ALL.len()],
    /// The end of the opening, in nanoseconds.
    pub at: u64,
}

/// The messages of a call that streams, noted while it runs.
pub struct Carried<'a> {
    now: &'a dyn Fn() -> u64,
    /// Messages sent; 0 if the call does not stream.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// When the first of them came, in nanoseconds.
    pub first: Option<u64>,
}

impl<'a> Carried<'a> {
    /// Begins a call.
    pub fn start(now: &'a dyn Fn() -> u64) -> Self {
        Self {
            now,
            sent: 0,
            received: 0,
            first: None,
        }
    }

    /// Notes a message that was received.
    pub fn receive(&mut self) {
        if self.first.is_none() {
            self.first = Some((self.now)());
        }
        self.received += 1;
    }

    /// Returns true if nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.sent == 0 && self.received == 0
    }
}

/// The failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    /// The kind that it is counted as.
    pub kind: ErrorKind,
    /// A description for people.
    pub detail: String,
    /// The connection is unusable.
    pub lost: bool,
}

impl Failure {
    /// Returns a failure that ends the connection.
    pub fn lost(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        let lost = true;
        Self {
            lost,
            ..Self::request(kind, detail)
        }
    }

    /// Returns the failure of a whole reply that is not the right one: "the reply {what}".
    pub fn mismatch(what: impl fmt::Display) -> Self {
        Self::request(ErrorKind::Mismatch, format!("the reply {what}"))
    }

    /// Returns a failure of one request that leaves the connection usable.
    pub fn request(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
            lost: false,
        }
    }
}

/// The length of a web server's good replies, in bytes: that of the first one. Clones compare with
/// the same length.
pub type ReplyLength = Arc<OnceLock<u64>>;

/// The server that a transport connects to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The URL that the user named.
    pub target: Target,
    /// Its addresses, in the order in which to try them.
    pub addresses: Vec<SocketAddr>,
    /// The Unix domain socket to connect to instead; an abstract one begins with a zero byte.
    pub unix_socket: Option<PathBuf>,
    /// The name is resolved anew for each connection.
    pub resolve_each: bool,
    /// The security of connections.
    pub connector: Connector,
    /// The requests to a service that is not netping's own.
    pub prepared: Arc<Prepared>,
    /// The length of a web server's replies.
    pub reply_length: ReplyLength,
}

/// An operation on a transport whose type is known only at run time.
pub trait Visitor {
    /// The result.
    type Output;
    /// Performs the operation.
    fn visit<T: Transport + Send>(self, transport: T) -> Self::Output;
}

impl Kind {
    /// Returns true if the requests are prepared before a run, and not netping's own.
    pub fn is_prepared(self) -> bool {
        use Kind::{GrpcCall, Http1, Http2, Http3, HttpChosen};
        matches!(self, GrpcCall | Http1 | Http2 | Http3 | HttpChosen)
    }
}

macro_rules! transports {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, multiplexes: $multiplexes:literal => $make:expr;)*) => {
        /// A transport of requests.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Returns its name in result files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns true if callers share connections; otherwise each has its own.
            pub fn multiplexes(self) -> bool {
                match self { $(Self::$kind => $multiplexes,)* }
            }

            /// Calls `visitor` with the transport, whose type it then knows.
            pub fn visit<V: Visitor>(self, endpoint: Endpoint, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit(($make)(endpoint)),)* }
            }
        }
    };
}

transports! {
    /// Lines over TCP.
    Line = "line", multiplexes: false => |endpoint| tcp::Tcp { endpoint, framing: framed::Framing::Lines };
    /// Frames over TCP.
    Frame = "frame", multiplexes: false => |endpoint| tcp::Tcp { endpoint, framing: framed::Framing::Frames };
    /// Frames on the streams of a QUIC connection.
    Quic = "quic", multiplexes: true => quic::Quic::new;
    /// gRPC by driving HTTP/2 directly.
    GrpcH2 = "h2", multiplexes: true => grpc_h2::GrpcH2::new;
    /// gRPC by a tonic channel, as an application would.
    GrpcTonic = "tonic", multiplexes: true => |endpoint| grpc_tonic::GrpcTonic { endpoint };
    /// Calls of a method that the target names, by driving HTTP/2 directly.
    GrpcCall = "h2 call", multiplexes: true => grpc_call::GrpcCall::new;
    /// Requests over HTTP/1.1.
    Http1 = "http/1.1", multiplexes: false => |endpoint| http::Http::new(endpoint, http::Version::One);
    /// Requests over HTTP/2.
    Http2 = "http/2", multiplexes: true => |endpoint| http::Http::new(endpoint, http::Version::Two);
    /// Requests over HTTP/3.
    Http3 = "http/3", multiplexes: true => http3::Http3::new;
    /// Requests over one of the first two, as the server chooses: with a connection for each caller, which
    /// suits both.
    HttpChosen = "http/2 or http/1.1", multiplexes: false => |endpoint| http::Http::new(endpoint, http::Version::Chosen);
}
