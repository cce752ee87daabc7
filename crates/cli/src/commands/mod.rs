//! The commands, one short file each.

mod bulk;
mod certs;
mod check;
mod clock;
mod compare;
mod connect;
mod grpc;
mod ladder;
mod latency;
mod man;
mod merge;
mod proxy;
mod quick;
mod report;
mod scenario;
mod serve;
mod table;
mod throughput;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use netping_report::table::Column;
use netping_results::{format::thousands, run::StepSettings};

use crate::{
    args::{Cli, Command},
    error::{Failed, UsageError, Verdict, exit_code},
};

/// Runs a command, or takes a quick look, and returns the exit code.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Some(Command::Serve(args)) => serve::run(args),
        _ => exit_code(command(cli)),
    }
}

/// Runs a command, or takes a quick look.
fn command(cli: Cli) -> Result<Verdict, Failed> {
    let Some(command) = cli.command else {
        return quick::run(&cli.quick);
    };
    match command {
        Command::Ladder(args) => ladder::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Throughput(args) => throughput::run(&args),
        Command::Connect(args) => connect::run(&args),
        Command::Bulk(args) => bulk::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Completions(args) => man::completions(&args),
        Command::Grpc(args) => grpc::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Run(args) => scenario::run(&args),
        Command::Serve(_) => Err(UsageError("a server is no step".to_owned()).into()),
    }
}

/// Returns the columns with these titles, separated by `|`. A title after `<` is that of a column
/// of words; the others hold numbers.
fn columns(titles: &'static str) -> Vec<Column> {
    let column = |title: &'static str| match title.strip_prefix('<') {
        Some(words) => Column::text(words, 0),
        None => Column::number(title, 0),
    };
    titles.split('|').map(column).collect()
}

/// Describes the requests of a step, as headings have it; `None` where they are all empty.
fn requests(settings: &StepSettings) -> Option<String> {
    let bytes = |bytes| format!("{} bytes", thousands(bytes as f64));
    match (settings.payload_bytes, settings.bodies) {
        (0, None) => None,
        (length, None) => Some(bytes(length)),
        (length, Some(bodies)) => {
            let order = settings.body_order.as_deref().unwrap_or_default();
            let mean = bytes(length);
            let bodies = thousands(bodies as f64);
            Some(format!("{bodies} bodies ({order}) of {mean} on average"))
        }
    }
}

/// Returns a p-value with three decimals.
fn probability(p: f64) -> String {
    if p < 0.001 {
        return "<0.001".to_owned();
    }
    format!("{p:.3}")
}

/// Prints a text as it is; a reader that closed the pipe has read enough.
fn print_text(text: &str) -> anyhow::Result<()> {
    print(|out| {
        out.extend_from_slice(text.as_bytes());
        Ok(())
    })
}

/// Prints what `write` writes; a reader that closed the pipe has read enough.
fn print(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    match io::stdout().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
