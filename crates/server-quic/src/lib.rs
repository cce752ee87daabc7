//! Echo over QUIC: ALPN `netping/1`, frames on every bidirectional stream of a connection.

mod connection;
mod reset;

use std::{io, sync::Arc};

use clap::Args;
use netping_protocol::{
    codec::Limits,
    frame,
    scheme::{Scheme, port},
    tls::{self, Identity},
    units::{bytes_in, number_in},
};
use netping_serving::{
    Chassis, Listening, Profile, Result, ServeError,
    args::{CommonArgs, RuntimeArgs, ServerArgs, TlsArgs},
    run_on_runtimes,
    service::Service,
};
use quinn::{
    Endpoint, IdleTimeout, Incoming, ServerConfig, TokioRuntime, TransportConfig, VarInt,
    crypto::rustls::QuicServerConfig,
};
use tokio::sync::mpsc;

/// Flags of this server.
#[derive(Debug, Clone, Args)]
pub struct QuicArgs {
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    tls: TlsArgs,
    /// Longest frame accepted and longest reply given, in bytes
    #[arg(long, default_value_t = frame::DEFAULT_MAX, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    max_frame: usize,
    /// Maximum number of streams on a connection; quinn allocates all of them at each handshake, so
    /// a large number costs time
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = number_in::<u32>(1..))]
    max_streams: u32,
    /// Most that the incomplete requests of a connection hold, beyond one of the longest, in bytes; a connection that holds
    /// more is closed
    #[arg(long, default_value_t = 80 << 20, value_name = "BYTES", value_parser = bytes_in::<u64>(1 << 20..))]
    max_held: u64,
    /// Flow-control window of each stream, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = bytes_in::<u32>(1..))]
    stream_window: u32,
    /// Flow-control window of each connection, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = bytes_in::<u32>(1..))]
    connection_window: u32,
    /// Handshakes in progress on a socket (each runtime has one) above which a client must first
    /// prove its address, which costs it a round trip (QUIC Retry); 0: always
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = number_in::<usize>(..))]
    retry_above: usize,
    /// Follow a client that moves to another address; only with one runtime, which then has the only socket
    #[arg(long)]
    migration: bool,
}

/// This server.
pub const SERVICE: Service<QuicArgs> = Service {
    name: "netping-server-quic",
    about: "Echoes frames over QUIC, with a tokio task per stream",
    scheme: |_| Scheme::Quic,
    port: port::QUIC,
    // The kernel spreads clients over the sockets by their addresses.
    sockets: |args| args.runtime.runtime_count(),
    serve,
};

fn serve(mut listening: Listening, args: &ServerArgs<QuicArgs>) -> Result<()> {
    let ServerArgs { common, own } = args;
    let identity = own.tls.identity()?.ok_or(ServeError::Flags(
        "QUIC is always encrypted: give --tls-cert and --tls-key, or --tls-self-signed for a try",
    ))?;
    let options = reset::endpoint(&identity);
    let config = config(common, own, identity)?;
    // Streams end after the requests they have received, and then the connection closes.
    let profile = Profile {
        // The memory of a request doubles as it comes.
        most_held: own.max_held.saturating_add(2 * own.max_frame as u64),
        ..own.runtime.profile()
    };
    let chassis = Chassis::start(&mut listening, common, profile)?;
    let admission = Admission {
        chassis: Arc::clone(&chassis),
        limits: Limits {
            max_frame: own.max_frame,
            ..Limits::default()
        },
        retry_above: own.retry_above,
    };
    let (failed, mut failure) = mpsc::channel(1);
    let sockets = [listening.service].into_iter().chain(listening.others);
    let workers = sockets.map(|socket| {
        let (admission, config, failed) = (admission.clone(), config.clone(), failed.clone());
        let options = options.clone();
        async move {
            let runtime = Arc::new(TokioRuntime);
            match Endpoint::new(options, Some(config), socket.into(), runtime) {
                Ok(endpoint) => admission.run(&endpoint).await,
                Err(error) => {
                    // The channel holds one error, and the first one is enough.
                    let _ = failed.try_send(error);
                    admission.chassis.shutdown.trigger();
                }
            }
        }
    });
    run_on_runtimes(&own.runtime, workers, async {
        chassis.shutdown.triggered().await;
        chassis.drain().await;
        failure.try_recv().map_or(Ok(()), Err)
    })
}

fn config(common: &CommonArgs, args: &QuicArgs, identity: Identity) -> Result<ServerConfig> {
    let client_ca = args.tls.tls_client_ca.as_deref();
    let tls = tls::server(identity, client_ca, Scheme::Quic.alpn())?;
    let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let idle_timeout = Some(common.idle_timeout).filter(|timeout| !timeout.is_zero());
    let idle_timeout = idle_timeout
        .map(IdleTimeout::try_from)
        .transpose()
        .map_err(|_| ServeError::Flags("--idle-timeout is longer than QUIC can express"))?;
    let mut transport = TransportConfig::default();
    // quinn leaves a connection's window unlimited: a peer could fill the memory.
    transport
        .receive_window(args.connection_window.into())
        .stream_receive_window(args.stream_window.into())
        .send_window(args.connection_window.into())
        .max_concurrent_bidi_streams(args.max_streams.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(idle_timeout);
    if args.migration && args.runtime.runtime_count() > 1 {
        // A client that moved would reach another runtime's socket, which does not know it.
        return Err(ServeError::Flags(
            "--migration needs a single socket: give --workers 1 or --runtime multi-thread",
        ));
    }
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    // Whoever sees a connection's packets could have many times their bytes sent to a new address.
    config
        .transport_config(Arc::new(transport))
        .migration(args.migration);
    Ok(config)
}

/// Admits the clients of one socket.
#[derive(Debug, Clone)]
struct Admission {
    chassis: Arc<Chassis>,
    limits: Limits,
    retry_above: usize,
}

impl Admission {
    /// Accepts until the shutdown, and keeps the socket until its connections are gone.
    async fn run(&self, endpoint: &Endpoint) {
        // Each connection holds a clone until its handshake is done.
        let handshake = Arc::new(());
        let accepting = async {
            while let Some(incoming) = endpoint.accept().await {
                self.admit(incoming, &handshake);
            }
        };
        tokio::select! {
            () = accepting => {}
            () = self.chassis.shutdown.triggered() => endpoint.set_server_config(None),
        }
        endpoint.wait_idle().await;
    }

    fn admit(&self, incoming: Incoming, handshake: &Arc<()>) {
        let handshakes = Arc::strong_count(handshake) - 1;
        if !incoming.remote_address_validated() && handshakes >= self.retry_above {
            // It fails only for validated addresses.
            let _ = incoming.retry();
            return;
        }
        let Some(guard) = self.chassis.admit_task() else {
            incoming.refuse();
            return;
        };
        let (admission, handshake) = (self.clone(), Arc::clone(handshake));
        tokio::spawn(async move {
            let connection = tokio::select! {
                connection = incoming.into_future() => connection,
                // The reaper has counted it.
                () = guard.closed() => return,
                () = admission.chassis.shutdown.triggered() => return,
            };
            drop(handshake);
            match connection {
                Ok(connection) => {
                    guard.connection().set_ready();
                    let Admission {
                        limits, chassis, ..
                    } = admission;
                    connection::serve(connection, guard, limits, chassis).await;
                }
                Err(error) => {
                    tracing::debug!("handshake: {error}");
                    admission.chassis.shared().count("tls");
                }
            }
        });
    }
}
