//! The rungs of the ladder, and the blocks in which they are measured.

use std::{ffi::OsString, path::Path};

use netping_client::{plan::ReplyLength, transport::Kind};
use netping_protocol::scheme::{Encryption, Protocol};

use crate::{credentials, server_process::ServerProcess};

/// A rung: a way to reach a server.
#[derive(Debug)]
pub struct Rung {
    pub name: String,
    /// The rung that it is compared with; `None` for the reference.
    pub over: Option<String>,
    pub form: Form,
    /// The client shows a certificate.
    pub mutual: bool,
    /// The length of a web server's replies, the same under each load.
    pub reply_length: ReplyLength,
}

/// The form of a rung's requests.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// That of netping's own server for this protocol.
    Own(Protocol),
    /// Always this.
    Fixed(Kind),
}

impl Form {
    /// Returns the form of the requests of a block; `None` for a server of which the block asks too much.
    pub fn kind(self, block: &Block) -> Option<Kind> {
        Some(match self {
            Self::Own(Protocol::Tcp) if block.is_message => Kind::Frame,
            Self::Own(Protocol::Tcp) => Kind::Line,
            Self::Own(Protocol::Grpc) => Kind::GrpcH2,
            Self::Own(Protocol::Quic) => Kind::Quic,
            // None of netping's own is a web server.
            Self::Own(Protocol::Http) => Kind::Http1,
            // It has an echo, and need not know the message.
            Self::Fixed(_) if block.is_message => return None,
            Self::Fixed(kind) => kind,
        })
    }
}

/// A rung on one of netping's own servers.
#[derive(Debug)]
pub struct OwnRung {
    pub name: &'static str,
    /// Name of the server for `netping serve`.
    server: &'static str,
    /// Flags of the server beside those of its security.
    own_flags: &'static [&'static str],
    /// The form of requests; `None`: that of the server's protocol.
    kind: Option<Kind>,
    security: Encryption,
    /// The client shows a certificate.
    mutual: bool,
    /// The rung it builds on; `None` for the reference.
    over: Option<&'static str>,
    /// Measured with `--full` only.
    pub is_extra: bool,
}

/// The reference, which the plainest rungs build on.
pub const REFERENCE: &str = "TCP tokio";

/// A second server like the reference: their difference is noise.
pub const AGAIN: &str = "TCP again";

/// gRPC without a library for HTTP/2 or gRPC: the price of the protocol, and the least that a framework stands on.
pub const FLOOR: &str = "gRPC floor";

/// The rungs, from the plainest up.
pub static RUNGS: [OwnRung; 11] = [
    OwnRung {
        over: None,
        ..OwnRung::new(REFERENCE, "tokio", Encryption::None, REFERENCE)
    },
    OwnRung::new(AGAIN, "tokio", Encryption::None, REFERENCE),
    OwnRung::new("TCP threads", "threads", Encryption::None, REFERENCE),
    OwnRung::new("TCP+PSK", "tokio", Encryption::Psk, REFERENCE),
    OwnRung::new("TCP+TLS", "tokio", Encryption::Tls, REFERENCE),
    OwnRung {
        mutual: true,
        is_extra: true,
        ..OwnRung::new("TCP+mTLS", "tokio", Encryption::Tls, "TCP+TLS")
    },
    OwnRung::new("QUIC", "quic", Encryption::Tls, "TCP+TLS"),
    OwnRung {
        own_flags: &["--stack", "floor"],
        ..OwnRung::new(FLOOR, "grpc", Encryption::None, REFERENCE)
    },
    OwnRung::new("gRPC", "grpc", Encryption::None, FLOOR),
    // What a call costs beyond a message on a stream that is open.
    OwnRung {
        kind: Some(Kind::GrpcChat),
        is_extra: true,
        ..OwnRung::new("gRPC messages", "grpc", Encryption::None, "gRPC")
    },
    OwnRung::new("gRPC+TLS", "grpc", Encryption::Tls, "gRPC"),
];

impl OwnRung {
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
            kind: None,
            security,
            mutual: false,
            over: Some(over),
            is_extra: false,
        }
    }

    /// Starts the server on these CPUs, or on any if there are none, with the credentials in `folder`.
    pub fn start(&self, folder: &Path, cpus: &[usize]) -> anyhow::Result<ServerProcess> {
        ServerProcess::start(self.server, &self.flags(folder), cpus)
    }

    /// Returns the rung on the server that was started for it.
    pub fn rung(&self, server: &ServerProcess) -> Rung {
        let own = || Form::Own(server.target.scheme.protocol());
        Rung {
            name: self.name.to_owned(),
            over: self.over.map(str::to_owned),
            form: self.kind.map_or_else(own, Form::Fixed),
            mutual: self.mutual,
            reply_length: ReplyLength::default(),
        }
    }

    fn flags(&self, folder: &Path) -> Vec<OsString> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_netpings_own_servers_are_asked_for_the_message() {
        let blocks = Block::all(64, 4, true);
        let kinds = |form: Form| {
            blocks
                .iter()
                .map(|block| form.kind(block))
                .collect::<Vec<_>>()
        };
        let [line, frame] = [Some(Kind::Line), Some(Kind::Frame)];
        let own = Form::Own(Protocol::Tcp);
        assert_eq!(kinds(own), [line, line, line, frame, frame]);
        let fixed = Form::Fixed(Kind::Line);
        assert_eq!(kinds(fixed), [line, line, line, None, None]);
    }
}
