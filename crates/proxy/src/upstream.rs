//! The server that connections are relayed to.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use netping_serving::args::{CommonArgs, ServerArgs};
use tokio::{
    net::{TcpSocket, TcpStream},
    time,
};

use crate::ProxyArgs;

/// Resolves the upstream's name.
///
/// # Errors
/// Fails if the name has no address.
pub(crate) fn resolve(to: &str) -> io::Result<Vec<SocketAddr>> {
    let addresses = to.to_socket_addrs().map_err(|error| {
        io::Error::new(error.kind(), format!("--to {to} does not resolve: {error}"))
    })?;
    Ok(addresses.collect())
}

/// Connects to the first address that accepts.
///
/// # Errors
/// Returns the error of the last address.
pub(crate) async fn connect(
    addresses: &[SocketAddr],
    args: &ServerArgs<ProxyArgs>,
) -> io::Result<TcpStream> {
    let limit = match args.own.connect_timeout {
        Duration::ZERO => Duration::MAX,
        limit => limit,
    };
    let mut last: io::Error = io::ErrorKind::AddrNotAvailable.into();
    for &address in addresses {
        let connected = time::timeout(limit, connect_to(address, &args.common)).await;
        match connected.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                tracing::debug!("upstream {address}: {error}");
                last = error;
            }
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr, args: &CommonArgs) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The same as on the client's side, where the listener passes them on.
    args.size_buffers(&socket, None)?;
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// Returns the kind under which a failure to connect is counted.
pub(crate) fn error_kind(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "upstream_refused",
        io::ErrorKind::TimedOut => "upstream_timeout",
        _ => "upstream",
    }
}
