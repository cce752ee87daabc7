//! Bound sockets: the caller of a server binds, so that tests can use port 0.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    os::fd::AsFd,
};

use netping_protocol::{psk::KeyError, scheme::port, tls::TlsError};
use socket2::{Domain, SockRef, Socket, Type};

use crate::options::{CommonArgs, MetricsAddress};

/// What a server listens on: a TCP listener unless its protocol has another kind of socket.
#[derive(Debug)]
pub struct Listening<L = TcpListener> {
    /// Where requests come in.
    pub service: L,
    /// More sockets at the same address, where a server reads several.
    pub others: Vec<L>,
    /// Where metrics are served, if at all.
    pub metrics: Option<TcpListener>,
    /// What to say on standard output once all that was asked for has proved right.
    pub(crate) announcement: Option<String>,
}

/// A socket on which requests come in.
pub trait Bind: AsFd + Sized {
    /// Datagrams or a stream.
    const TYPE: Type;
    /// Makes a bound socket ready.
    ///
    /// # Errors
    /// What the system says.
    fn ready(socket: Socket, args: &CommonArgs) -> io::Result<Self>;
    /// Where it is bound.
    ///
    /// # Errors
    /// What the system says.
    fn address(&self) -> io::Result<SocketAddr>;
}

impl Bind for TcpListener {
    const TYPE: Type = Type::STREAM;

    fn ready(socket: Socket, args: &CommonArgs) -> io::Result<Self> {
        socket.listen(args.backlog)?;
        Ok(socket.into())
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}

impl Bind for UdpSocket {
    const TYPE: Type = Type::DGRAM;

    fn ready(socket: Socket, _: &CommonArgs) -> io::Result<Self> {
        Ok(socket.into())
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
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
    /// Certificates or keys that are of no use.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A pre-shared key that is of no use.
    #[error(transparent)]
    Key(#[from] KeyError),
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

impl<L: Bind> Listening<L> {
    /// Binds what `args` ask for, with `sockets` sockets at the service's address.
    ///
    /// # Errors
    /// [`StartError::Bind`]. Metrics at the default address are given up with a warning, not an error.
    pub fn bind(args: &CommonArgs, default_port: u16, sockets: usize) -> Result<Self, StartError> {
        let address = args
            .listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)));
        let refused = |source| StartError::Bind { address, source };
        let service: L = bind(address, args, args.reuse_port).map_err(refused)?;
        let mut others = Vec::new();
        if sockets > 1 {
            // Bound alone: no other server has the port. From now on it is shared, with ourselves.
            SockRef::from(&service).set_reuse_port(true)?;
            let address = service.address()?;
            for _ in 1..sockets {
                others.push(bind(address, args, true).map_err(refused)?);
            }
        }
        let metrics = match args.metrics {
            Some(MetricsAddress::Off) => None,
            Some(MetricsAddress::At(address)) => Some(
                TcpListener::bind(address)
                    .map_err(|source| StartError::Bind { address, source })?,
            ),
            None => default_metrics(service.address()?),
        };
        Ok(Self {
            service,
            others,
            metrics,
            announcement: None,
        })
    }
}

/// The metrics' listener at the default place: the same address, [`port::METRICS_OFFSET`] higher.
fn default_metrics(service: SocketAddr) -> Option<TcpListener> {
    let Some(port) = service.port().checked_add(port::METRICS_OFFSET) else {
        tracing::warn!(
            "no metrics: port {} + {} is no port; give --metrics",
            service.port(),
            port::METRICS_OFFSET
        );
        return None;
    };
    let address = SocketAddr::new(service.ip(), port);
    TcpListener::bind(address)
        .inspect_err(|error| {
            tracing::warn!("no metrics: cannot listen on {address}: {error}; give --metrics")
        })
        .ok()
}

fn bind<L: Bind>(address: SocketAddr, args: &CommonArgs, reuse_port: bool) -> io::Result<L> {
    let socket = Socket::new(Domain::for_address(address), L::TYPE, None)?;
    // On UDP it would let two servers share a port unnoticed.
    socket.set_reuse_address(L::TYPE == Type::STREAM)?;
    socket.set_reuse_port(reuse_port)?;
    // Accepted connections inherit the sizes; they count for the window scale, so they are set before `listen`.
    if let Some(bytes) = args.recv_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(bytes) = args.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind(&address.into())?;
    L::ready(socket, args)
}
