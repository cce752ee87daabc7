//! The servers under test, and the schemes of clients under test.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use netping_benches::processes::Server;
use netping_protocol::{
    psk::Key,
    scheme::Scheme,
    secure::Connector,
    tls::{self, ClientOptions},
};

/// A server under test: its name in the table, that of `netping serve`, its flags, those of a client,
/// and the handshake of a peer.
pub struct Kind {
    pub name: &'static str,
    /// Empty for a client under test, whose scheme is the name.
    pub server: &'static str,
    pub flags: Vec<String>,
    client: Vec<String>,
    pub connector: Connector,
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
        self.server.is_empty()
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

    /// Returns true if the server has the RPCs of bulk data.
    pub fn has_bulk(&self) -> bool {
        self.is_grpc() && !self.flags.iter().any(|flag| flag == "floor")
    }

    pub fn is_quic(&self) -> bool {
        self.server == "quic"
    }
}

/// Returns what is under test: with `is_all` also the other stacks of gRPC, TLS, and the pre-shared key.
pub fn kinds(is_all: bool, certificates: &Path) -> Vec<Kind> {
    let keys = Keys(certificates);
    let mut kinds = vec![
        clear("threads", "threads"),
        clear("tokio", "tokio"),
        clear("grpc", "grpc"),
        keys.tls("quic", "quic", Scheme::Quic),
        clear("tcp://", ""),
        clear("grpc://", ""),
        clear("http://", ""),
    ];
    if is_all {
        kinds.extend([
            stack("grpc hyper", "hyper"),
            stack("grpc floor", "floor"),
            keys.tls("threads, TLS", "threads", Scheme::TcpTls),
            keys.tls("tokio, TLS", "tokio", Scheme::TcpTls),
            keys.tls("grpc, TLS", "grpc", Scheme::GrpcTls),
            keys.psk("tokio, PSK", "tokio"),
        ]);
    }
    kinds
}

fn clear(name: &'static str, server: &'static str) -> Kind {
    Kind {
        name,
        server,
        flags: Vec::new(),
        client: Vec::new(),
        connector: Connector::Plain,
    }
}

/// Returns a gRPC server on another stack than its default.
fn stack(name: &'static str, stack: &str) -> Kind {
    Kind {
        flags: ["--stack", stack].map(str::to_owned).to_vec(),
        ..clear(name, "grpc")
    }
}

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
            name,
            server,
            flags: self.flags(&[("--tls-cert", "server.pem"), ("--tls-key", "server.key")]),
            client: self.flags(&[("--tls-ca", "ca.pem")]),
            connector: Connector::Tls(Arc::new(config), host),
        }
    }

    fn psk(&self, name: &'static str, server: &'static str) -> Kind {
        let key = Key::read(&self.path("psk.key")).expect("a key");
        let flags = self.flags(&[("--psk-file", "psk.key")]);
        Kind {
            name,
            server,
            client: flags.clone(),
            flags,
            connector: Connector::Psk(Arc::new(key)),
        }
    }
}
