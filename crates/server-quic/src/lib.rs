//! Echo over QUIC: ALPN `netping/1`, frames on every bidirectional stream of a connection.

mod connection;

use std::{io, net::UdpSocket, sync::Arc};

use clap::Parser;
use netping_protocol::{
    codec::Limits,
    scheme::{Scheme, port},
};
use netping_serving::{
    Chassis, CommonArgs, Listening, Profile, RuntimeArgs, Service, Shutdown, StartError, TlsArgs,
    run_on_runtimes,
};
use quinn::{
    Endpoint, EndpointConfig, IdleTimeout, Incoming, ServerConfig, TokioRuntime, TransportConfig,
    VarInt, crypto::rustls::QuicServerConfig,
};
use tokio::sync::mpsc;

use crate::connection::Peer;

/// Echoes frames over QUIC, with a tokio task per stream
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-server-quic", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// How tasks get to cores.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// How connections are secured: QUIC always is.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// The longest frame accepted and the longest reply given, in bytes
    #[arg(long, default_value_t = netping_protocol::frame::DEFAULT_MAX, value_name = "BYTES")]
    pub max_frame: usize,
    /// Streams at once on one connection; quinn makes room for all of them with every handshake, so many cost time
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_streams: u32,
    /// Flow-control window of each stream, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub stream_window: u32,
    /// Flow-control window of each connection, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub connection_window: u32,
    /// Handshakes under way on a socket (each runtime has one) beyond which a client must first show that it has its
    /// address, at the price of a round trip (a QUIC Retry); 0: each must
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub retry_above: usize,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args, UdpSocket> = Service {
    scheme: |_| Scheme::Quic,
    port: port::QUIC,
    // The kernel spreads clients over them by their addresses.
    sockets: |args| args.runtime.runtime_count(),
    serve,
};

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread, a runtime or a socket, or there is no certificate.
pub fn serve(
    mut listening: Listening<UdpSocket>,
    args: &Args,
    shutdown: &Shutdown,
) -> Result<(), StartError> {
    let config = config(args)?;
    // Streams end their requests themselves, and then the connection closes.
    let profile = Profile {
        first_bytes: 1,
        drain_by_eof: true,
        files_per_connection: 1,
    };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let limits = Limits {
        max_frame: args.max_frame,
        ..Limits::default()
    };
    let mut sockets = [listening.service].into_iter().chain(listening.others);
    let (failed, mut failure) = mpsc::channel(1);
    let worker = || {
        let (socket, failed) = (sockets.next(), failed.clone());
        let (chassis, config, shutdown, retry_above) = (
            chassis.clone(),
            config.clone(),
            shutdown.clone(),
            args.retry_above,
        );
        async move {
            let listen = |socket| {
                Endpoint::new(
                    EndpointConfig::default(),
                    Some(config),
                    socket,
                    Arc::new(TokioRuntime),
                )
            };
            match socket.map(listen) {
                Some(Ok(endpoint)) => {
                    accept(&endpoint, &chassis, limits, retry_above, &shutdown).await
                }
                Some(Err(error)) => {
                    // There is room for one, and the first says enough.
                    let _ = failed.try_send(error);
                    shutdown.trigger();
                }
                // There is one for each worker.
                None => {}
            }
        }
    };
    let main = async {
        shutdown.triggered().await;
        chassis.drain().await;
        failure.try_recv().map_or(Ok(()), Err)
    };
    run_on_runtimes(&args.runtime, worker, main)
}

fn config(args: &Args) -> Result<ServerConfig, StartError> {
    let Some(tls) = args.tls.config(Scheme::Quic.alpn())? else {
        let reason = "QUIC is always encrypted: give --tls-cert and --tls-key, or --tls-self-signed for a quick try";
        return Err(StartError::Flags(reason.to_owned()));
    };
    let tls = QuicServerConfig::try_from(tls)
        .map_err(|error| StartError::System(io::Error::other(error)))?;
    let mut transport = TransportConfig::default();
    // quinn leaves a connection's window unlimited: a peer could fill the memory.
    transport
        .receive_window(args.connection_window.into())
        .stream_receive_window(args.stream_window.into())
        .send_window(args.connection_window.into())
        .max_concurrent_bidi_streams(args.max_streams.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(match args.common.idle_timeout {
            timeout if timeout.is_zero() => None,
            timeout => Some(IdleTimeout::try_from(timeout).map_err(|_| {
                StartError::Flags("--idle-timeout is longer than QUIC can say".to_owned())
            })?),
        });
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    // A client that moved would reach another runtime's socket, which does not know it.
    config
        .transport_config(Arc::new(transport))
        .migration(args.runtime.runtime_count() == 1);
    Ok(config)
}

/// Accepts on one socket until `shutdown`, and keeps the socket until its connections are gone.
async fn accept(
    endpoint: &Endpoint,
    chassis: &Chassis,
    limits: Limits,
    retry_above: usize,
    shutdown: &Shutdown,
) {
    // Each holds a clone until its handshake is done.
    let begun = Arc::new(());
    let accepting = async {
        while let Some(incoming) = endpoint.accept().await {
            admit(incoming, chassis, limits, retry_above, &begun, shutdown);
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown.triggered() => endpoint.set_server_config(None),
    }
    endpoint.wait_idle().await;
}

fn admit(
    incoming: Incoming,
    chassis: &Chassis,
    limits: Limits,
    retry_above: usize,
    begun: &Arc<()>,
    shutdown: &Shutdown,
) {
    if !incoming.remote_address_validated() && Arc::strong_count(begun) > retry_above {
        // It fails only for addresses that have been validated.
        let _ = incoming.retry();
        return;
    }
    let Some(guard) = chassis.admit_task() else {
        incoming.refuse();
        return;
    };
    let begun = Arc::clone(begun);
    let (chassis, shutdown) = (chassis.clone(), shutdown.clone());
    match incoming.accept() {
        Ok(connecting) => drop(tokio::spawn(async move {
            let connection = tokio::select! {
                connection = connecting => connection,
                // The warden has counted why.
                () = guard.closed() => return,
                () = shutdown.triggered() => return,
            };
            drop(begun);
            match connection {
                Ok(connection) => Peer::new(connection, guard, limits, chassis).serve().await,
                Err(error) => refused(&error, &chassis),
            }
        })),
        Err(error) => refused(&error, &chassis),
    }
}

fn refused(error: &quinn::ConnectionError, chassis: &Chassis) {
    tracing::debug!("handshake: {error}");
    chassis.count_error("tls");
}
