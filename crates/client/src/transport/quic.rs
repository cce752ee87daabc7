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
    connect,
    connection::{Carried, Connection, Milestones, Transport},
    endpoint::Endpoint,
    failure::Failure,
    framed::{Framed, Framing},
};

/// Flow-control windows, in bytes: large enough never to hold a reply back.
pub(crate) const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Size of a socket's buffers, in bytes, which the kernel may cap. Those of UDP do not grow as TCP's
/// do, and a burst of a bulk stream is more than the kernel's default.
const SOCKET_BUFFER: usize = 2 << 20;

/// A connection without any sign of life is lost after this time, in milliseconds: UDP itself does
/// not report a server that is gone.
const IDLE_MS: u32 = 10_000;

/// Time that one of several addresses may keep the others waiting.
const EACH_ADDRESS: Duration = Duration::from_secs(1);

/// Time for a failed connection to send the reason.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Opens QUIC connections. Each worker has a socket of its own, so that the server's kernel can
/// spread connections as it does with TCP.
#[derive(Debug)]
pub struct Quic {
    endpoint: Endpoint,
    /// For IPv4 and IPv6. Each is made with the first connection: making one costs more than a
    /// handshake, and applications keep theirs.
    sockets: [OnceLock<QuicEndpoint>; 2],
    /// The configuration and the server's name; `None` if the TLS configuration does not fit QUIC.
    config: Option<(ClientConfig, String)>,
}

impl Quic {
    /// Returns a transport of frames on streams.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_windows(endpoint, STREAM_WINDOW, CONNECTION_WINDOW)
    }

    /// Returns a transport whose server may open so many streams of its own.
    pub(super) fn with_server_streams(endpoint: Endpoint, streams: u32) -> Self {
        Self::with(endpoint, STREAM_WINDOW, CONNECTION_WINDOW, streams)
    }

    /// Returns a transport with these flow-control windows for each stream and for the connection,
    /// in bytes.
    pub(crate) fn with_windows(endpoint: Endpoint, stream: u32, connection: u32) -> Self {
        Self::with(endpoint, stream, connection, 0)
    }

    fn with(endpoint: Endpoint, stream: u32, connection: u32, server_streams: u32) -> Self {
        let config = match &endpoint.connector {
            Connector::Tls(tls, name) => {
                QuicClientConfig::try_from(Arc::clone(tls)).ok().map(|tls| {
                    let mut transport = TransportConfig::default();
                    transport
                        .receive_window(connection.into())
                        .stream_receive_window(stream.into())
                        .send_window(CONNECTION_WINDOW.into())
                        .max_concurrent_bidi_streams(VarInt::from_u32(0))
                        .max_concurrent_uni_streams(VarInt::from_u32(server_streams))
                        .datagram_receive_buffer_size(None)
                        // For a server that is gone; requests have a time limit of their own.
                        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
                        .keep_alive_interval(Some(Duration::from_millis(u64::from(IDLE_MS) / 3)));
                    let mut config = ClientConfig::new(Arc::new(tls));
                    config.transport_config(Arc::new(transport));
                    (config, name.to_str().into_owned())
                })
            }
            Connector::Plain | Connector::Psk(_) => None,
        };
        Self {
            endpoint,
            sockets: Default::default(),
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

    async fn connect_to(
        &self,
        address: SocketAddr,
        config: &ClientConfig,
        name: &str,
        patience: Option<Duration>,
    ) -> Result<quinn::Connection, Failure> {
        let socket = self.socket(address)?;
        let connecting = socket
            .connect_with(config.clone(), address, name)
            .map_err(|error| Failure::lost(ErrorKind::Other, error))?;
        let connected = match patience {
            None => connecting.await,
            Some(patience) => time::timeout(patience, connecting)
                .await
                .unwrap_or(Err(ConnectionError::TimedOut)),
        };
        connected.map_err(|error| {
            // Lets the server learn the reason even if this process ends soon; the request does not
            // wait for it.
            tokio::task::spawn_local(
                async move { time::timeout(LAST_WORDS, socket.wait_idle()).await },
            );
            failure(&error, true)
        })
    }
}

/// A clone has sockets of its own.
impl Clone for Quic {
    fn clone(&self) -> Self {
        Self {
            endpoint: self.endpoint.clone(),
            sockets: Default::default(),
            config: self.config.clone(),
        }
    }
}

impl Transport for Quic {
    type Connection = QuicHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<QuicHandle, Failure> {
        let Some((config, name)) = &self.config else {
            let detail = "the TLS configuration does not fit QUIC";
            return Err(Failure::lost(ErrorKind::Tls, detail));
        };
        let mut last = connect::no_address().into();
        let addresses = connect::addresses(&self.endpoint, milestones).await?;
        let mut addresses = addresses.into_iter().peekable();
        while let Some(address) = addresses.next() {
            let patience = addresses.peek().map(|_| EACH_ADDRESS);
            match self.connect_to(address, config, name, patience).await {
                Ok(connection) => {
                    milestones.reached(ConnectPhase::Handshake);
                    let stream = None;
                    return Ok(QuicHandle { connection, stream });
                }
                Err(failure) => last = failure,
            }
            milestones.tried_in_vain();
        }
        Err(last)
    }
}

/// A caller's handle on a connection, with its stream once it has one.
#[derive(Debug)]
pub struct QuicHandle {
    connection: quinn::Connection,
    stream: Option<Framed<Join<RecvStream, SendStream>>>,
}

impl QuicHandle {
    /// Returns the connection, to open further streams on it.
    pub(crate) fn connection(&self) -> &quinn::Connection {
        &self.connection
    }
}

impl Connection for QuicHandle {
    fn share(&self) -> Option<Self> {
        Some(Self {
            connection: self.connection.clone(),
            stream: None,
        })
    }

    fn negotiated(&self) -> Option<Negotiated> {
        let unknown = || "unknown".to_owned();
        Some(Negotiated {
            protocol: "QUIC v1, TLS 1.3".to_owned(),
            cipher_suite: unknown(),
            key_exchange: unknown(),
            resumed: None,
        })
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        let stream = if let Some(stream) = &mut self.stream {
            stream
        } else {
            let (send, recv) = self.connection.open_bi().await?;
            let framed = Framed::new(join(recv, send), Framing::Frames);
            self.stream.insert(framed)
        };
        let result = stream.request(exchange).await;
        explained(result, &self.connection)
    }
}

/// Returns the result of an operation on a stream, or the reason of the connection's end, which
/// explains more.
pub(crate) fn explained<T>(
    result: Result<T, Failure>,
    connection: &quinn::Connection,
) -> Result<T, Failure> {
    match (result, connection.close_reason()) {
        (Err(_), Some(reason)) => Err(reason.into()),
        (result, _) => result,
    }
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
        ConnectionError::TransportError(_) | ConnectionError::VersionMismatch => {
            ErrorKind::Protocol
        }
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => ErrorKind::Other,
    };
    Failure::lost(kind, io::Error::other(error.clone()))
}

fn is_crypto(code: quinn::TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}
