//! `netping serve`: a server from the client's binary. The ladder starts its servers this way, so
//! that client and server are separate processes, as in real use.

use std::{ffi::OsString, process::ExitCode};

use netping_system::{cores, signals};

use crate::args::{ServeArgs, ServerCommand, ServerFlags};

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
