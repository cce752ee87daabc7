//! The URL schemes of targets: one table that everything about a scheme is read from.

use crate::tls::{ALPN_H2, ALPN_HTTP1, ALPN_NETPING};

/// Default ports.
pub mod port {
    /// `netping-server-threads`.
    pub const THREADS: u16 = 8003;
    /// `netping-server-tokio`, and `tcp://` URLs without a port.
    pub const TOKIO: u16 = 8004;
    /// `netping-server-grpc`, and `grpc://` URLs without a port.
    pub const GRPC: u16 = 8005;
    /// `netping-server-quic` (UDP), and `quic://` URLs without a port.
    pub const QUIC: u16 = 8006;
    /// `netping-proxy`.
    pub const PROXY: u16 = 8010;
    /// `http://` URLs without a port.
    pub const HTTP: u16 = 80;
    /// `https://` URLs without a port.
    pub const HTTPS: u16 = 443;
    /// Distance of a server's metrics port from its own port.
    pub const METRICS_OFFSET: u16 = 1000;
}

/// The protocol that carries requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Lines or frames on a TCP connection.
    Tcp,
    /// gRPC on HTTP/2.
    Grpc,
    /// Frames on the streams of a QUIC connection.
    Quic,
    /// `GET` over HTTP.
    Http,
}

/// The encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encryption {
    /// Clear text.
    None,
    /// TLS, also as part of QUIC.
    Tls,
    /// Noise, with a pre-shared key.
    Psk,
}

macro_rules! schemes {
    ($($(#[$doc:meta])* $scheme:ident => {
        $name:literal, $port:expr, $protocol:ident, $encryption:ident, alpn: $alpn:expr
    })*) => {
        /// The scheme of a target's URL, which says how the target is spoken to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Scheme {
            $($(#[$doc])* $scheme,)*
        }

        impl Scheme {
            /// Every scheme.
            pub const ALL: &[Self] = &[$(Self::$scheme),*];

            /// Returns the scheme as it stands in a URL.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$scheme => $name,)* }
            }

            /// Returns the port of a URL that names none.
            pub fn default_port(self) -> u16 {
                match self { $(Self::$scheme => $port,)* }
            }

            /// Returns the protocol that carries requests.
            pub fn protocol(self) -> Protocol {
                match self { $(Self::$scheme => Protocol::$protocol,)* }
            }

            /// Returns the encryption of connections.
            pub fn encryption(self) -> Encryption {
                match self { $(Self::$scheme => Encryption::$encryption,)* }
            }

            /// Returns the application protocols that a client offers in the TLS handshake, the
            /// preferred one first.
            pub fn alpn(self) -> &'static [&'static [u8]] {
                match self { $(Self::$scheme => $alpn,)* }
            }
        }
    };
}

schemes! {
    /// `tcp://`: lines or frames on a TCP connection.
    Tcp => { "tcp", port::TOKIO, Tcp, None, alpn: &[] }
    /// `tcp+tls://`: lines or frames in TLS.
    TcpTls => { "tcp+tls", port::TOKIO, Tcp, Tls, alpn: &[] }
    /// `tcp+psk://`: lines or frames in Noise, with a pre-shared key.
    TcpPsk => { "tcp+psk", port::TOKIO, Tcp, Psk, alpn: &[] }
    /// `grpc://`: gRPC on HTTP/2 in clear text.
    Grpc => { "grpc", port::GRPC, Grpc, None, alpn: &[] }
    /// `grpc+tls://`: gRPC on HTTP/2 in TLS.
    GrpcTls => { "grpc+tls", port::GRPC, Grpc, Tls, alpn: &[ALPN_H2] }
    /// `quic://`: frames on the streams of a QUIC connection.
    Quic => { "quic", port::QUIC, Quic, Tls, alpn: &[ALPN_NETPING] }
    /// `http://`: `GET` from any HTTP server, in clear text.
    Http => { "http", port::HTTP, Http, None, alpn: &[] }
    /// `https://`: `GET` from any HTTP server, in TLS.
    Https => { "https", port::HTTPS, Http, Tls, alpn: &[ALPN_H2, ALPN_HTTP1] }
}

impl Scheme {
    /// Returns true if callers may share a connection whatever the server chooses.
    pub fn shares_connections(self) -> bool {
        matches!(self.protocol(), Protocol::Grpc | Protocol::Quic)
    }

    /// Returns true for `http://` and `https://`: any web server, not one of netping's.
    pub fn is_http(self) -> bool {
        self.protocol() == Protocol::Http
    }
}
