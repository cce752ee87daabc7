//! Echo over TCP with an OS thread per connection, in blocking calls: lines and frames on one port.

mod connection;

use std::{sync::Arc, thread};

use clap::Args;
use netping_protocol::{
    scheme::{Scheme, port},
    secure::Acceptor,
    units::bytes_in,
};
use netping_serving::{
    Chassis, Listening, Profile, Result, Wait,
    args::{ServerArgs, StreamArgs, TlsArgs},
    blocking,
    service::Service,
};
use rustls::ServerConnection;

use crate::connection::ConnectionThread;

/// Flags of this server.
#[derive(Debug, Clone, Args)]
pub struct ThreadsArgs {
    #[command(flatten)]
    stream: StreamArgs,
    /// Poll the sockets without sleeping: each connection's thread uses a full core
    #[arg(long)]
    busy_poll: bool,
    /// Stack size of a connection's thread, in bytes [default: 65536, with TLS 262144]
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<u64>(16384..))]
    stack_size: Option<u64>,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Stack size of a connection's thread, in bytes.
const STACK: u64 = 64 << 10;

/// Stack size of a connection's thread that also computes for TLS, in bytes.
const TLS_STACK: u64 = 256 << 10;

/// This server.
pub const SERVICE: Service<ThreadsArgs> = Service {
    name: "netping-server-threads",
    about: "Echoes lines and frames over TCP, with an OS thread per connection",
    scheme: |args| args.tls.scheme(Scheme::Tcp, Scheme::TcpTls),
    port: port::THREADS,
    sockets: |_| 1,
    serve,
};

fn serve(mut listening: Listening, args: &ServerArgs<ThreadsArgs>) -> Result<()> {
    let ServerArgs { common, own } = args;
    let tls = match own.tls.acceptor(Scheme::TcpTls.alpn())? {
        Acceptor::Tls(config) => Some(config),
        _ => None,
    };
    let chassis = Chassis::start(&mut listening, common, Profile::ECHO)?;
    let limits = own.stream.limits();
    let busy = own.busy_poll;
    let default_stack = if tls.is_some() { TLS_STACK } else { STACK };
    let stack = own.stack_size.unwrap_or(default_stack) as usize;
    let serve = |stream, connection| {
        let (own_chassis, tls) = (Arc::clone(&chassis), tls.clone());
        let thread = move || match tls.map(ServerConnection::new).transpose() {
            Ok(tls) => {
                let connection = Arc::new(connection);
                ConnectionThread {
                    stream,
                    tls,
                    write: Wait::new(Arc::clone(&connection)),
                    connection,
                    busy,
                    chassis: own_chassis,
                }
                .run(limits);
            }
            Err(error) => tracing::error!("no TLS: {error}"),
        };
        // `thread::spawn` would panic if the system has no thread left.
        if let Err(error) = thread::Builder::new().stack_size(stack).spawn(thread) {
            chassis.spawn_failed(&error);
        }
    };
    blocking::accept(&listening.service.into(), &chassis, serve)
}
