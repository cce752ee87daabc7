//! `netping serve`: a server from the client's binary. The ladder starts its servers this way, so
//! that client and server are separate processes, as in real use.

use std::{
    ffi::OsString,
    iter,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use clap::{Args, Subcommand};
use netping_serving::service::{self, Service};
use netping_system::{cores, signals};

use crate::error::{Verdict, tell};

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
    /// Another program, in place of this one.
    #[command(hide = true, disable_help_flag = true)]
    Program(ServerFlags),
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
    match args.server {
        ServerCommand::Threads(own) => serve(&netping_server_threads::SERVICE, own),
        ServerCommand::Tokio(own) => serve(&netping_server_tokio::SERVICE, own),
        ServerCommand::Grpc(own) => serve(&netping_server_grpc::SERVICE, own),
        ServerCommand::Quic(own) => serve(&netping_server_quic::SERVICE, own),
        ServerCommand::Program(own) => become_program(&own.flags),
    }
}

/// Runs another program in this process, with its number, its CPUs and its end.
fn become_program(words: &[OsString]) -> ExitCode {
    let Some((program, flags)) = words.split_first() else {
        return ExitCode::from(2);
    };
    let error = Command::new(program).args(flags).exec();
    tell(&format!(
        "error: cannot start '{}': {error}",
        program.display()
    ));
    ExitCode::from(Verdict::Unmeasured.code())
}

fn serve<A: Args>(service: &Service<A>, own: ServerFlags) -> ExitCode {
    let name = iter::once(service.name.into());
    service::run(service, name.chain(own.flags))
}
