//! Target URLs: which server to measure and how to speak to it.

use std::{fmt, net::IpAddr, str::FromStr};

use url::{Host, Position, Url};

use crate::scheme::Scheme;

/// A server to measure. Its text form is a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Scheme, which says how the server is spoken to.
    pub scheme: Scheme,
    /// Name or address of the server.
    pub host: Host,
    /// Port of the server.
    pub port: u16,
    /// Path and query as they stand in an HTTP request; empty for other protocols.
    pub path: String,
}

/// The text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is not a URL.
    #[error(
        "'{text}' is not a URL ({reason}); a target looks like tcp://HOST:PORT or grpc://HOST:PORT"
    )]
    Url {
        /// The text.
        text: String,
        /// The parser's reason.
        reason: String,
    },
    /// netping does not speak its scheme.
    #[error("'{text}': unknown scheme '{scheme}'; the schemes are {}", schemes())]
    Scheme {
        /// The text.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// It has a part that targets of its scheme do not have.
    #[error("'{text}': a {scheme}:// target is only {form}, without {part}")]
    Extra {
        /// The text.
        text: String,
        /// Its scheme.
        scheme: &'static str,
        /// Parts of such a target.
        form: &'static str,
        /// The superfluous part.
        part: &'static str,
    },
    /// It has no host.
    #[error("'{text}' names no host; a target looks like tcp://HOST:PORT")]
    NoHost {
        /// The text.
        text: String,
    },
}

fn schemes() -> String {
    let names: Vec<_> = Scheme::ALL
        .iter()
        .map(|scheme| format!("{}://", scheme.as_str()))
        .collect();
    names.join(", ")
}

impl Target {
    /// Returns the same target at one of its addresses.
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

    /// Returns `HOST:PORT`, as an address to connect to or as an HTTP authority.
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
            .iter()
            .copied()
            .find(|scheme| scheme.as_str() == url.scheme())
            .ok_or_else(|| TargetError::Scheme {
                text: owned(),
                scheme: url.scheme().to_owned(),
            })?;
        let name = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| TargetError::NoHost { text: owned() })?;
        // The URL standard keeps hosts of unknown schemes opaque: `127.0.0.1` would stay a name.
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
    fn a_wrong_target_gets_an_error_that_shows_a_right_one() {
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
