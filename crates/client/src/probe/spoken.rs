//! The protocol that a server speaks, by its answer to a request that is not meant for it.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use netping_protocol::scheme::{Protocol, Scheme};

/// The time in which a server has to show what it speaks.
const PATIENCE: Duration = Duration::from_millis(500);

/// A request that servers of most protocols answer, each in its own way.
const QUESTION: &[u8] = b"GET / HTTP/1.1\r\nHost: netping\r\nConnection: close\r\n\r\n";

/// Words of a web server that speaks TLS and got plain HTTP.
const WANTS_TLS: &[&str] = &["HTTPS port", "HTTPS server"];

/// The frames with which a server begins HTTP/2, or rejects what is none: SETTINGS and GOAWAY (RFC 9113, section 6).
const FRAMES: [u8; 2] = [4, 7];

/// A TLS record with an alert (RFC 8446, section 5.1).
const ALERT: [u8; 2] = [21, 3];

/// A protocol that a server was seen to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP/1.
    Http,
    /// HTTP/2, as gRPC has it.
    Http2,
    /// TLS.
    Tls,
    /// netping's own lines.
    Lines,
}

impl Spoken {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Tls => "TLS",
            Self::Lines => "netping's own protocol",
        }
    }

    /// Returns the scheme of the URL that was meant, where it is another one.
    pub fn meant(self, given: Scheme) -> Option<Scheme> {
        let meant = match (self, given.protocol()) {
            (Self::Http, _) => Scheme::Http,
            (Self::Http2, _) => Scheme::Grpc,
            (Self::Tls, Protocol::Tcp) => Scheme::TcpTls,
            (Self::Tls, Protocol::Grpc) => Scheme::GrpcTls,
            (Self::Tls, _) => Scheme::Https,
            (Self::Lines, _) => Scheme::Tcp,
        };
        (meant != given).then_some(meant)
    }

    /// Returns what the server at an address speaks, if it shows it.
    pub fn at(address: &SocketAddr) -> Option<Self> {
        Self::of(&ask(address))
    }

    /// Recognises the beginning of an answer to [`QUESTION`].
    fn of(answer: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(answer);
        if text.starts_with("HTTP/") {
            let wants_tls = WANTS_TLS.iter().any(|words| text.contains(words));
            return Some(if wants_tls { Self::Tls } else { Self::Http });
        }
        match answer {
            _ if answer.starts_with(b"GET / HTTP") => Some(Self::Lines),
            _ if answer.starts_with(&ALERT) => Some(Self::Tls),
            // Of the connection itself, which is stream 0.
            [_, _, _, frame, _, 0, 0, 0, 0, ..] if FRAMES.contains(frame) => Some(Self::Http2),
            _ => None,
        }
    }
}

/// Returns the beginning of a server's answer; nothing where there is none in time.
fn ask(address: &SocketAddr) -> Vec<u8> {
    let mut answer = [0; 1024];
    let mut length = 0;
    if let Ok(mut stream) = TcpStream::connect_timeout(address, PATIENCE) {
        let is_asked = stream.set_read_timeout(Some(PATIENCE)).is_ok()
            && stream.set_write_timeout(Some(PATIENCE)).is_ok()
            && stream.write_all(QUESTION).is_ok();
        while is_asked && length < answer.len() {
            match stream.read(&mut answer[length..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => length += more,
            }
        }
    }
    answer[..length].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_known_by_the_beginning_of_its_answer() {
        let of = |answer: &[u8]| Spoken::of(answer);
        assert_eq!(of(b"HTTP/1.0 501 Unsupported"), Some(Spoken::Http));
        let plain =
            b"HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port";
        assert_eq!(of(plain), Some(Spoken::Tls));
        assert_eq!(of(&[21, 3, 3, 0, 2, 2, 70]), Some(Spoken::Tls));
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        assert_eq!(of(&settings), Some(Spoken::Http2));
        assert_eq!(of(b"GET / HTTP/1.1\r\n"), Some(Spoken::Lines));
        for other in [&b""[..], b"SSH-2.0-x", &[0, 0, 0, 0, 0, 0, 0, 0, 1]] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
