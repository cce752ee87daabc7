//! Bound sockets: the caller of a server binds, so that tests can use port 0.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use netping_protocol::target::port;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

use crate::options::{CommonArgs, MetricsAddress};

/// What a server listens on.
#[derive(Debug)]
pub struct Listening {
    /// Where requests come in.
    pub service: TcpListener,
    /// Where metrics are served, if at all.
    pub metrics: Option<TcpListener>,
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket could not be bound.
    #[error("cannot listen on {address}: {source}{}", advice(source))]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// Flags that do not go together.
    #[error("{0}")]
    Flags(String),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another process has that port: choose one with --listen (or --metrics)",
        io::ErrorKind::AddrNotAvailable => "; this host has no such address: use one of its own, or 0.0.0.0",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges: choose a higher one with --listen",
        _ => "",
    }
}

impl Listening {
    /// Binds what `args` ask for.
    ///
    /// # Errors
    /// [`StartError::Bind`]. Metrics at the default address are given up with a warning, not an error.
    pub fn bind(args: &CommonArgs, default_port: u16) -> Result<Self, StartError> {
        let address = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)));
        let service = bind(address, args).map_err(|source| StartError::Bind { address, source })?;
        let metrics = match args.metrics {
            Some(MetricsAddress::Off) => None,
            Some(MetricsAddress::At(address)) => {
                Some(TcpListener::bind(address).map_err(|source| StartError::Bind { address, source })?)
            }
            None => default_metrics(service.local_addr()?),
        };
        Ok(Self { service, metrics })
    }
}

/// The metrics' listener at the default place: the same address, [`port::METRICS_OFFSET`] higher.
fn default_metrics(service: SocketAddr) -> Option<TcpListener> {
    let Some(port) = service.port().checked_add(port::METRICS_OFFSET) else {
        tracing::warn!("no metrics: port {} + {} is no port; give --metrics", service.port(), port::METRICS_OFFSET);
        return None;
    };
    let address = SocketAddr::new(service.ip(), port);
    TcpListener::bind(address)
        .inspect_err(|error| tracing::warn!("no metrics: cannot listen on {address}: {error}; give --metrics"))
        .ok()
}

fn bind(address: SocketAddr, args: &CommonArgs) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(args.reuse_port)?;
    // Accepted connections inherit the sizes; they count for the window scale, so they are set before `listen`.
    if let Some(bytes) = args.recv_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(bytes) = args.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind(&address.into())?;
    socket.listen(args.backlog)?;
    Ok(socket.into())
}

/// Raises the limit on open files to the hard limit, and returns it.
pub(crate) fn raise_open_files() -> u64 {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() => hard,
        Ok((soft, _)) => soft,
        Err(_) => 1024,
    }
}
