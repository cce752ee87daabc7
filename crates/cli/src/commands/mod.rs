//! The commands: each with its own flags, and what it does.

pub mod bulk;
pub mod certs;
pub mod check;
pub mod clock;
pub mod compare;
pub mod connect;
pub mod grpc;
pub mod ladder;
pub mod latency;
pub mod man;
pub mod merge;
pub mod proxy;
pub mod quick;
pub mod report;
pub mod run;
pub mod serve;
mod text;
pub mod throughput;

use std::process::ExitCode;

use crate::{
    args::{Cli, Command},
    error::{Verdict, exit_code},
};

/// Runs a command, or takes a quick look, and returns the exit code.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Some(Command::Serve(args)) => serve::run(args),
        _ => exit_code(command(cli)),
    }
}

/// Runs a command, or takes a quick look.
fn command(cli: Cli) -> anyhow::Result<Verdict> {
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
        Command::Run(args) => run::run(&args),
        Command::Serve(_) => anyhow::bail!("a server is no step"),
    }
}
