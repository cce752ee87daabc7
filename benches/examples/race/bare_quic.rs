//! A pair on nothing but quinn, with windows without limits: what bulk over QUIC can be here.

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
};

use bytes::Bytes;
use netping_benches::processes::time_of_day;
use netping_protocol::tls::{self, ClientOptions, Identity};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use socket2::SockRef;
use tokio::runtime::Builder;

/// Bytes that the client asks for.
const SIZE: u64 = 2 << 30;

/// Size of each write, and of a socket's buffers, in bytes: those of quinn's own perf program.
const WRITE: usize = 1 << 20;
const BUFFER: usize = 2 << 20;

const ALPN: &[&[u8]] = &[b"bare"];

/// Answers a number on a stream with as many bytes, on one thread.
pub fn server(address: SocketAddr) {
    run(async {
        let tls = tls::server(Identity::self_signed().expect("a certificate"), None, ALPN);
        let tls = QuicServerConfig::try_from(tls.expect("TLS")).expect("TLS 1.3");
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport());
        let endpoint = endpoint(address, Some(config));
        // Whoever waits for a server asks TCP.
        let _ready = TcpListener::bind(address).expect("a free address");
        while let Some(incoming) = endpoint.accept().await {
            if let Ok(connection) = incoming.await {
                tokio::spawn(serve(connection));
            }
        }
    });
}

async fn serve(connection: Connection) {
    let block = Bytes::from(vec![b'x'; WRITE]);
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let mut size = [0; 8];
        if recv.read_exact(&mut size).await.is_err() {
            return;
        }
        let mut left = u64::from_be_bytes(size) as usize;
        while left > 0 {
            let length = left.min(block.len());
            if send.write_chunk(block.slice(..length)).await.is_err() {
                return;
            }
            left -= length;
        }
        let _ = send.finish();
    }
}

/// Receives 2 GiB on one thread and prints the rate, in GiB/s.
pub fn client(address: SocketAddr) {
    run(async {
        let insecure = ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        };
        let tls = tls::client(&insecure, ALPN).expect("TLS");
        let tls = QuicClientConfig::try_from(Arc::new(tls)).expect("TLS 1.3");
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(transport());
        let endpoint = endpoint(SocketAddr::from(([127, 0, 0, 1], 0)), None);
        let connecting = endpoint.connect_with(config, address, "localhost");
        let connection = connecting.expect("a name").await.expect("a connection");
        let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
        let begun = time_of_day();
        send.write_all(&SIZE.to_be_bytes()).await.expect("a write");
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await.expect("a read") {
            received += chunk.bytes.len() as u64;
        }
        assert_eq!(received, SIZE);
        let seconds = time_of_day() - begun;
        println!("{}", SIZE as f64 / f64::from(1 << 30) / seconds);
    });
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::MAX)
        .receive_window(VarInt::MAX)
        .send_window(u64::MAX);
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, config: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind(address).expect("a free address");
    SockRef::from(&socket)
        .set_recv_buffer_size(BUFFER)
        .expect("a buffer");
    SockRef::from(&socket)
        .set_send_buffer_size(BUFFER)
        .expect("a buffer");
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), config, socket, runtime).expect("a socket")
}
