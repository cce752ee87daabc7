//! Errors of starting a server.

use std::{io, net::SocketAddr};

use netping_protocol::secret_file::CredentialError;

/// The result of what a server does to start.
pub type Result<T, E = ServeError> = std::result::Result<T, E>;

/// A server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A socket could not be bound.
    #[error("cannot listen on {address}: {source}{}", advice(source))]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// The flags contradict each other.
    #[error("{0}")]
    Flags(&'static str),
    /// Certificates or keys cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process has that port: choose one with --listen (or --metrics)"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; this host has no such address: use one of its own, or 0.0.0.0"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need privileges: choose a higher one with --listen"
        }
        _ => "",
    }
}
