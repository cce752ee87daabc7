//! `netping serve`: a server from the client's binary. The ladder starts its servers this way, so
//! that client and server are separate processes, as in real use.

use std::{ffi::OsString, process::ExitCode};

use clap::{Args, Subcommand};
use netping_system::{cores, signals};

/// Flags of `netping serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// End when the process that started this one ends.
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
    /// Cores to stay on.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub cores: Vec<usize>,
    #[command(subcommand)]
    pub server: ServerCommand,
}

/// The servers.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// TCP, an OS thread per connection
    #[command(disable_help_flag = true)]
    Threads(ServerFlags),
    /// TCP, tokio tasks
    #[command(disable_help_flag = true)]
    Tokio(ServerFlags),
    /// gRPC, tonic
    #[command(disable_help_flag = true)]
    Grpc(ServerFlags),
    /// QUIC, quinn
    #[command(disable_help_flag = true)]
    Quic(ServerFlags),
}

/// The flags of a server, which it reads itself.
#[derive(Debug, Args)]
pub struct ServerFlags {
    /// The server's flags; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    pub flags: Vec<OsString>,
}

/// Runs the server until it ends.
pub fn run(args: ServeArgs) -> ExitCode {
    if args.die_with_parent {
        signals::terminate_with_parent();
    }
    if !args.cores.is_empty() {
        cores::confine(&args.cores);
    }
    let flags =
        |name: &str, flags: ServerFlags| std::iter::once(OsString::from(name)).chain(flags.flags);
    match args.server {
        ServerCommand::Threads(given) => netping_serving::service::run(
            &netping_server_threads::SERVICE,
            flags("netping-server-threads", given),
        ),
        ServerCommand::Tokio(given) => netping_serving::service::run(
            &netping_server_tokio::SERVICE,
            flags("netping-server-tokio", given),
        ),
        ServerCommand::Grpc(given) => netping_serving::service::run(
            &netping_server_grpc::SERVICE,
            flags("netping-server-grpc", given),
        ),
        ServerCommand::Quic(given) => netping_serving::service::run(
            &netping_server_quic::SERVICE,
            flags("netping-server-quic", given),
        ),
    }
}
