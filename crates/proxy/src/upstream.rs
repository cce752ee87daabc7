//! The server that connections are relayed to.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use netping_serving::args::CommonArgs;
use tokio::{
    net::{TcpSocket, TcpStream},
    time,
};

/// The upstream's addresses and the options of connections to it.
pub(crate) struct Upstream {
    addresses: Vec<SocketAddr>,
    connect_timeout: Duration,
    recv_buffer: Option<u32>,
    send_buffer: Option<u32>,
}

impl Upstream {
    /// Resolves the upstream's name.
    ///
    /// # Errors
    /// Fails if the name has no address.
    pub(crate) fn resolve(
        to: &str,
        connect_timeout: Duration,
        common: &CommonArgs,
    ) -> io::Result<Self> {
        let unresolved = |error: io::Error| {
            io::Error::new(error.kind(), format!("--to {to} does not resolve: {error}"))
        };
        let addresses: Vec<_> = to.to_socket_addrs().map_err(unresolved)?.collect();
        if addresses.is_empty() {
            let reason = format!("--to {to} has no address");
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Ok(Self {
            addresses,
            connect_timeout: if connect_timeout.is_zero() {
                Duration::MAX
            } else {
                connect_timeout
            },
            recv_buffer: common.recv_buffer.map(size),
            send_buffer: common.send_buffer.map(size),
        })
    }

    /// Connects to the first address that accepts.
    ///
    /// # Errors
    /// Returns the error of the last address.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let mut last: io::Error = io::ErrorKind::AddrNotAvailable.into();
        for &address in &self.addresses {
            let connected = time::timeout(self.connect_timeout, self.connect_to(address)).await;
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

    async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // The same as on the client's side, where the listener passes them on.
        if let Some(bytes) = self.recv_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        socket.set_nodelay(true)?;
        socket.connect(address).await
    }
}

/// Returns the kind under which a failure to connect is counted.
pub(crate) fn error_kind(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "upstream_refused",
        io::ErrorKind::TimedOut => "upstream_timeout",
        _ => "upstream",
    }
}
