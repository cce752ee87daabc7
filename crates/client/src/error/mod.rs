//! The reasons why nothing is measured.

mod clock;
mod schema;

pub use self::{clock::ClockError, schema::SchemaError};

use std::{io, time::Duration};

use humantime::format_duration;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    scheme::{Encryption, Protocol},
    target::Target,
};

use crate::{
    clock::Moment,
    transport::failure::{Failure, UNIX_SOCKET},
};

/// The reason that a step sent no request.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The host has no address.
    #[error("{target}: cannot resolve '{}': {source}; check the name, or give an address", target.host)]
    Resolve {
        /// The server.
        target: Target,
        /// The system's answer.
        source: io::Error,
    },
    /// A connection could not be opened.
    #[error("{target}: cannot connect: {} ({}){}", failure.detail, failure.kind, advice(failure, target))]
    Connect {
        /// The server.
        target: Target,
        /// The failure of the first connection that failed.
        failure: Failure,
    },
    /// The first request failed.
    #[error("{target}: the first request failed: {} ({}){}", failure.detail, failure.kind, advice(failure, target))]
    FirstCall {
        /// The server.
        target: Target,
        /// The failure.
        failure: Failure,
    },
    /// The moment at which a step was to begin had passed.
    #[error(
        "the connections were open {} after {at}, when the step was to begin: start earlier, or give a later --start-at",
        format_duration(Duration::from_millis(late.as_millis().max(1) as u64))
    )]
    Late {
        /// The moment.
        at: Moment,
        /// The time since.
        late: Duration,
    },
    /// This host's clock is not as good as demanded.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The system refused a thread or a runtime.
    #[error("cannot start a worker: {0}; try fewer --workers")]
    Worker(#[from] io::Error),
    /// A worker thread ended by itself.
    #[error("a worker thread ended unexpectedly; this is a bug in netping")]
    Broken,
    /// The user interrupted it.
    #[error("interrupted before the first request")]
    Interrupted,
}

/// The gRPC status of a method that a server does not have.
pub const UNIMPLEMENTED: u16 = 12;

fn advice(failure: &Failure, target: &Target) -> String {
    match failure.kind {
        ErrorKind::Tls if failure.detail.contains("CertificateRequired") => {
            "; the server asks for the client's certificate: give --tls-cert and --tls-key".to_owned()
        }
        ErrorKind::Tls if failure.detail.contains("certificate") => {
            "; give the authority of the server's certificate with --tls-ca FILE, or accept any certificate with \
             --tls-insecure; a server that asks for a certificate needs --tls-cert and --tls-key"
                .to_owned()
        }
        ErrorKind::Refused if failure.detail.starts_with(UNIX_SOCKET) => {
            "; is a server listening on this path?".to_owned()
        }
        ErrorKind::Refused => format!("; is a server listening on port {}?", target.port),
        ErrorKind::Tls if failure.detail.contains("InvalidContentType") => format!(
            "; the server there does not speak TLS: should the URL begin with {}://?",
            target.scheme.as_str().replace("https", "http").replace("+tls", "")
        ),
        ErrorKind::ConnectTimeout if target.scheme.protocol() == Protocol::Quic => format!(
            "; is a QUIC server listening on UDP port {}, and does a firewall let UDP through?",
            target.port
        ),
        ErrorKind::ConnectTimeout if target.scheme.encryption() != Encryption::None => {
            "; is the host up, does a firewall let the port through, and does the server there answer a handshake?"
                .to_owned()
        }
        ErrorKind::ConnectTimeout => {
            "; is the host up, and does a firewall let the port through?".to_owned()
        }
        ErrorKind::Other => {
            "; if addresses or files ran out, use fewer connections or raise the limits".to_owned()
        }
        ErrorKind::Grpc(UNIMPLEMENTED) if !target.path.is_empty() => {
            "; `netping grpc list URL` shows the methods of a server".to_owned()
        }
        ErrorKind::Grpc(UNIMPLEMENTED) => {
            "; netping calls the services of its own servers: see proto/".to_owned()
        }
        // The failure says all.
        ErrorKind::Mismatch if target.scheme.protocol() == Protocol::Grpc => String::new(),
        _ if failure.detail.contains("HTTP/1.") && !target.scheme.is_http() => {
            "; the server there speaks HTTP: should the URL begin with http://?".to_owned()
        }
        ErrorKind::Mismatch if target.scheme.is_http() => {
            "; a proxy without a backend answers with a page of its own".to_owned()
        }
        ErrorKind::Timeout => format!(
            "; the server accepts connections, but sends no whole reply: does it speak {}? If it is slow, or its \
             stream long, give a longer --timeout",
            target.scheme.as_str()
        ),
        _ if target.scheme.encryption() == Encryption::None => format!(
            "; does the server there speak {}, and without TLS?",
            target.scheme.as_str()
        ),
        _ => format!("; does the server there speak {}?", target.scheme.as_str()),
    }
}
