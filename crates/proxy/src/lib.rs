//! A plain TCP relay with tokio, a task per connection: the lower bound of what a proxy
//! costs.

mod relay;
mod upstream;

use std::{io, net::SocketAddr, num::NonZeroU16, sync::Arc, time::Duration};

use clap::Args;
use netping_protocol::{
    scheme::{Scheme, port},
    secure::{Acceptor, Stream},
    units::{bytes_in, time},
};
use netping_serving::{
    Accepted, Chassis, Drain, Guard, Listening, Profile, Result, ServeError, TcpServer,
    args::{RuntimeArgs, ServerArgs},
    each,
    service::Service,
};
use tokio::net::TcpStream;

/// Flags of the relay.
#[derive(Debug, Clone, Args)]
pub struct ProxyArgs {
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Upstream server; a name is resolved once, and each connection tries its addresses in turn
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    to: String,
    /// Time limit for connecting to each address of the upstream; 0s: the kernel's
    #[arg(long, default_value = "5s", value_parser = time, value_name = "TIME")]
    connect_timeout: Duration,
    /// Buffer of each direction of a connection, in bytes
    #[arg(long, default_value_t = 16 << 10, value_name = "BYTES", value_parser = bytes_in::<u32>(1..=MAX_BUFFER))]
    buffer: u32,
}

/// Largest `--buffer`, in bytes.
const MAX_BUFFER: u64 = 16 << 20;

/// Checks the form `HOST:PORT`, without asking the resolver.
fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && !host.contains('/') && port.parse::<NonZeroU16>().is_ok() =>
        {
            Ok(text.to_owned())
        }
        _ => Err("an upstream is HOST:PORT, such as 127.0.0.1:8004 or [::1]:8004".to_owned()),
    }
}

const ABOUT: &str = "Relays TCP connections to an upstream, with a tokio task per connection

A relay does not know what it carries. It counts no requests, --first-byte-timeout does not apply (the upstream may \
                     speak first), and --work and --delay are rejected.";

/// This server.
pub const SERVICE: Service<ProxyArgs> = Service {
    name: "netping-proxy",
    about: ABOUT,
    scheme: |_| Scheme::Tcp,
    port: port::PROXY,
    sockets: |_| 1,
    serve,
};

fn serve(mut listening: Listening, args: &ServerArgs<ProxyArgs>) -> Result<()> {
    let ServerArgs { common, own } = args;
    if !common.load.is_none() {
        let reason = "--work and --delay apply to requests, and a relay sees none";
        return Err(ServeError::Flags(reason));
    }
    let addresses = upstream::resolve(&own.to)?;
    // No drain by EOF: an EOF
    // that no peer has sent would pass for the clean end of a message that is cut. Connections end
    // by themselves, or by a reset when the drain times out.
    let profile = Profile {
        drain: Drain::ByPeers,
        files_per_connection: 2,
        ..own.runtime.profile()
    };
    let chassis = Chassis::start(&mut listening, common, profile)?;
    let relay = Arc::new(Relay {
        addresses,
        args: args.clone(),
        chassis: Arc::clone(&chassis),
    });
    let serve = move |accepted: Accepted| {
        let relay = Arc::clone(&relay);
        async move {
            // Encryption is between the client and the upstream: the relay itself is plain.
            if let (Stream::Plain(client), guard) = accepted.into_parts() {
                relay.connection(guard, client).await;
            }
        }
    };
    let worker = move |accepts| each(accepts, serve.clone());
    TcpServer::new(listening, chassis, Acceptor::Plain, worker).serve(&own.runtime)
}

/// The state that all connections share.
struct Relay {
    /// The upstream's addresses.
    addresses: Vec<SocketAddr>,
    args: ServerArgs<ProxyArgs>,
    chassis: Arc<Chassis>,
}

impl Relay {
    /// Relays one connection to its end and counts its error.
    async fn connection(&self, guard: Guard, mut client: TcpStream) {
        let connecting = upstream::connect(&self.addresses, &self.args);
        let ended = match unless_closed(&guard, connecting).await {
            Ok(mut server) => {
                let capacity = self.args.own.buffer as usize;
                let relaying =
                    relay::both_ways(&mut client, &mut server, capacity, guard.connection());
                let ended = unless_closed(&guard, relaying).await;
                if ended.is_err() {
                    reset_on_close(&server);
                }
                ended.map_err(|error| ("io", error))
            }
            Err(error) => Err((upstream::error_kind(&error), error)),
        };
        if let Err((kind, error)) = ended {
            reset_on_close(&client);
            // The reaper has counted it, or the drain has logged it.
            if error.kind() != io::ErrorKind::ConnectionAborted {
                tracing::debug!("connection: {error}");
                self.chassis.shared().count(kind);
            }
        }
    }
}

/// Waits for `work`, which fails if the connection must end before.
async fn unless_closed<T>(
    guard: &Guard,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = guard.closed() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Makes closing `stream` reset the connection, so that the peer does not take a failure for a
/// clean end.
fn reset_on_close(stream: &TcpStream) {
    // It fails only on a connection that is already gone.
    let _ = stream.set_zero_linger();
}
