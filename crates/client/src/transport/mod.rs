//! The ways to put a request on the wire. A new one is a file here and a line in `transports!`.

pub(crate) mod connect;
mod framed;
pub(crate) mod grpc_h2;
mod grpc_tonic;
mod http;
mod http1;
pub(crate) mod http2;
#[cfg(test)]
pub mod mock;
pub(crate) mod quic;
mod tcp;

use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{payload::Exchange, secure::Connector, target::Target, tls::Negotiated};

/// Opens connections of one kind to one server.
pub trait Transport: Clone + 'static {
    /// What it opens.
    type Connection: Connection;

    /// Opens a connection that is ready for requests, and notes what that took.
    fn connect(
        &self,
        milestones: &mut Milestones<'_>,
    ) -> impl Future<Output = Result<Self::Connection, Failure>>;
}

/// An open connection, or one caller's handle on it.
pub trait Connection: Sized + 'static {
    /// Another handle on the same connection; `None` where a connection serves one caller only.
    fn share(&self) -> Option<Self>;

    /// What the handshake came to; `None` in the clear.
    fn negotiated(&self) -> Option<Negotiated> {
        None
    }

    /// Whether the server has ended the connection, or asked for its end, without a request on it being lost: the next
    /// one needs a new connection. Asked between requests.
    fn is_spent(&mut self) -> bool {
        false
    }

    /// Sends the exchange's current request, waits for the whole reply and verifies it: every byte, where it is known
    /// what they must be.
    fn call(&mut self, exchange: &Exchange) -> impl Future<Output = Result<(), Failure>>;
}

/// How long each part of opening a connection takes, in nanoseconds.
pub struct Milestones<'a> {
    now: &'a dyn Fn() -> u64,
    last: u64,
    spent: [Option<u64>; ConnectPhase::ALL.len()],
}

impl fmt::Debug for Milestones<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Milestones")
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}

impl<'a> Milestones<'a> {
    /// The opening begins now.
    pub fn start(now: &'a dyn Fn() -> u64) -> Self {
        Self {
            now,
            last: now(),
            spent: [None; ConnectPhase::ALL.len()],
        }
    }

    /// A part is done, and the next begins.
    pub fn reached(&mut self, phase: ConnectPhase) {
        let now = (self.now)();
        self.spent[phase as usize] = Some(now - self.last);
        self.last = now;
    }

    /// An address did not answer: what it took belongs to no part, only to the total.
    pub fn tried_in_vain(&mut self) {
        self.last = (self.now)();
    }

    /// What it took, and when it was over.
    pub fn finish(self) -> Opened {
        Opened {
            spent: self.spent,
            at: self.last,
        }
    }
}

/// What opening a connection took.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// By [`ConnectPhase`], in nanoseconds; absent where there is no such part.
    pub spent: [Option<u64>; ConnectPhase::ALL.len()],
    /// When it was over.
    pub at: u64,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    /// As it is counted.
    pub kind: ErrorKind,
    /// What happened, for people.
    pub detail: String,
    /// Whether the connection is of no more use.
    pub lost: bool,
}

impl Failure {
    /// A failure after which the connection is of no more use.
    pub fn lost(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
            lost: true,
        }
    }

    /// A failure of one request on a connection that goes on.
    pub fn request(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
            lost: false,
        }
    }
}

/// The length in bytes of a web server's good replies: that of the first one, once it is there. Whoever has a clone
/// compares with the same.
pub type ReplyLength = Arc<OnceLock<u64>>;

/// Where a transport connects to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What the user named.
    pub target: Target,
    /// Its addresses, to be tried in this order.
    pub addresses: Vec<SocketAddr>,
    /// Whether its name is resolved anew for each connection.
    pub resolve_each: bool,
    /// How connections are secured.
    pub connector: Connector,
    /// How long a web server's replies are.
    pub reply_length: ReplyLength,
}

/// What to do with a transport whose type is known only at run time.
pub trait Visitor {
    /// What it gives.
    type Output;
    /// Does it.
    fn visit<T: Transport + Send>(self, transport: T) -> Self::Output;
}

macro_rules! transports {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, multiplexes: $multiplexes:literal => $make:expr;)*) => {
        /// Every way to put a request on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Its name in result files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Whether callers share connections; otherwise each has one of its own.
            pub fn multiplexes(self) -> bool {
                match self { $(Self::$kind => $multiplexes,)* }
            }

            /// Gives the transport to `visitor`, with its type.
            pub fn visit<V: Visitor>(self, endpoint: Endpoint, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit($make(endpoint)),)* }
            }
        }
    };
}

transports! {
    /// Lines over TCP.
    Line = "line", multiplexes: false => tcp::Tcp::lines;
    /// Frames over TCP.
    Frame = "frame", multiplexes: false => tcp::Tcp::frames;
    /// Frames on the streams of a QUIC connection.
    Quic = "quic", multiplexes: true => quic::Quic::new;
    /// gRPC by driving HTTP/2 directly.
    GrpcH2 = "h2", multiplexes: true => grpc_h2::GrpcH2::new;
    /// gRPC by a tonic channel, as an application would.
    GrpcTonic = "tonic", multiplexes: true => grpc_tonic::GrpcTonic::new;
    /// `GET` over HTTP/1.1.
    Http1 = "http/1.1", multiplexes: false => http::Http::one;
    /// `GET` over HTTP/2.
    Http2 = "http/2", multiplexes: true => http::Http::two;
    /// `GET` over one of the two, as the server chooses: with a connection for each caller, which suits both.
    HttpChosen = "http/2 or http/1.1", multiplexes: false => http::Http::chosen;
}
