//! Bound sockets: the caller of a server binds, so that tests can use port 0.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use netping_protocol::scheme::port;
use socket2::{Domain, Socket, Type};

use crate::{
    Result, ServeError,
    args::{CommonArgs, MetricsAddress},
    shutdown::Shutdown,
};

/// Size of a UDP socket's buffers unless flags set it, in bytes.
const UDP_BUFFER: usize = 2 << 20;

/// The bound sockets of a server.
#[derive(Debug)]
pub struct Listening {
    /// Socket for requests.
    pub service: Socket,
    /// More sockets at the same address, for a server that reads several.
    pub others: Vec<Socket>,
    /// Listener for metrics, if any.
    pub metrics: Option<TcpListener>,
    /// Switch that ends the server.
    pub shutdown: Shutdown,
    /// Lines for standard output, printed once all flags have proved right.
    pub(crate) announcement: Option<String>,
}

impl Listening {
    /// Binds the sockets that `args` ask for, `sockets` of this kind for requests.
    ///
    /// # Errors
    /// Fails with [`ServeError::Bind`]. If only the default address of the metrics is taken, it
    /// warns and goes on without metrics.
    pub fn bind(args: &CommonArgs, default_port: u16, kind: Type, sockets: usize) -> Result<Self> {
        let address = args
            .listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)));
        let refused = |source| ServeError::Bind { address, source };
        let service = bind(address, kind, args, args.reuse_port).map_err(refused)?;
        let bound = local_address(&service)?;
        let mut others = Vec::new();
        if sockets > 1 {
            // Bound without the option first, so that no other server has the port.
            service.set_reuse_port(true)?;
            for _ in 1..sockets {
                others.push(bind(bound, kind, args, true).map_err(refused)?);
            }
        }
        let metrics = match args.metrics {
            Some(MetricsAddress::Off) => None,
            Some(MetricsAddress::At(address)) => {
                let refused = |source| ServeError::Bind { address, source };
                Some(TcpListener::bind(address).map_err(refused)?)
            }
            None => default_metrics(bound),
        };
        Ok(Self {
            others,
            metrics,
            ..Self::on(service)
        })
    }

    /// Takes over a bound socket, for a server without metrics.
    pub fn on(service: impl Into<Socket>) -> Self {
        Self {
            service: service.into(),
            others: Vec::new(),
            metrics: None,
            shutdown: Shutdown::default(),
            announcement: None,
        }
    }

    /// Returns the address for requests.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn address(&self) -> io::Result<SocketAddr> {
        local_address(&self.service)
    }
}

fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?.as_socket();
    Ok(address.ok_or(io::ErrorKind::Unsupported)?)
}

/// Binds the metrics' listener at its default address, [`port::METRICS_OFFSET`] above the
/// service's.
fn default_metrics(service: SocketAddr) -> Option<TcpListener> {
    let (own, offset) = (service.port(), port::METRICS_OFFSET);
    let Some(port) = own.checked_add(offset) else {
        tracing::warn!("no metrics: {own} + {offset} is not a port; give --metrics");
        return None;
    };
    let address = SocketAddr::new(service.ip(), port);
    TcpListener::bind(address)
        .inspect_err(|error| {
            tracing::warn!("no metrics: cannot listen on {address}: {error}; give --metrics");
        })
        .ok()
}

fn bind(address: SocketAddr, kind: Type, args: &CommonArgs, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    // On UDP the option would let two servers share a port unnoticed.
    socket.set_reuse_address(kind == Type::STREAM)?;
    socket.set_reuse_port(shared)?;
    // A UDP socket's buffers do not grow as TCP's do, and the kernel's hold no more than 0.2 MB, less
    // than a burst of a bulk stream.
    let size = (kind == Type::DGRAM).then_some(UDP_BUFFER);
    // Accepted connections inherit the sizes. They determine the window scale, so they are set
    // before `listen`.
    args.size_buffers(&socket, size)?;
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(args.backlog)?;
    }
    Ok(socket)
}
