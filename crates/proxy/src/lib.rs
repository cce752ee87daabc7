//! A plain TCP relay with tokio, a task per connection: what any proxy before a server costs at least.

mod relay;
mod upstream;

use std::{io, num::NonZeroU16, pin::pin, sync::Arc, time::Duration};

use clap::Parser;
use humantime::parse_duration;
use netping_protocol::{
    scheme::{Scheme, port},
    secure::{Acceptor, Stream},
};
use netping_serving::{
    Accepts, Chassis, CommonArgs, Guard, Listening, Profile, RuntimeArgs, Service, Shutdown,
    StartError, serve_on_runtimes,
};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;

use crate::upstream::Upstream;

/// Relays TCP connections to an upstream, with a tokio task per connection
///
/// A relay does not know what it carries. It counts no requests, --first-byte-timeout does not apply (the upstream may
/// be the side that speaks first), and --work and --delay are refused.
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-proxy", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// How tasks get to cores.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// The upstream; a name is resolved once, and each connection tries its addresses in turn
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub to: String,
    /// How long each address of the upstream may take to accept a connection; 0s: as long as the kernel tries
    #[arg(long, default_value = "5s", value_parser = parse_duration, value_name = "TIME")]
    pub connect_timeout: Duration,
    /// What is read at once, and held for a slow reader, in each direction of a connection, in bytes
    #[arg(long, default_value_t = 16 << 10, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_BUFFER))]
    pub buffer: u32,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// The largest `--buffer`, in bytes.
const MAX_BUFFER: i64 = 16 << 20;

/// `HOST:PORT`, before the resolver is asked.
fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && !host.contains('/') && port.parse::<NonZeroU16>().is_ok() =>
        {
            Ok(text.to_owned())
        }
        _ => Err("an upstream is only HOST:PORT, such as 127.0.0.1:8004 or [::1]:8004".to_owned()),
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service {
    scheme: |_| Scheme::Tcp,
    port: port::PROXY,
    sockets: |_| 1,
    serve,
};

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the upstream does not resolve, or the system refuses a thread, a runtime or a socket.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let effort = &args.common.effort;
    if !effort.work.is_zero() || !effort.delay.is_zero() {
        return Err(StartError::Flags(
            "--work and --delay are for requests, and a relay sees none".to_owned(),
        ));
    }
    let upstream = Upstream::resolve(args)?;
    // No first bytes are due from a client: the upstream may speak first. No drain by EOF: an EOF in mid-stream, which
    // no peer has sent, would pass for a clean end of a message that is cut. Connections end by themselves, or by a
    // reset when the drain times out.
    let profile = Profile {
        first_bytes: 0,
        drain_by_eof: false,
        files_per_connection: 2,
    };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let relay = Arc::new(Relay {
        upstream,
        buffer: args.buffer as usize,
        chassis: chassis.clone(),
    });
    let worker = |mut accepts: Accepts| {
        let relay = Arc::clone(&relay);
        async move {
            while let Some(Ok(accepted)) = accepts.next().await {
                // Whatever is in the bytes is between the client and the upstream: there is no other kind here.
                let (Stream::Plain(client), guard) = accepted.into_parts() else {
                    continue;
                };
                let relay = Arc::clone(&relay);
                tokio::spawn(async move { relay.connection(guard, client).await });
            }
        }
    };
    serve_on_runtimes(
        listening.service,
        &chassis,
        &args.runtime,
        &Acceptor::Plain,
        shutdown,
        worker,
    )
}

/// What all connections share.
struct Relay {
    upstream: Upstream,
    /// Bytes held in each direction of a connection.
    buffer: usize,
    chassis: Chassis,
}

impl Relay {
    /// Relays one connection to its end, and counts what was wrong with it.
    async fn connection(&self, guard: Guard, mut client: TcpStream) {
        let mut closed = pin!(guard.closed());
        let connected = tokio::select! {
            biased;
            connected = self.upstream.connect() => connected,
            () = &mut closed => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        let ended = match connected {
            Ok(mut server) => {
                let ended = tokio::select! {
                    biased;
                    ended = relay::both_ways(&mut client, &mut server, self.buffer, guard.connection()) => ended,
                    () = closed => Err(io::ErrorKind::ConnectionAborted.into()),
                };
                if ended.is_err() {
                    reset_on_close(&server);
                }
                ended.map_err(|error| ("io", error))
            }
            Err(error) => Err((upstream::error_kind(&error), error)),
        };
        if let Err((kind, error)) = ended {
            reset_on_close(&client);
            // The warden has counted why, or the drain has said so.
            if error.kind() != io::ErrorKind::ConnectionAborted {
                tracing::debug!("connection: {error}");
                self.chassis.count_error(kind);
            }
        }
    }
}

/// Has the peer see a reset when `stream` is closed, so that it does not take a failure for a clean end.
fn reset_on_close(stream: &TcpStream) {
    // It fails only on a connection that is gone already.
    let _ = stream.set_zero_linger();
}
