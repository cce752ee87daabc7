//! Target URLs: which server to measure and how to speak to it.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use url::{Host, Position, Url};

use crate::scheme::{Protocol, Scheme, port};

/// A server to measure. Its text form is a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Scheme, which says how the server is spoken to.
    pub scheme: Scheme,
    /// Name or address of the server.
    pub host: Host,
    /// Port of the server.
    pub port: u16,
    /// Path and query as they stand in an HTTP request; `/package.Service/Method` of a gRPC method,
    /// if one is named; empty otherwise.
    pub path: String,
}

/// The text is not a target. The error says why, and how a target looks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(String);

/// Ports that servers of others usually have.
const GRPC_CUSTOMARY: u16 = 50051;
const HTTPS_CUSTOMARY: u16 = 8443;

const EXAMPLE: &str = "a target looks like tcp://HOST:PORT";

impl Target {
    /// Returns the same target at one of its addresses.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Self {
        let mut target = self.clone();
        target.host = match address {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        };
        target
    }

    /// Returns `HOST:PORT`, as an address to connect to or as an HTTP authority.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (self.scheme.as_str(), self.authority());
        write!(f, "{scheme}://{authority}{}", self.path)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = |reason: String| TargetError(format!("'{text}'{reason}"));
        let no_url = |error: url::ParseError| {
            wrong(format!(
                " is not a URL ({error}); {EXAMPLE} or grpc://HOST:PORT"
            ))
        };
        if !text.contains("://") {
            let likely = likely_scheme(text).as_str();
            return Err(wrong(format!(
                " has no scheme: write {likely}://{text}, or another scheme if the server speaks another protocol"
            )));
        }
        if let Some(address) = bare_ipv6(text) {
            let form = format!("[{address}]:PORT after the scheme");
            return Err(wrong(format!(
                ": an IPv6 address stands in brackets, such as {form}"
            )));
        }
        let url = Url::parse(text).map_err(no_url)?;
        let mut schemes = Scheme::ALL.iter().copied();
        let Some(scheme) = schemes.find(|scheme| scheme.as_str() == url.scheme()) else {
            let known = Scheme::ALL.iter().map(|scheme| scheme.as_str());
            let (scheme, known) = (url.scheme(), known.collect::<Vec<_>>().join("://, "));
            let reason = format!(": unknown scheme '{scheme}'; the schemes are {known}://");
            return Err(wrong(reason));
        };
        let Some(name) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(wrong(format!(" names no host; {EXAMPLE}")));
        };
        // The URL standard keeps hosts of unknown schemes opaque: `127.0.0.1` would stay a name.
        let host = Host::parse(name).map_err(no_url)?;
        let (form, takes_path, takes_query) = match scheme.protocol() {
            Protocol::Http => ("HOST:PORT/PATH?QUERY", true, true),
            Protocol::Grpc => ("HOST:PORT/package.Service/Method", true, false),
            Protocol::Tcp | Protocol::Quic => ("HOST:PORT", false, false),
        };
        let has_path = !matches!(url.path(), "" | "/");
        let user = !url.username().is_empty() || url.password().is_some();
        let extra = [
            (user, "a user name"),
            (!takes_path && has_path, "a path"),
            (!takes_query && url.query().is_some(), "a query"),
            (url.fragment().is_some(), "a fragment"),
        ];
        if let Some((_, part)) = extra.into_iter().find(|(present, _)| *present) {
            let scheme = scheme.as_str();
            let reason = format!(": a {scheme}:// target is only {form}, without {part}");
            return Err(wrong(reason));
        }
        let path = match scheme.protocol() {
            Protocol::Http => &url[Position::BeforePath..Position::AfterQuery],
            Protocol::Grpc if has_path => url.path(),
            _ => "",
        };
        Ok(Self {
            scheme,
            host,
            port: url.port().unwrap_or(scheme.default_port()),
            path: path.to_owned(),
        })
    }
}

/// Returns the scheme that a server most likely speaks, by the port of `HOST:PORT/PATH`.
fn likely_scheme(text: &str) -> Scheme {
    let authority = text.split('/').next().unwrap_or(text);
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    match port.and_then(|port| port.parse().ok()) {
        Some(port::THREADS | port::TOKIO) => Scheme::Tcp,
        Some(port::GRPC | GRPC_CUSTOMARY) => Scheme::Grpc,
        Some(port::QUIC) => Scheme::Quic,
        Some(port::HTTPS | HTTPS_CUSTOMARY) => Scheme::Https,
        _ => Scheme::Http,
    }
}

/// Returns the IPv6 address of a URL where it stands without brackets, perhaps before a port.
fn bare_ipv6(text: &str) -> Option<Ipv6Addr> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split('/').next()?;
    let with_port = authority.rsplit_once(':').map(|(address, _)| address);
    let parse = |address: &str| address.parse::<Ipv6Addr>().ok();
    with_port.and_then(parse).or_else(|| parse(authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_target() {
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
    fn an_http_target_has_a_path() {
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
    fn a_grpc_target_may_name_a_method() {
        let target: Target = "grpc://h:1/helloworld.Greeter/SayHello".parse().unwrap();
        assert_eq!(target.path, "/helloworld.Greeter/SayHello");
        assert_eq!(target.to_string(), "grpc://h:1/helloworld.Greeter/SayHello");
        assert_eq!("grpc+tls://h/".parse::<Target>().unwrap().path, "");
    }

    #[test]
    fn a_wrong_target_gets_an_error_that_shows_a_right_one() {
        let error = |text: &str| text.parse::<Target>().unwrap_err().to_string();
        for (bare, likely) in [
            ("localhost", "http://localhost,"),
            ("localhost:8080/x", "http://localhost:8080/x,"),
            ("h:8004", "tcp://h:8004,"),
            ("h:50051/a.B/C", "grpc://h:50051/a.B/C,"),
            ("h:443", "https://h:443,"),
        ] {
            let error = error(bare);
            assert!(error.contains(&format!("write {likely}")), "{error}");
        }
        assert!(error("tcp:///x").contains("tcp://HOST:PORT"));
        assert!(error("udp://h:1").contains("tcp+psk://, grpc://"));
        assert!(error("tcp://h:1/x").contains("only HOST:PORT, without a path"));
        assert!(error("grpc://h:1?x=1").contains("without a query"));
        assert!(error("http://h:1/x#y").contains("only HOST:PORT/PATH?QUERY, without a fragment"));
        assert!(error("http://me@h:1/x").contains("without a user name"));
        assert!(error("tcp://").contains("no host"));
        for bare in ["tcp://::1:8004", "http://fe80::1/x", "tcp://::1"] {
            assert!(
                error(bare).contains("in brackets"),
                "{bare}: {}",
                error(bare)
            );
        }
        assert!(error("tcp://h:99999").contains("port"));
    }
}
