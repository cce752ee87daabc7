//! The commands, one short file each.

mod bulk;
mod certs;
mod compare;
mod connect;
mod ladder;
mod latency;
mod merge;
mod proxy;
mod report;
mod serve;
mod throughput;

use std::process::ExitCode;

use crate::{args::Command, error::exit_code};

/// Runs a command and returns its exit code.
pub fn run(command: Command) -> ExitCode {
    exit_code(match command {
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
        Command::Serve(args) => return serve::run(args),
    })
}
