//! Echo over TCP with tokio: a task per connection, lines and frames on one port.

use std::sync::Arc;

use clap::Parser;
use netping_protocol::{
    codec::Codec,
    scheme::{Scheme, port},
};
use netping_serving::{
    Accepts, Chassis, CommonArgs, Listening, Profile, RuntimeArgs, SecureArgs, Service, Shutdown,
    StartError, StreamArgs, echo, serve_on_runtimes,
};
use tokio::io::AsyncWriteExt;
use tokio_stream::StreamExt;

/// Echoes lines and frames over TCP, with a tokio task per connection
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-server-tokio", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Limits of lines and frames.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// How tasks get to cores.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// How connections are secured.
    #[command(flatten)]
    pub secure: SecureArgs,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service {
    scheme,
    port: port::TOKIO,
    sockets: |_| 1,
    serve,
};

fn scheme(args: &Args) -> Scheme {
    match &args.secure {
        secure if secure.psk_file.is_some() => Scheme::TcpPsk,
        secure if secure.tls.is_on() => Scheme::TcpTls,
        _ => Scheme::Tcp,
    }
}

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread, a runtime or a socket, or a key's file is of no use.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let acceptor = args.secure.acceptor(&[])?;
    let says_goodbye = !acceptor.is_plain();
    let profile = Profile {
        first_bytes: 1,
        drain_by_eof: true,
        files_per_connection: 1,
    };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let limits = args.stream.limits();
    serve_on_runtimes(
        listening.service,
        &chassis,
        &args.runtime,
        &acceptor,
        shutdown,
        |mut accepts: Accepts| {
            let chassis = chassis.clone();
            async move {
                while let Some(Ok(mut stream)) = accepts.next().await {
                    let chassis = chassis.clone();
                    let connection = Arc::clone(stream.connection());
                    tokio::spawn(async move {
                        echo(&mut stream, Codec::new(limits), &connection, &chassis).await;
                        if says_goodbye {
                            // A peer in TLS is to know that nothing was cut off; one that is gone does not care.
                            let _ = stream.shutdown().await;
                        }
                    });
                }
            }
        },
    )
}
