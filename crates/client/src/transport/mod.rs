//! The transports of requests. A new one is a file here and a line in `transports!`.

pub(crate) mod connect;
mod connection;
mod event_stream;
pub mod failure;
mod framed;
pub(crate) mod grpc_call;
pub(crate) mod grpc_h2;
pub(crate) mod grpc_messages;
pub(crate) mod grpc_reply;
mod grpc_tonic;
mod http;
mod http1;
pub(crate) mod http2;
mod http3;
pub(crate) mod http_reply;
#[cfg(any(test, feature = "simulation"))]
pub mod mock;
pub mod prepared;
pub(crate) mod quic;
mod quic_paths;
pub(crate) mod socket;
mod stamped;

pub use self::{
    connection::{Carried, Connection, Milestones, Transport},
    failure::{Failure, Result},
    grpc_call::split_messages,
    quic_paths::QuicPaths,
    stamped::{StampedSocket, Stamps, has_stamps},
};
pub use crate::plan::{ReplyLength, ServerEndpoint};

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
        use Kind::{GrpcCall, GrpcMessages, Http1, Http2, Http3, HttpChosen};
        matches!(
            self,
            GrpcCall | GrpcMessages | Http1 | Http2 | Http3 | HttpChosen
        )
    }

    /// Returns true if requests are messages on streams that stay open.
    pub fn has_open_streams(self) -> bool {
        matches!(self, Self::GrpcChat | Self::GrpcMessages)
    }

    /// Returns true if the connections are TCP's.
    pub fn is_over_tcp(self) -> bool {
        !matches!(self, Self::Quic | Self::Http3)
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
            pub fn visit<V: Visitor>(self, endpoint: ServerEndpoint, visitor: V) -> V::Output {
                match self { $(Self::$kind => visitor.visit(($make)(endpoint)),)* }
            }
        }
    };
}

transports! {
    /// Lines over TCP.
    Line = "line", multiplexes: false => |endpoint| framed::Tcp { endpoint, framing: framed::Framing::Lines };
    /// Frames over TCP.
    Frame = "frame", multiplexes: false => |endpoint| framed::Tcp { endpoint, framing: framed::Framing::Frames };
    /// Frames on the streams of a QUIC connection.
    Quic = "quic", multiplexes: true => quic::Quic::new;
    /// gRPC by driving HTTP/2 directly.
    GrpcH2 = "h2", multiplexes: true => grpc_h2::EchoCalls::transport;
    /// gRPC by a tonic channel, as an application would.
    GrpcTonic = "tonic", multiplexes: true => |endpoint| grpc_tonic::GrpcTonic { endpoint };
    /// Calls of a method that the target names, by driving HTTP/2 directly.
    GrpcCall = "h2 call", multiplexes: true => grpc_call::MethodCalls::transport;
    /// Messages on open streams of netping's own servers.
    GrpcChat = "h2 chat", multiplexes: true => grpc_h2::Chat::messages;
    /// Messages on open streams of a method that the target names.
    GrpcMessages = "h2 messages", multiplexes: true => grpc_call::MethodCalls::messages;
    /// Requests over HTTP/1.1.
    Http1 = "http/1.1", multiplexes: false => |endpoint| http::Http::new(endpoint, http::Version::One);
    /// Requests over HTTP/2.
    Http2 = "http/2", multiplexes: true => |endpoint| http::Http::new(endpoint, http::Version::Two);
    /// Requests over HTTP/3.
    Http3 = "http/3", multiplexes: true => |endpoint| http::Http::new(endpoint, http::Version::Three);
    /// Requests over one of the first two, as the server chooses: with a connection for each caller, which
    /// suits both.
    HttpChosen = "http/2 or http/1.1", multiplexes: false => |endpoint| http::Http::new(endpoint, http::Version::Chosen);
}
