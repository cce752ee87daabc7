//! The rungs of the ladder, and the blocks in which they are measured.

use std::{ffi::OsString, path::Path};

use crate::credentials;
use netping_protocol::scheme::Encryption;

/// A rung: a way to reach a server.
#[derive(Debug)]
pub struct Rung {
    pub name: &'static str,
    /// Name of the server for `netping serve`.
    pub server: &'static str,
    /// Flags of the server beside those of its security.
    own_flags: &'static [&'static str],
    security: Encryption,
    /// The client shows a certificate.
    pub mutual: bool,
    /// The rung it builds on; `None` for the reference.
    pub over: Option<&'static str>,
    /// Measured with `--full` only.
    pub is_extra: bool,
}

/// The reference, which the plainest rungs build on.
const REFERENCE: &str = "TCP tokio";

/// A second server like the reference: their difference is noise.
pub const AGAIN: &str = "TCP again";

/// gRPC without a library for HTTP/2 or gRPC: the price of the protocol, and the least that a framework stands on.
const FLOOR: &str = "gRPC floor";

/// The rungs, from the plainest up.
pub const RUNGS: [Rung; 10] = [
    Rung {
        over: None,
        ..Rung::new(REFERENCE, "tokio", Encryption::None, REFERENCE)
    },
    Rung::new(AGAIN, "tokio", Encryption::None, REFERENCE),
    Rung::new("TCP threads", "threads", Encryption::None, REFERENCE),
    Rung::new("TCP+PSK", "tokio", Encryption::Psk, REFERENCE),
    Rung::new("TCP+TLS", "tokio", Encryption::Tls, REFERENCE),
    Rung {
        mutual: true,
        is_extra: true,
        ..Rung::new("TCP+mTLS", "tokio", Encryption::Tls, "TCP+TLS")
    },
    Rung::new("QUIC", "quic", Encryption::Tls, "TCP+TLS"),
    Rung {
        own_flags: &["--stack", "floor"],
        ..Rung::new(FLOOR, "grpc", Encryption::None, REFERENCE)
    },
    Rung::new("gRPC", "grpc", Encryption::None, FLOOR),
    Rung::new("gRPC+TLS", "grpc", Encryption::Tls, "gRPC"),
];

impl Rung {
    const fn new(
        name: &'static str,
        server: &'static str,
        security: Encryption,
        over: &'static str,
    ) -> Self {
        Self {
            name,
            server,
            own_flags: &[],
            security,
            mutual: false,
            over: Some(over),
            is_extra: false,
        }
    }

    /// Returns the server's flags, with the credentials in `folder`.
    pub fn flags(&self, folder: &Path) -> Vec<OsString> {
        let mut files = match self.security {
            Encryption::None => Vec::new(),
            Encryption::Psk => vec![("--psk-file", credentials::SHARED_KEY)],
            Encryption::Tls => vec![
                ("--tls-cert", credentials::SERVER_CERT),
                ("--tls-key", credentials::SERVER_KEY),
            ],
        };
        if self.mutual {
            files.push(("--tls-client-ca", credentials::CA));
        }
        let files = files
            .into_iter()
            .flat_map(|(flag, file)| [OsString::from(flag), folder.join(file).into()]);
        self.own_flags
            .iter()
            .map(OsString::from)
            .chain(files)
            .collect()
    }
}

/// A block: the load under which rungs are measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub callers: usize,
    /// Connections that the callers share; `None`: each has its own.
    pub shared: Option<usize>,
    /// Requests carry the 581-byte message instead of 16 bytes.
    pub is_message: bool,
}

impl Block {
    /// Returns true if this is `other` with a connection for each caller.
    pub fn is_unshared(&self, other: &Self) -> bool {
        self.shared.is_none()
            && (self.callers, self.is_message) == (other.callers, other.is_message)
    }

    /// Returns the blocks of a ladder.
    pub fn all(callers: usize, shared: usize, is_full: bool) -> Vec<Self> {
        let block = |callers, shared, is_message| Self {
            callers,
            shared,
            is_message,
        };
        let mut blocks = vec![
            block(1, None, false),
            block(callers, None, false),
            block(callers, Some(shared), false),
        ];
        if is_full {
            blocks.extend([block(1, None, true), block(callers, None, true)]);
        }
        blocks
    }
}
