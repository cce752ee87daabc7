//! The `main` of every server.

use std::{ffi::OsString, io::IsTerminal, net::TcpListener, process::ExitCode};

use clap::Parser;
use netping_protocol::scheme::Scheme;

use crate::{
    listen::{Bind, Listening, StartError},
    options::CommonArgs,
    shutdown::Shutdown,
};

/// A server: what to call it, and how to run it.
#[derive(Debug)]
pub struct Service<A, L = TcpListener> {
    /// The scheme of its URLs, with these flags.
    pub scheme: fn(&A) -> Scheme,
    /// Its port unless it is told another.
    pub port: u16,
    /// How many sockets at its address it reads, with these flags.
    pub sockets: fn(&A) -> usize,
    /// Serves until the shutdown is triggered and the drain is over.
    pub serve: fn(Listening<L>, &A, &Shutdown) -> Result<(), StartError>,
}

/// Parses the flags, listens, says where on standard output, and serves until SIGTERM or SIGINT.
///
/// Exit codes: 0 after a drain, 1 after a second signal, 2 wrong usage, 3 could not start.
pub fn run<A, L>(service: &Service<A, L>, args: impl IntoIterator<Item = OsString>) -> ExitCode
where
    A: Parser + AsRef<CommonArgs>,
    L: Bind,
{
    let args = match A::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to standard output, usage errors to standard error; neither can be helped if that fails.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(
            std::io::stderr().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        )
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
                .from_env_lossy(),
        )
        .init();
    match listen_and_serve(service, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if matches!(error, StartError::Flags(_)) {
                2
            } else {
                3
            })
        }
    }
}

fn listen_and_serve<A: AsRef<CommonArgs>, L: Bind>(
    service: &Service<A, L>,
    args: &A,
) -> Result<(), StartError> {
    let shutdown = Shutdown::on_signals()?;
    let mut listening = Listening::<L>::bind(args.as_ref(), service.port, (service.sockets)(args))?;
    let mut lines = vec![format!(
        "listening {}://{}",
        (service.scheme)(args).as_str(),
        listening.service.address()?
    )];
    if let Some(metrics) = &listening.metrics {
        lines.push(format!("metrics http://{}/metrics", metrics.local_addr()?));
    }
    listening.announcement = Some(lines.join("\n"));
    (service.serve)(listening, args, &shutdown)
}
