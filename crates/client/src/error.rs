//! The reasons why nothing is measured.

use std::{io, time::Duration};

use humantime::{FormattedDuration, format_duration};
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    scheme::{Encryption, Protocol},
    target::Target,
};

use crate::{clock::Moment, probe::spoken::Spoken, service::DataError, transport::Failure};

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
    /// The server speaks another protocol than the URL has.
    #[error(
        "{target}: {} ({}); the server there speaks {}: should the URL be {meant}?",
        failure.detail, failure.kind, spoken.name()
    )]
    Speaks {
        /// The server.
        target: Target,
        /// The failure that this led to.
        failure: Failure,
        /// The protocol.
        spoken: Spoken,
        /// The URL that was meant.
        meant: String,
    },
    /// The URL names no gRPC method, and the server has none of netping's own.
    #[error("{target}: the URL names no method, and the server has none of netping's own; {}", own_methods(.target, .methods.as_deref()))]
    NoOwnMethod {
        /// The server.
        target: Target,
        /// The methods that it has; absent where it does not tell.
        methods: Option<Vec<String>>,
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
    /// The file that was to have that moment has none.
    #[error("{0}")]
    Announced(String),
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

impl StartError {
    /// Returns true if one server cannot be measured, and others may be.
    pub fn is_of_server(&self) -> bool {
        matches!(
            self,
            Self::Server(..) | Self::Speaks { .. } | Self::NoOwnMethod { .. }
        )
    }
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

/// Most methods that are named.
const NAMED: usize = 3;

/// Says how to name a method of a server.
fn own_methods(target: &Target, methods: Option<&[String]>) -> String {
    let url = format!("{}://{}", target.scheme.as_str(), target.authority());
    let Some([first, ..]) = methods else {
        return format!(
            "it has no gRPC reflection that tells its own: name one, as in {url}/package.Service/Method, with --proto FILE"
        );
    };
    let methods = methods.unwrap_or_default();
    let (named, more) = methods.split_at(methods.len().min(NAMED));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more (netping grpc list {url})"),
    };
    format!(
        "it has {}{more}: name one, as in {url}/{first}",
        named.join(", ")
    )
}

fn advice(failure: &Failure, target: &Target) -> String {
    let scheme = target.scheme.as_str();
    let is_plain = target.scheme.encryption() == Encryption::None;
    let protocol = target.scheme.protocol();
    let says = |text| failure.detail.contains(text);
    let text = match failure.kind {
        ErrorKind::Tls if says("CertificateRequired") => {
            "the server asks for the client's certificate: give --tls-cert and --tls-key"
        }
        ErrorKind::Tls if says("alert") && (says("ertificate") || says("UnknownCA")) => {
            "the server does not accept the client's certificate: give one that its authority has signed, with --tls-cert \
             and --tls-key"
        }
        ErrorKind::Tls if says("not valid for name") => {
            "give the name that the certificate has with --tls-server-name"
        }
        ErrorKind::Tls if says("expired") || says("not valid yet") => {
            "renew the certificate, or set this host's clock"
        }
        ErrorKind::Tls if says("certificate") => {
            "give the authority that signed it with --tls-ca FILE, or accept any certificate with --tls-insecure"
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
        ErrorKind::Other if says("nreachable") || says("No route to host") => {
            "no route leads there from this host: is the address right, and its network up?"
        }
        ErrorKind::Other
            if says("Cannot assign requested address") || says("Too many open files") =>
        {
            "use fewer connections, or raise this host's limits"
        }
        // The system says all.
        ErrorKind::Other => return String::new(),
        ErrorKind::Grpc(UNIMPLEMENTED) => {
            let (scheme, authority) = (target.scheme.as_str(), target.authority());
            return format!(
                "; `netping grpc list {scheme}://{authority}` lists the methods that it has"
            );
        }
        // The failure says all.
        ErrorKind::Mismatch if protocol == Protocol::Grpc => return String::new(),
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
