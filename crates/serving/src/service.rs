//! The `main` of every server.

use std::{
    ffi::OsString,
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    listen::{Listening, StartError},
    options::CommonArgs,
    shutdown::Shutdown,
};

/// A server: what to call it, and how to run it.
#[derive(Debug)]
pub struct Service<A> {
    /// The scheme of its URLs.
    pub scheme: &'static str,
    /// Its port unless it is told another.
    pub port: u16,
    /// Serves until the shutdown is triggered and the drain is over.
    pub serve: fn(Listening, &A, &Shutdown) -> Result<(), StartError>,
}

/// Parses the flags, listens, says where on standard output, and serves until SIGTERM or SIGINT.
///
/// Exit codes: 0 after a drain, 1 after a second signal, 2 wrong usage, 3 could not start.
pub fn run<A>(service: &Service<A>, args: impl IntoIterator<Item = OsString>) -> ExitCode
where
    A: Parser + AsRef<CommonArgs>,
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
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
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
            ExitCode::from(if matches!(error, StartError::Flags(_)) { 2 } else { 3 })
        }
    }
}

fn listen_and_serve<A: AsRef<CommonArgs>>(service: &Service<A>, args: &A) -> Result<(), StartError> {
    let shutdown = Shutdown::on_signals()?;
    let listening = Listening::bind(args.as_ref(), service.port)?;
    let mut lines = vec![format!("listening {}://{}", service.scheme, listening.service.local_addr()?)];
    if let Some(metrics) = &listening.metrics {
        lines.push(format!("metrics http://{}/metrics", metrics.local_addr()?));
    }
    // A closed standard output is no reason not to serve.
    let _ = writeln!(std::io::stdout(), "{}", lines.join("\n"));
    (service.serve)(listening, args, &shutdown)
}
