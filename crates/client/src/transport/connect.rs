//! Opening connections and classifying I/O errors, for all transports.

use std::{io, net::SocketAddr, path::Path};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::secure::is_security_error;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

use super::{
    Failure, Milestones, ServerEndpoint,
    socket::{Socket, Stream},
    stamped::Stamped,
};
use crate::resolve::resolve_aside;

/// Returns the name of a Unix socket; that of an abstract one begins with `@`.
pub(crate) fn socket_name(socket: &Path) -> String {
    socket.to_string_lossy().replace('\0', "@")
}

/// Connects to the Unix socket, if there is one; otherwise to the first address that answers, secures
/// the connection, and sets TCP_NODELAY. `buffers` is the size of the socket's buffers in bytes; `None`: the kernel's default.
pub(crate) async fn open(
    endpoint: &ServerEndpoint,
    buffers: Option<u32>,
    milestones: &mut Milestones<'_>,
) -> Result<Stream, Failure> {
    if let Some(socket) = &endpoint.destination.unix_socket {
        let stream = UnixStream::connect(socket).await.map_err(|error| {
            let place = format!("the Unix socket {}", socket_name(socket));
            io_failure(&error).at(&place)
        })?;
        milestones.reached(ConnectPhase::Tcp);
        return Ok(Stream::Unix(stream));
    }
    let opening = async |address, _| Ok(connect(address, buffers).await?);
    let stream = first_that_answers(endpoint, milestones, ConnectPhase::Tcp, opening).await?;
    if milestones.wants_port {
        milestones.ends.1 = stream.local_addr().ok().map(|own| own.port());
    }
    let socket = if milestones.wants_stamps {
        let stamped = Stamped::new(stream).map_err(|error| no_stamps(&error))?;
        milestones.stamps = Some(stamped.socket());
        Socket::Stamped(stamped)
    } else {
        Socket::Plain(stream)
    };
    let secured = endpoint.destination.connector.connect(socket).await;
    let secured = secured.map_err(|error| handshake_failure(&error))?;
    milestones.negotiated = secured.negotiated();
    if secured.is_secure() {
        milestones.reached(ConnectPhase::Handshake);
    }
    Ok(secured)
}

fn no_stamps(error: &io::Error) -> Failure {
    let detail = format!(
        "the kernel gives no time stamps of this connection ({error}): leave out --anatomy"
    );
    Failure::lost(ErrorKind::Other, detail)
}

/// Tries the endpoint's known addresses, or those that its name is resolved to again, until `connect`
/// succeeds with one, which ends the part `phase`. The last one is told so.
pub(super) async fn first_that_answers<T>(
    endpoint: &ServerEndpoint,
    milestones: &mut Milestones<'_>,
    phase: ConnectPhase,
    connect: impl AsyncFn(SocketAddr, bool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut addresses = endpoint.addresses.clone();
    if endpoint.destination.resolve_each {
        addresses = resolve_aside(&endpoint.destination.url).await?;
        milestones.reached(ConnectPhase::Resolve);
    }
    let mut last = Failure::lost(ErrorKind::Other, "the name has no address");
    for (left, address) in (0..addresses.len()).rev().zip(addresses) {
        match connect(address, left == 0).await {
            Ok(connection) => {
                milestones.reached(phase);
                milestones.ends.0 = Some(address);
                return Ok(connection);
            }
            Err(failure) => last = failure,
        }
        milestones.tried_in_vain();
    }
    Err(last)
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

/// Classifies the failure of a handshake: the sides did not agree, or the connection broke.
pub(super) fn handshake_failure(error: &io::Error) -> Failure {
    // A server that does not have the key, or is full, closes without a word.
    if is_security_error(error) && error.kind() != io::ErrorKind::UnexpectedEof {
        return Failure::lost(ErrorKind::Tls, error);
    }
    io_failure(error).at("in the handshake")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_a_connection_are_told_apart() {
        use io::ErrorKind::{
            BrokenPipe, ConnectionRefused, ConnectionReset, InvalidData, UnexpectedEof,
        };
        for (error, expected) in [
            (ConnectionRefused, ErrorKind::Refused),
            (ConnectionReset, ErrorKind::Reset),
            (BrokenPipe, ErrorKind::Reset),
            (UnexpectedEof, ErrorKind::Eof),
            (InvalidData, ErrorKind::Tls),
        ] {
            let failure = io_failure(&error.into());
            assert_eq!((failure.kind, failure.lost), (expected, true), "{error}");
        }
    }
}
