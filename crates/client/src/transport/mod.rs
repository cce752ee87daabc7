//! The ways to put a request on the wire. A new one is a file here and a line in `transports!`.

mod connect;
mod grpc_h2;
mod grpc_tonic;
#[cfg(test)]
pub mod mock;
mod tcp;

use std::{fmt, future::Future, net::SocketAddr};

use netping_protocol::{payload::Exchange, target::Target};
use netping_report::ErrorKind;

/// Opens connections of one kind to one server.
pub trait Transport: Clone + 'static {
    /// What it opens.
    type Connection: Connection;

    /// Opens a connection that is ready for requests.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Failure>>;
}

/// An open connection, or one caller's handle on it.
pub trait Connection: Sized + 'static {
    /// Another handle on the same connection; `None` where a connection serves one caller only.
    fn share(&self) -> Option<Self>;

    /// Sends the exchange's current request, waits for the whole reply and verifies every byte of it.
    fn call(&mut self, exchange: &Exchange) -> impl Future<Output = Result<(), Failure>>;
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        Self { kind, detail: detail.to_string(), lost: true }
    }

    /// A failure of one request on a connection that goes on.
    pub fn request(kind: ErrorKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string(), lost: false }
    }
}

/// Where a transport connects to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What the user named.
    pub target: Target,
    /// Its addresses, to be tried in this order.
    pub addresses: Vec<SocketAddr>,
}

/// What to do with a transport whose type is known only at run time.
pub trait Visitor {
    /// What it gives.
    type Output;
    /// Does it.
    fn visit<T: Transport + Send>(self, transport: T) -> Self::Output;
}

macro_rules! transports {
    ($($(#[$doc:meta])* $kind:ident = $name:literal => $make:expr;)*) => {
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

            /// Gives the transport to `visitor`, with its type.
            pub fn visit<V: Visitor>(self, endpoint: Endpoint, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit($make(endpoint)),)* }
            }
        }
    };
}

transports! {
    /// Lines over TCP.
    Line = "line" => tcp::Tcp::lines;
    /// Frames over TCP.
    Frame = "frame" => tcp::Tcp::frames;
    /// gRPC by driving HTTP/2 directly.
    GrpcH2 = "h2" => grpc_h2::GrpcH2::new;
    /// gRPC by a tonic channel, as an application would.
    GrpcTonic = "tonic" => grpc_tonic::GrpcTonic::new;
}
