//! Why a step did not come to its first request.

use std::io;

use netping_measure::error_kind::ErrorKind;
use netping_protocol::target::Target;

use crate::transport::Failure;

/// Why a step did not come to its first request.
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
        /// What happened.
        failure: Failure,
    },
    /// The system refused a thread or a runtime.
    #[error("cannot start a worker: {0}; try fewer --workers")]
    Worker(#[from] io::Error),
    /// A worker ended by itself.
    #[error("a worker broke down; this is a defect in netping")]
    Broken,
    /// The user did not want to wait.
    #[error("interrupted before the first request")]
    Interrupted,
}

fn advice(failure: &Failure, target: &Target) -> String {
    match failure.kind {
        ErrorKind::Tls if failure.detail.contains("certificate") => {
            "; give the authority of the server's certificate with --tls-ca FILE, or take any with --tls-insecure; and a \
             server that asks for a certificate: --tls-cert and --tls-key"
                .to_owned()
        }
        ErrorKind::Refused => format!("; is a server listening on port {}?", target.port),
        ErrorKind::ConnectTimeout => "; is the host up, and does a firewall let the port through?".to_owned(),
        ErrorKind::Other => "; if addresses or files ran out, use fewer connections or raise the limits".to_owned(),
        _ => format!("; does the server there speak {}?", target.scheme.as_str()),
    }
}
