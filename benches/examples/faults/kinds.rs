//! The servers under test, and the schemes of clients under test.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netping_benches::processes::Server;
use netping_protocol::{
    psk::Key,
    scheme::{Encryption, Scheme},
    secure::{Acceptor, Connector},
    tls::{self, ALPN_H3, ClientOptions, Identity, ServerConfig},
};
use quinn::crypto::rustls::QuicServerConfig;

use crate::client::Handshake;

/// A server under test: its name in the table, that of `netping serve`, its flags, those of a client,
/// and the handshake of a peer; or a client under test.
pub struct Kind {
    pub name: &'static str,
    /// Empty for a client under test.
    pub server: &'static str,
    pub scheme: Scheme,
    pub flags: Vec<String>,
    client: Vec<String>,
    pub connector: Connector,
    /// That of a server that is hostile to a client under test.
    pub hostile: Option<Handshake>,
}

impl Kind {
    /// Starts the server with its flags and these.
    pub fn start(&self, flags: &[&str]) -> Server {
        Server::start(self.server, &self.all(flags))
    }

    /// Returns the server's flags, and these.
    pub fn all<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        let own = self.flags.iter().map(String::as_str);
        own.chain(flags.iter().copied()).collect()
    }

    /// Returns a client's flags.
    pub fn client(&self) -> Vec<&str> {
        self.client.iter().map(String::as_str).collect()
    }

    pub fn is_client(&self) -> bool {
        self.hostile.is_some()
    }

    /// Returns true for a client under test that performs a handshake.
    pub fn is_secure_client(&self) -> bool {
        self.is_client() && self.scheme.encryption() != Encryption::None
    }

    pub fn is_server(&self) -> bool {
        !self.is_client()
    }

    pub fn is_tcp(&self) -> bool {
        self.is_lines() || self.is_grpc()
    }

    /// Returns true if connections over TCP begin with a handshake.
    pub fn is_secure_tcp(&self) -> bool {
        self.is_tcp() && !matches!(self.connector, Connector::Plain)
    }

    pub fn is_tls_tcp(&self) -> bool {
        self.is_tcp() && matches!(self.connector, Connector::Tls(..))
    }

    pub fn is_psk(&self) -> bool {
        matches!(self.connector, Connector::Psk(_))
    }

    pub fn is_lines(&self) -> bool {
        ["threads", "tokio"].contains(&self.server)
    }

    pub fn is_grpc(&self) -> bool {
        self.server == "grpc"
    }

    /// Returns true for a client under test that also has bulk streams.
    pub fn is_bulk_client(&self) -> bool {
        let others = ["--grpc-client", "--per-message"];
        let is_other = self.client.iter().any(|flag| others.contains(&&**flag));
        let is_web = matches!(self.scheme, Scheme::Http | Scheme::Https);
        self.is_client() && !is_web && !is_other
    }

    /// Returns true if the server has the RPCs of bulk data.
    pub fn has_bulk(&self) -> bool {
        self.is_grpc() && !self.flags.iter().any(|flag| flag == "floor")
    }

    pub fn is_quic(&self) -> bool {
        self.server == "quic"
    }
}

/// Returns what is under test: with `is_all` also the other stacks of gRPC, TLS, the pre-shared key, and the
/// other transports of the client.
pub fn kinds(is_all: bool, certificates: &Path) -> Vec<Kind> {
    let keys = Keys(certificates);
    let mut kinds = vec![
        clear("threads", "threads", Scheme::Tcp),
        clear("tokio", "tokio", Scheme::Tcp),
        clear("grpc", "grpc", Scheme::Grpc),
        keys.tls("quic", "quic", Scheme::Quic),
        client("tcp://", Scheme::Tcp, &[]),
        client("grpc://", Scheme::Grpc, &[]),
        client("http://", Scheme::Http, &[]),
        keys.quic_client("quic://", Scheme::Quic, &[], Scheme::Quic.alpn()),
    ];
    if is_all {
        kinds.extend([
            stack("grpc hyper", "hyper"),
            stack("grpc floor", "floor"),
            keys.tls("threads, TLS", "threads", Scheme::TcpTls),
            keys.tls("tokio, TLS", "tokio", Scheme::TcpTls),
            keys.tls("grpc, TLS", "grpc", Scheme::GrpcTls),
            keys.psk("tokio, PSK", "tokio"),
            client(
                "grpc:// of tonic",
                Scheme::Grpc,
                &["--grpc-client", "tonic"],
            ),
            client("grpc:// in messages", Scheme::Grpc, &["--per-message"]),
            client("http:// of HTTP/2", Scheme::Http, &["--http2"]),
            keys.tls_client("tcp+tls://", Scheme::TcpTls),
            keys.tls_client("grpc+tls://", Scheme::GrpcTls),
            keys.tls_client("https://", Scheme::Https),
            keys.psk_client("tcp+psk://"),
            keys.quic_client(
                "https:// of HTTP/3",
                Scheme::Https,
                &["--http3"],
                &[ALPN_H3],
            ),
        ]);
    }
    kinds
}

fn clear(name: &'static str, server: &'static str, scheme: Scheme) -> Kind {
    Kind {
        name,
        server,
        scheme,
        flags: Vec::new(),
        client: Vec::new(),
        connector: Connector::Plain,
        hostile: None,
    }
}

/// Returns a client under test, with these flags.
fn client(name: &'static str, scheme: Scheme, flags: &[&str]) -> Kind {
    Kind {
        client: flags.iter().copied().map(str::to_owned).collect(),
        hostile: Some(Handshake::Tcp(Acceptor::Plain)),
        ..clear(name, "", scheme)
    }
}

/// Returns a gRPC server on another stack than its default.
fn stack(name: &'static str, stack: &str) -> Kind {
    Kind {
        flags: ["--stack", stack].map(str::to_owned).to_vec(),
        ..clear(name, "grpc", Scheme::Grpc)
    }
}

/// Flags of those who trust the servers, and of those who share a key.
const TRUST: [(&str, &str); 1] = [("--tls-ca", "ca.pem")];
const KEY: [(&str, &str); 1] = [("--psk-file", "psk.key")];

/// The folder of the certificates and keys.
struct Keys<'a>(&'a Path);

impl Keys<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns flags whose values are files.
    fn flags(&self, flags: &[(&str, &str)]) -> Vec<String> {
        let words = flags.iter().flat_map(|(flag, file)| {
            let file = self.path(file);
            [*flag, file.to_str().expect("a path of UTF-8")].map(str::to_owned)
        });
        words.collect()
    }

    fn tls(&self, name: &'static str, server: &'static str, scheme: Scheme) -> Kind {
        let options = ClientOptions {
            ca: Some(self.path("ca.pem")),
            ..ClientOptions::default()
        };
        let config = tls::client(&options, scheme.alpn()).expect("a configuration");
        let host = "localhost".try_into().expect("a name");
        Kind {
            flags: self.flags(&[("--tls-cert", "server.pem"), ("--tls-key", "server.key")]),
            client: self.flags(&TRUST),
            connector: Connector::Tls(Arc::new(config), host),
            ..clear(name, server, scheme)
        }
    }

    fn psk(&self, name: &'static str, server: &'static str) -> Kind {
        let flags = self.flags(&KEY);
        Kind {
            client: flags.clone(),
            flags,
            connector: Connector::Psk(self.key()),
            ..clear(name, server, Scheme::TcpPsk)
        }
    }

    fn key(&self) -> Arc<Key> {
        Arc::new(Key::read(&self.path("psk.key")).expect("a key"))
    }

    /// Returns the configuration of a hostile server that proves who it is.
    fn server(&self, alpn: &[&[u8]]) -> ServerConfig {
        let identity = Identity::read(&self.path("server.pem"), &self.path("server.key"));
        let config = tls::server(identity.expect("a certificate"), None, alpn);
        config.expect("a configuration")
    }

    fn tls_client(&self, name: &'static str, scheme: Scheme) -> Kind {
        let config = Arc::new(self.server(scheme.alpn()));
        Kind {
            client: self.flags(&TRUST),
            hostile: Some(Handshake::Tcp(Acceptor::Tls(config))),
            ..clear(name, "", scheme)
        }
    }

    fn psk_client(&self, name: &'static str) -> Kind {
        Kind {
            client: self.flags(&KEY),
            hostile: Some(Handshake::Tcp(Acceptor::Psk(self.key()))),
            ..clear(name, "", Scheme::TcpPsk)
        }
    }

    fn quic_client(
        &self,
        name: &'static str,
        scheme: Scheme,
        flags: &[&str],
        alpn: &[&[u8]],
    ) -> Kind {
        let config = QuicServerConfig::try_from(self.server(alpn)).expect("TLS 1.3");
        let mut kind = client(name, scheme, flags);
        kind.client.extend(self.flags(&TRUST));
        kind.hostile = Some(Handshake::Quic(Arc::new(config)));
        kind
    }
}
