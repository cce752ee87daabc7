//! Outcomes of a command: verdicts, errors and exit codes.

mod clock;
mod scenario;
mod schema;

pub use self::{clock::ClockError, scenario::ScenarioError, schema::SchemaError};

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use humantime::format_duration;
use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    psk::KeyError,
    scheme::{Encryption, Protocol},
    target::Target,
    tls::TlsError,
};
use netping_results::format::on_lines;

use crate::{
    clock::Moment,
    service::{DataError, ExpectError},
    transport::failure::{Failure, UNIX_SOCKET},
};

/// The verdict on a command that came to its end. Of several, the greatest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything was done, and no more requests failed than allowed.
    Success,
    /// There are warnings, and the user wanted none.
    Warnings,
    /// A condition of the user's does not hold.
    Condition,
    /// Too many requests failed.
    Requests,
    /// A result could not be saved.
    Unsaved,
    /// The user ended it.
    Interrupted,
}

impl Verdict {
    fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Requests => 1,
            Self::Condition => 4,
            Self::Warnings => 5,
            Self::Unsaved => 6,
            Self::Interrupted => 130,
        }
    }
}

/// The reason a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The flags make no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A measurement could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Anything else, such as a file that cannot be read.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<UsageError> for Failed {
    fn from(error: UsageError) -> Self {
        Self::Plan(error.into())
    }
}

/// A mistake in the command line that clap cannot see, because it lies in a combination of flags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The reason that flags make no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The flags do not go together.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A certificate or its key is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A pre-shared key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The data of requests cannot be sent.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The schema of a service is not known.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The contents that replies have to have cannot be read.
    #[error(transparent)]
    Expect(#[from] ExpectError),
}

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

/// Prints a line to standard error. Without one, the exit code has to do.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Reports a failure on standard error and returns the exit code.
pub fn exit_code(result: Result<Verdict, Failed>) -> ExitCode {
    let code = match result {
        Ok(verdict) => verdict.code(),
        Err(Failed::Start(StartError::Interrupted)) => Verdict::Interrupted.code(),
        Err(failed) => {
            // The message may quote a result file.
            tell(&format!("error: {}", on_lines(&failed.to_string())));
            match failed {
                Failed::Plan(
                    PlanError::Usage(_)
                    | PlanError::Data(DataError::Document { .. } | DataError::TooLarge { .. })
                    | PlanError::Expect(ExpectError::Message { .. }),
                )
                | Failed::Scenario(ScenarioError::Line { .. }) => 2,
                _ => 3,
            }
        }
    };
    ExitCode::from(code)
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
