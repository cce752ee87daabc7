//! Opening connections and classifying I/O errors, for all transports.

use std::{io, net::SocketAddr, path::Path};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::secure::{Stream, is_security_error};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use super::{
    connection::Milestones,
    endpoint::Endpoint,
    failure::{Failure, UNIX_SOCKET},
};
use crate::resolve::resolve_aside;

/// Returns the name of a Unix socket; that of an abstract one begins with `@`.
pub(crate) fn socket_name(socket: &Path) -> String {
    socket.to_string_lossy().replace('\0', "@")
}

/// Connects to the Unix socket, if there is one; otherwise to the first address that answers, secures
/// the connection, and sets TCP_NODELAY. `buffers` is the size of the socket's buffers in bytes; `None`: the kernel's default.
pub(crate) async fn open(
    endpoint: &Endpoint,
    buffers: Option<u32>,
    milestones: &mut Milestones<'_>,
) -> Result<Stream, Failure> {
    if let Some(socket) = &endpoint.unix_socket {
        let stream = UnixStream::connect(socket).await.map_err(|error| {
            let name = socket_name(socket);
            let detail = format!("{UNIX_SOCKET} {name}: {error}");
            let failure = io_failure(&error);
            Failure { detail, ..failure }
        })?;
        milestones.reached(ConnectPhase::Tcp);
        return Ok(Stream::Unix(stream));
    }
    let mut last = no_address();
    for address in addresses(endpoint, milestones).await? {
        match connect(address, buffers).await {
            Ok(stream) => {
                milestones.reached(ConnectPhase::Tcp);
                let secured = endpoint.connector.connect(stream).await;
                let secured = secured.map_err(|error| handshake_failure(&error))?;
                if secured.is_secure() {
                    milestones.reached(ConnectPhase::Handshake);
                }
                return Ok(secured);
            }
            Err(error) => last = error,
        }
        milestones.tried_in_vain();
    }
    Err(last.into())
}

async fn connect(address: SocketAddr, buffers: Option<u32>) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(bytes) = buffers {
        // They determine the window scale, so they are set before connecting.
        socket.set_recv_buffer_size(bytes)?;
        socket.set_send_buffer_size(bytes)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns the endpoint's known addresses, or resolves its name again.
pub(super) async fn addresses(
    endpoint: &Endpoint,
    milestones: &mut Milestones<'_>,
) -> Result<Vec<SocketAddr>, Failure> {
    if !endpoint.resolve_each {
        return Ok(endpoint.addresses.clone());
    }
    let found = resolve_aside(&endpoint.target).await?;
    milestones.reached(ConnectPhase::Resolve);
    Ok(found)
}

/// Returns the error of a name without addresses.
pub(super) fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address")
}

/// Classifies the failure of a handshake: the sides did not agree, or the connection broke.
pub(super) fn handshake_failure(error: &io::Error) -> Failure {
    // A server that does not have the key, or is full, closes without a word.
    if is_security_error(error) && error.kind() != io::ErrorKind::UnexpectedEof {
        return Failure::lost(ErrorKind::Tls, error);
    }
    let failure = io_failure(error);
    Failure {
        detail: format!("in the handshake: {}", failure.detail),
        ..failure
    }
}

/// Classifies an I/O error; the connection is lost.
pub(crate) fn io_failure(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        // Only TLS and Noise report invalid data. A server that refuses a client's certificate says
        // so after the client's side of the handshake is done.
        io::ErrorKind::InvalidData => ErrorKind::Tls,
        // There is no such Unix socket, or more connections wait there than it allows.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound | io::ErrorKind::WouldBlock => {
            ErrorKind::Refused
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        io::ErrorKind::UnexpectedEof => ErrorKind::Eof,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        _ => ErrorKind::Other,
    };
    Failure::lost(kind, error)
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        io_failure(&error)
    }
}
