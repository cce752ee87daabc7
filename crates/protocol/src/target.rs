//! The URLs that name a server and how to speak to it.

use std::{fmt, net::IpAddr, str::FromStr};

use url::{Host, Position, Url};

/// The port of each server unless it is told another.
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
    /// A server's metrics are this far above its own port.
    pub const METRICS_OFFSET: u16 = 1000;
}

/// How a target is spoken to: a URL's scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `tcp://`: lines or frames on a TCP connection.
    Tcp,
    /// `tcp+tls://`: the same in TLS.
    TcpTls,
    /// `tcp+psk://`: the same in Noise, with a pre-shared key.
    TcpPsk,
    /// `grpc://`: gRPC on HTTP/2 in clear text.
    Grpc,
    /// `grpc+tls://`: gRPC on HTTP/2 in TLS.
    GrpcTls,
    /// `quic://`: frames on streams of a QUIC connection.
    Quic,
    /// `http://`: `GET` from any HTTP server, in clear text.
    Http,
    /// `https://`: the same in TLS.
    Https,
}

/// What a scheme puts its bytes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Security {
    /// Nothing.
    Plain,
    /// TLS, also as part of QUIC.
    Tls,
    /// Noise, with a pre-shared key.
    Psk,
}

impl Scheme {
    /// Every scheme there is.
    pub const ALL: [Self; 8] = [
        Self::Tcp,
        Self::TcpTls,
        Self::TcpPsk,
        Self::Grpc,
        Self::GrpcTls,
        Self::Quic,
        Self::Http,
        Self::Https,
    ];

    /// As it stands in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::TcpTls => "tcp+tls",
            Self::TcpPsk => "tcp+psk",
            Self::Grpc => "grpc",
            Self::GrpcTls => "grpc+tls",
            Self::Quic => "quic",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that has none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Tcp | Self::TcpTls | Self::TcpPsk => port::TOKIO,
            Self::Grpc | Self::GrpcTls => port::GRPC,
            Self::Quic => port::QUIC,
            Self::Http => port::HTTP,
            Self::Https => port::HTTPS,
        }
    }

    /// Whether it is plain HTTP, as any web server speaks it.
    pub fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https)
    }

    /// What it puts its bytes into.
    pub fn security(self) -> Security {
        match self {
            Self::Tcp | Self::Grpc | Self::Http => Security::Plain,
            Self::TcpTls | Self::GrpcTls | Self::Quic | Self::Https => Security::Tls,
            Self::TcpPsk => Security::Psk,
        }
    }
}

/// A server to measure. Its text form is a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// How to speak to it.
    pub scheme: Scheme,
    /// A name or an address.
    pub host: Host,
    /// Its port.
    pub port: u16,
    /// What to get there, with its query, as it stands in a request; empty for all but HTTP.
    pub path: String,
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL at all.
    #[error(
        "'{text}' is not a URL ({reason}); a target looks like tcp://HOST:PORT or grpc://HOST:PORT"
    )]
    Url {
        /// What was given.
        text: String,
        /// What the parser says.
        reason: String,
    },
    /// A scheme that netping does not speak.
    #[error("'{text}': unknown scheme '{scheme}'; the schemes are {}", schemes())]
    Scheme {
        /// What was given.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// A part that a target has no use for.
    #[error("'{text}': a {scheme}:// target is only {form}, without {part}")]
    Extra {
        /// What was given.
        text: String,
        /// Its scheme.
        scheme: &'static str,
        /// What such a target consists of.
        form: &'static str,
        /// The part too many.
        part: &'static str,
    },
    /// No host.
    #[error("'{text}' names no host; a target looks like tcp://HOST:PORT")]
    NoHost {
        /// What was given.
        text: String,
    },
}

fn schemes() -> String {
    Scheme::ALL
        .map(|scheme| format!("{}://", scheme.as_str()))
        .join(", ")
}

impl Target {
    /// The same target at one of its addresses.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Self {
        let host = match address {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        };
        Self {
            host,
            ..self.clone()
        }
    }

    /// `HOST:PORT`, as an address to connect to or as an HTTP authority.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}:{}{}",
            self.scheme.as_str(),
            self.host,
            self.port,
            self.path
        )
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let owned = || text.to_owned();
        let url = Url::parse(text).map_err(|error| TargetError::Url {
            text: owned(),
            reason: error.to_string(),
        })?;
        let scheme = Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.as_str() == url.scheme())
            .ok_or_else(|| TargetError::Scheme {
                text: owned(),
                scheme: url.scheme().to_owned(),
            })?;
        let name = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| TargetError::NoHost { text: owned() })?;
        // For schemes that the URL standard does not know, a host is opaque: `127.0.0.1` would stay a name.
        let host = Host::parse(name).map_err(|error| TargetError::Url {
            text: owned(),
            reason: error.to_string(),
        })?;
        let http = scheme.is_http();
        let extra = [
            (
                !url.username().is_empty() || url.password().is_some(),
                "a user name",
            ),
            (!http && !matches!(url.path(), "" | "/"), "a path"),
            (!http && url.query().is_some(), "a query"),
            (url.fragment().is_some(), "a fragment"),
        ];
        if let Some((_, part)) = extra.into_iter().find(|(present, _)| *present) {
            let form = if http {
                "HOST:PORT/PATH?QUERY"
            } else {
                "HOST:PORT"
            };
            return Err(TargetError::Extra {
                text: owned(),
                scheme: scheme.as_str(),
                form,
                part,
            });
        }
        let path = if http {
            url[Position::BeforePath..Position::AfterQuery].to_owned()
        } else {
            String::new()
        };
        Ok(Self {
            scheme,
            host,
            port: url.port().unwrap_or(scheme.default_port()),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_targets() {
        let target: Target = "tcp://127.0.0.1:9000".parse().unwrap();
        assert_eq!(target.scheme, Scheme::Tcp);
        assert_eq!(target.to_string(), "tcp://127.0.0.1:9000");
        let target: Target = "grpc://[::1]".parse().unwrap();
        assert_eq!(target.authority(), "[::1]:8005");
        let target: Target = "tcp://server.example".parse().unwrap();
        assert_eq!(
            target.at("10.0.0.1".parse().unwrap()).to_string(),
            "tcp://10.0.0.1:8004"
        );
    }

    #[test]
    fn http_targets_name_what_to_get() {
        let target: Target = "http://h:8080/10k.bin?x=1".parse().unwrap();
        assert_eq!(
            (target.scheme, target.port, &*target.path),
            (Scheme::Http, 8080, "/10k.bin?x=1")
        );
        assert_eq!(target.to_string(), "http://h:8080/10k.bin?x=1");
        assert_eq!(
            target.at("10.0.0.1".parse().unwrap()).to_string(),
            "http://10.0.0.1:8080/10k.bin?x=1"
        );
        let shown = |text: &str| text.parse::<Target>().unwrap().to_string();
        assert_eq!(shown("http://server.example"), "http://server.example:80/");
        assert_eq!(
            shown("http://server.example:80?x"),
            "http://server.example:80/?x"
        );
        assert_eq!(shown("https://[::1]/a b"), "https://[::1]:443/a%20b");
        assert_eq!(shown("https://10.0.0.1:80/"), "https://10.0.0.1:80/");
    }

    #[test]
    fn what_is_no_target_says_what_one_looks_like() {
        let error = |text: &str| text.parse::<Target>().unwrap_err().to_string();
        assert!(error("localhost").contains("tcp://HOST:PORT"));
        assert!(error("udp://h:1").contains("tcp+psk://, grpc://"));
        assert!(error("tcp://h:1/x").contains("only HOST:PORT, without a path"));
        assert!(error("grpc://h:1?x=1").contains("without a query"));
        assert!(error("http://h:1/x#y").contains("only HOST:PORT/PATH?QUERY, without a fragment"));
        assert!(error("http://me@h:1/x").contains("without a user name"));
        assert!(error("tcp://").contains("no host"));
        assert!(error("tcp://h:99999").contains("port"));
    }
}
