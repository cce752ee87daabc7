//! Bound sockets: the caller of a server binds, so that tests can use port 0.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    os::fd::AsFd,
};

use netping_protocol::scheme::port;
use socket2::{Domain, SockRef, Socket, Type};

use crate::{
    args::{CommonArgs, MetricsAddress},
    error::StartError,
};

/// Size of a UDP socket's buffers unless flags set it, in bytes.
const UDP_BUFFER: usize = 2 << 20;

/// The bound sockets of a server.
#[derive(Debug)]
pub struct Listening<L = TcpListener> {
    /// Socket for requests.
    pub service: L,
    /// More sockets at the same address, for a server that reads several.
    pub others: Vec<L>,
    /// Listener for metrics, if any.
    pub metrics: Option<TcpListener>,
    /// Lines for standard output, printed once all flags have proved right.
    pub(crate) announcement: Option<String>,
}

/// A kind of socket that receives requests.
pub trait Bind: AsFd + From<Socket> {
    /// Stream or datagram.
    const TYPE: Type;

    /// Returns the local address.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn address(&self) -> io::Result<SocketAddr> {
        let address = SockRef::from(self).local_addr()?;
        Ok(address.as_socket().ok_or(io::ErrorKind::Unsupported)?)
    }
}

impl Bind for TcpListener {
    const TYPE: Type = Type::STREAM;
}

impl Bind for UdpSocket {
    const TYPE: Type = Type::DGRAM;
}

impl<L: Bind> Listening<L> {
    /// Binds the sockets that `args` ask for, `sockets` of them for requests.
    ///
    /// # Errors
    /// Fails with [`StartError::Bind`]. If only the default address of the metrics is taken, it
    /// warns and goes on without metrics.
    pub fn bind(args: &CommonArgs, default_port: u16, sockets: usize) -> Result<Self, StartError> {
        let address = args
            .listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)));
        let refused = |source| StartError::Bind { address, source };
        let service: L = bind(address, args, args.reuse_port).map_err(refused)?;
        let mut others = Vec::new();
        if sockets > 1 {
            // Bound without the option first, so that no other server has the port.
            SockRef::from(&service).set_reuse_port(true)?;
            let address = service.address()?;
            for _ in 1..sockets {
                others.push(bind(address, args, true).map_err(refused)?);
            }
        }
        let metrics = match args.metrics {
            Some(MetricsAddress::Off) => None,
            Some(MetricsAddress::At(address)) => {
                let refused = |source| StartError::Bind { address, source };
                Some(TcpListener::bind(address).map_err(refused)?)
            }
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

fn bind<L: Bind>(address: SocketAddr, args: &CommonArgs, reuse_port: bool) -> io::Result<L> {
    let socket = Socket::new(Domain::for_address(address), L::TYPE, None)?;
    // On UDP the option would let two servers share a port unnoticed.
    socket.set_reuse_address(L::TYPE == Type::STREAM)?;
    socket.set_reuse_port(reuse_port)?;
    // A UDP socket's buffers do not grow as TCP's do, and the kernel's hold no more than 0.2 MB, less
    // than a burst of a bulk stream.
    let size = (L::TYPE == Type::DGRAM).then_some(UDP_BUFFER);
    // Accepted connections inherit the sizes. They determine the window scale, so they are set
    // before `listen`.
    args.size_buffers(&socket, size)?;
    socket.bind(&address.into())?;
    if L::TYPE == Type::STREAM {
        socket.listen(args.backlog)?;
    }
    Ok(socket.into())
}
