//! Frames over QUIC: callers share connections, each on a stream of its own.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{Arc, OnceLock},
    time::Duration,
};

use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{payload::Exchange, secure::Connector, tls::Negotiated};
use quinn::{
    ClientConfig, ConnectionError, Endpoint as QuicEndpoint, EndpointConfig, RecvStream,
    SendStream, TokioRuntime, TransportConfig, VarInt, crypto::rustls::QuicClientConfig,
};
use socket2::SockRef;
use tokio::{
    io::{Join, join},
    time,
};

use super::{
    Carried, Connection, Failure, Milestones, QuicPaths, Result, ServerEndpoint, Transport,
    connect,
    framed::{Framed, Framing},
};

/// Flow-control windows of a stream and of the connection, in bytes: large enough never to hold a
/// reply back.
pub(crate) const WINDOWS: [u32; 2] = [4 << 20, 64 << 20];

/// Size of a socket's buffers, in bytes, which the kernel may cap. Those of UDP do not grow as TCP's
/// do, and a burst of a bulk stream is more than the kernel's default.
const SOCKET_BUFFER: usize = 2 << 20;

/// A connection without any sign of life is lost after this time, in milliseconds: UDP itself does
/// not report a server that is gone.
const IDLE_MS: u32 = 10_000;

/// Time that one of several addresses may keep the others waiting.
const EACH_ADDRESS: Duration = Duration::from_secs(1);

/// Time for a connection to send the reason of its end.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Opens QUIC connections, all on one socket. A worker clones a transport that has opened none yet, several times: the
/// server's kernel spreads connections by their sockets, as it does with TCP.
#[derive(Debug, Clone)]
pub struct Quic {
    pub(super) endpoint: ServerEndpoint,
    /// For IPv4 and IPv6. Each is made with the first connection: making one costs more than a
    /// handshake, and applications keep theirs.
    sockets: [OnceLock<QuicEndpoint>; 2],
    paths: QuicPaths,
    /// The configuration and the server's name; `None` if the TLS configuration does not fit QUIC.
    config: Option<(ClientConfig, String)>,
}

impl Quic {
    /// Returns a transport of frames on streams.
    pub fn new(endpoint: ServerEndpoint) -> Self {
        Self::with(endpoint, WINDOWS, 0)
    }

    /// Returns a transport with these flow-control windows for each stream and for the connection,
    /// in bytes, on which the server may open `server_streams` streams of its own.
    pub(crate) fn with(
        endpoint: ServerEndpoint,
        [stream, connection]: [u32; 2],
        server_streams: u32,
    ) -> Self {
        let mut transport = TransportConfig::default();
        transport
            .receive_window(connection.into())
            .stream_receive_window(stream.into())
            .send_window(WINDOWS[1].into())
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(server_streams))
            .datagram_receive_buffer_size(None)
            // For a server that is gone; requests have a time limit of their own.
            .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
            .keep_alive_interval(Some(Duration::from_millis(u64::from(IDLE_MS) / 3)));
        let mut config = None;
        if let Connector::Tls(tls, name) = &endpoint.destination.connector
            && let Ok(tls) = QuicClientConfig::try_from(Arc::clone(tls))
        {
            let mut client = ClientConfig::new(Arc::new(tls));
            client.transport_config(Arc::new(transport));
            config = Some((client, name.to_str().into_owned()));
        }
        Self {
            endpoint,
            sockets: Default::default(),
            paths: QuicPaths::default(),
            config,
        }
    }

    /// Returns the socket from which `address` can be reached.
    fn socket(&self, address: SocketAddr) -> io::Result<QuicEndpoint> {
        let (socket, any) = match address {
            SocketAddr::V4(_) => (&self.sockets[0], IpAddr::from(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (&self.sockets[1], Ipv6Addr::UNSPECIFIED.into()),
        };
        if let Some(socket) = socket.get() {
            return Ok(socket.clone());
        }
        let new = UdpSocket::bind((any, 0))?;
        SockRef::from(&new).set_recv_buffer_size(SOCKET_BUFFER)?;
        SockRef::from(&new).set_send_buffer_size(SOCKET_BUFFER)?;
        let runtime = Arc::new(TokioRuntime);
        let new = QuicEndpoint::new(EndpointConfig::default(), None, new, runtime)?;
        Ok(socket.get_or_init(|| new).clone())
    }

    async fn connect_to(&self, address: SocketAddr, limit: Duration) -> Result<quinn::Connection> {
        let Some((config, name)) = &self.config else {
            let detail = "the TLS configuration does not fit QUIC";
            return Err(Failure::lost(ErrorKind::Tls, detail));
        };
        let socket = self.socket(address)?;
        let connecting = socket.connect_with(config.clone(), address, name);
        let connecting = connecting.map_err(|error| Failure::lost(ErrorKind::Other, error))?;
        let connected = time::timeout(limit, connecting).await;
        let connected = connected.unwrap_or(Err(ConnectionError::TimedOut));
        connected.map_err(|error| {
            // Lets the server learn the reason even if this process ends soon; the request does not
            // wait for it.
            let last_words = async move { time::timeout(LAST_WORDS, socket.wait_idle()).await };
            tokio::task::spawn_local(last_words);
            failure(&error, true)
        })
    }
}

impl Transport for Quic {
    type Connection = QuicHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<QuicHandle> {
        let opening = async |address, is_last| {
            let limit = if is_last { Duration::MAX } else { EACH_ADDRESS };
            self.connect_to(address, limit).await
        };
        let phase = ConnectPhase::Handshake;
        let connected = connect::first_that_answers(&self.endpoint, milestones, phase, opening);
        let connection = connected.await?;
        milestones.negotiated = Some(Negotiated {
            protocol: "QUIC v1, TLS 1.3".to_owned(),
            cipher_suite: "unknown".to_owned(),
            key_exchange: "unknown".to_owned(),
            resumed: None,
        });
        let connection = Arc::new(connection);
        self.paths.add(&connection);
        Ok(QuicHandle {
            connection,
            stream: None,
        })
    }

    fn quic_paths(&self) -> Option<&QuicPaths> {
        Some(&self.paths)
    }

    fn last_words(&self) -> impl Future<Output = ()> + use<> {
        let sockets: Vec<_> = self
            .sockets
            .iter()
            .filter_map(OnceLock::get)
            .cloned()
            .collect();
        async move {
            for socket in sockets {
                // The packets leave at once; the wait is for what may have to be sent again.
                let _ = time::timeout(LAST_WORDS, socket.wait_idle()).await;
            }
        }
    }
}

/// A caller's handle on a connection, with its stream once it has one.
#[derive(Debug)]
pub struct QuicHandle {
    pub(crate) connection: Arc<quinn::Connection>,
    stream: Option<Framed<Join<RecvStream, SendStream>>>,
}

impl Connection for QuicHandle {
    fn share(&self) -> Option<Self> {
        Some(Self {
            connection: Arc::clone(&self.connection),
            stream: None,
        })
    }

    async fn call(&mut self, exchange: &Exchange, carried: &mut Carried<'_>) -> Result<()> {
        let stream = if let Some(stream) = &mut self.stream {
            stream
        } else {
            let (send, recv) = self.connection.open_bi().await?;
            let framed = Framed::new(join(recv, send), Framing::Frames);
            self.stream.insert(framed)
        };
        let result = stream.request(exchange, carried).await;
        explained(result, &self.connection)
    }
}

/// Returns the result of an operation on a stream, or the reason of the connection's end, which
/// explains more.
pub(crate) fn explained<T>(result: Result<T>, connection: &quinn::Connection) -> Result<T> {
    result.map_err(|failure| connection.close_reason().map_or(failure, Failure::from))
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        failure(&error, false)
    }
}

/// Classifies the end of a connection.
fn failure(error: &ConnectionError, in_handshake: bool) -> Failure {
    let kind = match error {
        // TLS's alerts are among the transport's error codes: RFC 9001, section 4.8.
        ConnectionError::TransportError(reason) if is_crypto(reason.code) => ErrorKind::Tls,
        ConnectionError::ConnectionClosed(close) if is_crypto(close.error_code) => ErrorKind::Tls,
        ConnectionError::ConnectionClosed(_) if in_handshake => ErrorKind::Refused,
        ConnectionError::TimedOut if in_handshake => ErrorKind::ConnectTimeout,
        ConnectionError::TimedOut => ErrorKind::Timeout,
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
            ErrorKind::Goaway
        }
        ConnectionError::Reset => ErrorKind::Reset,
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => ErrorKind::Other,
        _ => ErrorKind::Protocol,
    };
    Failure::lost(kind, io::Error::other(error.clone()))
}

fn is_crypto(code: quinn::TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}
