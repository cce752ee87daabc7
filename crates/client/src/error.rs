//! The reasons why nothing is measured.

use std::{io, time::Duration};

use humantime::{FormattedDuration, format_duration};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    scheme::{Encryption, Protocol},
    target::Target,
};

use crate::{clock::Moment, service::DataError, transport::Failure};

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
    /// A connection to the server could not be opened, or the first request failed.
    #[error("{}: {} ({}){}", .0, .1.detail, .1.kind, advice(.1, .0))]
    Server(Target, Failure),
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

/// A clock that is not as good as demanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// It is too far from a server's.
    #[error(
        "this host's clock is {} {} that of {server}, give or take {}; --max-clock-error allows {}: \
         synchronise both with the same time server (chrony), or allow more",
        rounded(*offset), if *ahead { "ahead of" } else { "behind" }, rounded(*uncertainty), format_duration(*max)
    )]
    Offset {
        /// URL of the server.
        server: String,
        /// True if this host's clock is the one that is ahead.
        ahead: bool,
        /// The difference.
        offset: Duration,
        /// The bound on the difference's error.
        uncertainty: Duration,
        /// The limit.
        max: Duration,
    },
    /// Nothing keeps it.
    #[error(
        "nothing synchronises this host's clock, and --max-clock-error demands it: start chrony or another NTP client, or \
         measure the offset with --clock-server"
    )]
    NotSynchronized,
    /// The kernel's estimate is too large.
    #[error(
        "this host's clock is off by an estimated {}; --max-clock-error allows {}: wait until it is synchronised, or allow more",
        format_duration(*error), format_duration(*max)
    )]
    Estimate {
        /// The estimate.
        error: Duration,
        /// The limit.
        max: Duration,
    },
    /// The system does not tell how good it is.
    #[error(
        "the system does not tell how well this host's clock is kept: measure the offset with --clock-server, or leave out \
         --max-clock-error"
    )]
    Unknown,
}

/// Shows a time to the microsecond.
fn rounded(time: Duration) -> FormattedDuration {
    format_duration(Duration::from_micros(time.as_micros() as u64))
}

/// The reason why there is no schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The server could not be asked.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server has no reflection.
    #[error(
        "{0}: the server does not tell its schema (it has no gRPC reflection); give the schema with --proto FILE or \
         --protoset FILE"
    )]
    NoReflection(Target),
    /// The server failed to tell its schema.
    #[error("{}: gRPC reflection failed: {}; the schema can be given with --proto FILE or --protoset FILE", .0, .1.detail)]
    Reflection(Target, Failure),
    /// The server has no service or method of this name, or the URL names no method.
    #[error("{target}: {reason}; it has {known}")]
    Name {
        /// The server.
        target: Target,
        /// The lack of a name.
        reason: String,
        /// The services or methods that there are.
        known: String,
    },
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] DataError),
    /// A schema has an error, or a file holds none.
    #[error("the schema has an error: {0}")]
    Invalid(String),
}

/// The beginnings of failures of [`StartError::Server`].
pub(crate) const CANNOT_CONNECT: &str = "cannot connect";
pub(crate) const FIRST_CALL_FAILED: &str = "the first request failed";

/// The beginning of the failure of a first call in frames.
pub(crate) const FIRST_FRAME_FAILED: &str = "the first request, in netping's own frames (as --response, --message and a --payload over 64 KiB need), failed";

/// The gRPC status of a method that a server does not have.
pub const UNIMPLEMENTED: u16 = 12;

fn advice(failure: &Failure, target: &Target) -> String {
    let scheme = target.scheme.as_str();
    let is_plain = target.scheme.encryption() == Encryption::None;
    let protocol = target.scheme.protocol();
    let says = |text| failure.detail.contains(text);
    let text = match failure.kind {
        ErrorKind::Tls if says("CertificateRequired") => {
            "the server asks for the client's certificate: give --tls-cert and --tls-key"
        }
        ErrorKind::Tls if says("certificate") => {
            "give the authority of the server's certificate with --tls-ca FILE, or accept any certificate with \
             --tls-insecure; a server that asks for a certificate needs --tls-cert and --tls-key"
        }
        ErrorKind::Tls if says("InvalidContentType") => {
            let plain = scheme.replace("https", "http").replace("+tls", "");
            return format!(
                "; the server there does not speak TLS: should the URL begin with {plain}://?"
            );
        }
        ErrorKind::Refused => "is a server listening there?",
        ErrorKind::ConnectTimeout if protocol == Protocol::Quic => {
            "is a QUIC server listening there, and does a firewall let UDP through?"
        }
        ErrorKind::ConnectTimeout if is_plain => {
            "is the host up, and does a firewall let the port through?"
        }
        ErrorKind::ConnectTimeout => {
            "is the host up, does a firewall let the port through, and does the server there answer a handshake?"
        }
        ErrorKind::Other => {
            "if addresses or files ran out, use fewer connections or raise the limits"
        }
        ErrorKind::Grpc(UNIMPLEMENTED) if !target.path.is_empty() => {
            "`netping grpc list URL` shows the methods of a server"
        }
        ErrorKind::Grpc(UNIMPLEMENTED) => {
            "netping calls the services of its own servers: see proto/"
        }
        // The failure says all.
        ErrorKind::Mismatch if protocol == Protocol::Grpc => return String::new(),
        _ if says("HTTP/1.") && !target.scheme.is_http() => {
            "the server there speaks HTTP: should the URL begin with http://?"
        }
        ErrorKind::Mismatch if target.scheme.is_http() => {
            "a proxy without a backend answers with a page of its own"
        }
        ErrorKind::Timeout => {
            return format!(
                "; the server accepts connections, but sends no whole reply: does it speak {scheme}? If it is slow, or \
                 its stream long, give a longer --timeout"
            );
        }
        _ => {
            let clear = if is_plain { ", and without TLS" } else { "" };
            return format!("; does the server there speak {scheme}{clear}?");
        }
    };
    format!("; {text}")
}
