//! Echo over TCP with tokio: a task per connection, lines and frames on one port.

use std::sync::Arc;

use clap::Args;
use netping_protocol::{
    codec::Codec,
    scheme::{Scheme, port},
};
use netping_serving::{
    Accepted, Chassis, Listening, Result, TcpServer,
    args::{RuntimeArgs, SecureArgs, ServerArgs, StreamArgs},
    each,
    echo::echo,
    service::Service,
};
use tokio::io::AsyncWriteExt;

/// Flags of this server.
#[derive(Debug, Clone, Args)]
pub struct TokioArgs {
    #[command(flatten)]
    stream: StreamArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    secure: SecureArgs,
}

/// This server.
pub const SERVICE: Service<TokioArgs> = Service {
    name: "netping-server-tokio",
    about: "Echoes lines and frames over TCP, with a tokio task per connection",
    scheme,
    port: port::TOKIO,
    sockets: |_| 1,
    serve: |listening, args| server(listening, args)?.serve(&args.own.runtime),
};

fn scheme(args: &TokioArgs) -> Scheme {
    match &args.secure {
        secure if secure.psk_file.is_some() => Scheme::TcpPsk,
        secure => secure.tls.scheme(Scheme::Tcp, Scheme::TcpTls),
    }
}

/// Returns the server, which then serves on runtimes of its own or on the current one.
///
/// # Errors
/// Fails if a certificate or key cannot be used, or the system refuses a thread.
pub fn server(mut listening: Listening, args: &ServerArgs<TokioArgs>) -> Result<TcpServer> {
    let ServerArgs { common, own } = args;
    let acceptor = own.secure.acceptor(Scheme::TcpTls.alpn())?;
    let says_goodbye = !acceptor.is_plain();
    let chassis = Chassis::start(&mut listening, common, own.runtime.profile())?;
    let limits = own.stream.limits();
    let serving = Arc::clone(&chassis);
    let serve = move |mut stream: Accepted| {
        let chassis = Arc::clone(&serving);
        async move {
            let connection = Arc::clone(stream.connection());
            echo(&mut stream, Codec::new(limits), &connection, &chassis).await;
            if says_goodbye {
                // Tells a TLS peer that nothing was cut off. It fails only if the peer is gone.
                let _ = stream.shutdown().await;
            }
        }
    };
    let worker = move |accepts| each(accepts, serve.clone());
    Ok(TcpServer::new(listening, chassis, acceptor, worker))
}
