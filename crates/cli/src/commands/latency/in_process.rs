//! Servers in the client's own process: on the thread of its worker, and on one of their own.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    sync::Arc,
    thread,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use netping_client::plan::{Companion, OwnServer};
use netping_protocol::{scheme::Scheme, target::Target};
use netping_serving::{
    Listening, Result, TcpServer, args::ServerArgs, service::Service, shutdown::Shutdown,
};
use url::Host;

use crate::error::tell;

/// An echo between a client and a server in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Echo {
    /// Lines over TCP, to the server that runs on tokio.
    Tcp,
    /// A unary call of gRPC.
    Grpc,
}

/// A server in this process.
#[derive(Debug)]
pub struct Own {
    /// Its URL, on the loopback interface.
    pub target: Target,
    /// The echo, and the threads of client and server.
    pub label: &'static str,
    /// Its thread.
    pub server: OwnServer,
}

type MakeServer<A> = fn(Listening, &ServerArgs<A>) -> Result<TcpServer>;

impl Echo {
    /// Returns a server on the client's thread, and one on a thread of its own, which this starts and
    /// `shutdown` ends.
    pub fn servers(self, shutdown: &Shutdown) -> anyhow::Result<[Own; 2]> {
        match self {
            Self::Tcp => servers(
                ["tcp, one thread", "tcp, two threads"],
                &netping_server_tokio::SERVICE,
                netping_server_tokio::server,
                shutdown,
            ),
            Self::Grpc => servers(
                ["grpc, one thread", "grpc, two threads"],
                &netping_server_grpc::SERVICE,
                netping_server_grpc::server,
                shutdown,
            ),
        }
    }
}

fn servers<A: Args + Send + Sync + 'static>(
    labels: [&'static str; 2],
    service: &Service<A>,
    make: MakeServer<A>,
    shutdown: &Shutdown,
) -> anyhow::Result<[Own; 2]> {
    // One runtime; everything else is as in a server without flags.
    let args = Arc::new(service.parse([service.name, "--workers", "1"])?);
    let scheme = (service.scheme)(&args.own);
    let (here, apart) = (listen()?, listen()?);
    let own = Own {
        target: target(scheme, &here)?,
        label: labels[0],
        server: OwnServer::OnWorker(companion(make, Arc::clone(&args), here)),
    };
    let other = Own {
        target: target(scheme, &apart)?,
        label: labels[1],
        server: OwnServer::OnThread,
    };
    let mut listening = Listening::on(apart);
    listening.shutdown = shutdown.clone();
    start(service, args, listening)?;
    Ok([own, other])
}

/// Returns the server that each step starts anew on its worker's runtime. The listener stays, and with
/// it the URL.
fn companion<A: Args + Send + Sync + 'static>(
    make: MakeServer<A>,
    args: Arc<ServerArgs<A>>,
    listener: TcpListener,
) -> Companion {
    Companion::new(move || {
        let listening = Listening::on(listener.try_clone()?);
        let server = make(listening, &args).map_err(io::Error::other)?;
        Ok(Box::pin(async move {
            if let Err(error) = server.serve_here().await {
                tell(&format!("error: the server ended: {error}"));
            }
        }))
    })
}

/// Starts a server on a thread of its own.
fn start<A: Args + Send + Sync + 'static>(
    service: &Service<A>,
    args: Arc<ServerArgs<A>>,
    listening: Listening,
) -> anyhow::Result<()> {
    let serve = service.serve;
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            if let Err(error) = serve(listening, &args) {
                tell(&format!("error: the server ended: {error}"));
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

fn listen() -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on 127.0.0.1")
}

fn target(scheme: Scheme, listener: &TcpListener) -> anyhow::Result<Target> {
    Ok(Target {
        scheme,
        host: Host::Ipv4(Ipv4Addr::LOCALHOST),
        port: listener.local_addr()?.port(),
        path: String::new(),
    })
}
