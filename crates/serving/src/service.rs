//! The `main` of every server.

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use crate::{Listening, Result, ServeError, args::ServerArgs, log::Log, shutdown::Shutdown};
use clap::{Args, CommandFactory, FromArgMatches};
use netping_protocol::scheme::Scheme;
use socket2::Type;

/// Serves until the shutdown is triggered and the drain is over.
pub type Serve<A> = fn(Listening, &ServerArgs<A>) -> Result<()>;

/// A server: its name and defaults, and how to run it.
#[derive(Debug)]
pub struct Service<A: Args> {
    /// Name of the program.
    pub name: &'static str,
    /// Description for `--help`; its first paragraph is the one for `-h`.
    pub about: &'static str,
    /// Returns the scheme of the server's URLs with these flags.
    pub scheme: fn(&A) -> Scheme,
    /// Default port.
    pub port: u16,
    /// Returns the number of sockets that the server reads with these flags.
    pub sockets: fn(&A) -> usize,
    /// Serves until the shutdown is triggered and the drain is over.
    pub serve: Serve<A>,
}

impl<A: Args> Service<A> {
    /// Parses a command line, which begins with the program's name.
    ///
    /// # Errors
    /// Fails on wrong flags, and with the text to print on `--help` and `--version`.
    pub fn parse<T>(&self, args: impl IntoIterator<Item = T>) -> Result<ServerArgs<A>, clap::Error>
    where
        T: Into<OsString> + Clone,
    {
        let (short, _) = self.about.split_once("\n\n").unwrap_or((self.about, ""));
        let command = ServerArgs::<A>::command()
            .name(self.name)
            .about(short)
            .long_about(self.about);
        ServerArgs::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    /// Binds the sockets that the flags ask for.
    ///
    /// # Errors
    /// Fails as [`Listening::bind`].
    pub fn bind(&self, args: &ServerArgs<A>) -> Result<Listening> {
        let kind = match (self.scheme)(&args.own) {
            Scheme::Quic => Type::DGRAM,
            _ => Type::STREAM,
        };
        Listening::bind(&args.common, self.port, kind, (self.sockets)(&args.own))
    }
}

/// Parses the flags, listens, announces the addresses on standard output, and serves until SIGTERM
/// or SIGINT.
///
/// Exit codes: 0 after a drain, 1 after a second signal or a drain that does not end, 2 for wrong usage, 3 if it cannot start.
pub fn run<A: Args>(service: &Service<A>, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match service.parse(args) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to standard output, usage errors to standard error; a failure to print
            // either has no remedy.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let served = Log::start().map_err(ServeError::from).and_then(|log| {
        let served = listen_and_serve(service, &args);
        log.finish();
        served
    });
    let Err(error) = served else {
        return ExitCode::SUCCESS;
    };
    // Without standard error, the exit code has to do.
    let _ = writeln!(io::stderr(), "error: {error}");
    let wrong_usage = matches!(error, ServeError::Flags(_));
    ExitCode::from(if wrong_usage { 2 } else { 3 })
}

fn listen_and_serve<A: Args>(service: &Service<A>, args: &ServerArgs<A>) -> Result<()> {
    let shutdown = Shutdown::on_signals(args.common.drain_timeout)?;
    let mut listening = service.bind(args)?;
    listening.shutdown = shutdown;
    let scheme = (service.scheme)(&args.own).as_str();
    let address = listening.address()?;
    let metrics = match &listening.metrics {
        Some(metrics) => format!("\nmetrics http://{}/metrics", metrics.local_addr()?),
        None => String::new(),
    };
    listening.announcement = Some(format!("listening {scheme}://{address}{metrics}"));
    (service.serve)(listening, args)
}
