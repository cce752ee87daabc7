//! `netping serve`: a server from the client's binary. The ladder climbs servers started this way, so that client and
//! server are processes of their own, as they are in earnest.

use std::{ffi::OsString, process::ExitCode};

use nix::sys::{prctl, signal::Signal};

use crate::args::{ServeArgs, ServerKind};

/// Runs the server to its end.
pub fn run(args: ServeArgs) -> ExitCode {
    if args.die_with_parent {
        // Refused, the server would only outlive a ladder that was killed.
        let _ = prctl::set_pdeathsig(Signal::SIGTERM);
    }
    let flags = |name: &str| std::iter::once(OsString::from(name)).chain(args.flags);
    match args.server {
        ServerKind::Threads => netping_serving::run(&netping_server_threads::SERVICE, flags("netping-server-threads")),
        ServerKind::Tokio => netping_serving::run(&netping_server_tokio::SERVICE, flags("netping-server-tokio")),
        ServerKind::Grpc => netping_serving::run(&netping_server_grpc::SERVICE, flags("netping-server-grpc")),
    }
}
