//! What the transports over TCP share: opening the connection, and naming what went wrong.

use std::io;

use netping_report::ErrorKind;
use tokio::net::TcpStream;

use super::{Endpoint, Failure};

/// Connects to the first address that answers; requests leave at once.
pub(super) async fn tcp(endpoint: &Endpoint) -> Result<TcpStream, Failure> {
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for &address in &endpoint.addresses {
        match TcpStream::connect(address).await.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(io_failure(&last))
}

/// The failure that an I/O error means; the connection is lost.
pub(super) fn io_failure(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            ErrorKind::Reset
        }
        io::ErrorKind::UnexpectedEof => ErrorKind::Eof,
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        _ => ErrorKind::Other,
    };
    Failure::lost(kind, error)
}
