//! The command line and its commands: each with its own flags, and what it does.

pub mod ab;
pub mod bulk;
pub mod certs;
pub mod check;
pub mod clock;
pub mod compare;
pub mod connect;
pub mod grpc;
pub mod help;
pub mod ladder;
pub mod latency;
pub mod man;
pub mod merge;
pub mod next;
pub mod proxy;
pub mod quick;
pub mod report;
pub mod run;
pub mod serve;
pub mod throughput;
mod validity;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use netping_results::{file::save::write_under, run::Kind, time_unit::TimeUnit};
use netping_system::signals;

use crate::{
    args::{choice::one_of, output::Options},
    error::{Verdict, exit_code, usage},
    run::Runner,
};

/// Measures what a small request costs: to your own HTTP and gRPC services, or to bare echo servers over TCP, gRPC and
/// QUIC
#[derive(Debug, Parser)]
#[command(
    name = "netping",
    version = env!("NETPING_BUILD"),
    long_version = concat!(
        env!("NETPING_BUILD"),
        "\ntarget: ", env!("NETPING_TARGET"),
        "\nTLS and QUIC: rustls with aws-lc-rs\nallocator: mimalloc"
    ),
    after_long_help = "Exit codes: 0 ok, 1 errors above --max-error-rate, 2 wrong usage, 3 could not start, 4 a condition such \
                  as --fail-if, 5 NOT VALID with --strict or a condition, 6 a result could not be saved, 7 'ab' cannot tell, \
                  130 interrupted. Of several, the first in the order 130, 6, 3, 1, 5, 7, 4 holds.",
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Unit of times in text: that which fits them, or a fixed one. Files of results keep their own
    #[arg(long, global = true, hide_short_help = true, value_name = "UNIT", default_value = "auto", value_parser = one_of(&UNITS))]
    pub units: Units,
    /// Flags of a command line without one.
    #[command(flatten)]
    pub quick: quick::QuickArgs,
}

/// The unit of times in text; `None`: that which fits.
#[derive(Debug, Clone, Copy)]
pub struct Units(Option<TimeUnit>);

static UNITS: [(&str, Units); 5] = [
    ("auto", Units(None)),
    ("ns", Units(Some(TimeUnit::Nanos))),
    ("us", Units(Some(TimeUnit::Micros))),
    ("ms", Units(Some(TimeUnit::Millis))),
    ("s", Units(Some(TimeUnit::Seconds))),
];

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure every server on this machine, from plain TCP to gRPC over TLS
    Ladder(ladder::args::LadderArgs),
    /// Measure sequential round trips on one connection
    Latency(latency::LatencyArgs),
    /// Measure rate and response times of many callers at once, or at a given rate
    Throughput(throughput::args::ThroughputArgs),
    /// Measure opening a connection and the first call on it, part by part
    Connect(connect::ConnectArgs),
    /// Measure the throughput of bulk data in one direction
    Bulk(bulk::args::BulkArgs),
    /// Measure what proxies add to the direct path, and the maximum throughput through them
    Proxy(proxy::args::ProxyComparisonArgs),
    /// Measure two servers in turn until it is clear whether the new one is worse
    Ab(ab::args::AbArgs),
    /// Compare result files with a base
    Compare(compare::CompareArgs),
    /// Look for problems on this host and servers before a long run, and say how to fix them
    Check(check::CheckArgs),
    /// Measure the offset of this host's clock from those of servers
    Clock(clock::ClockArgs),
    /// Add up the results of several clients that loaded one server at the same time
    Merge(merge::MergeArgs),
    /// Say what to measure next, where each window is a run of several clients
    Next(next::NextArgs),
    /// Show result files as tables, or write them as a page with charts, or in other formats
    Report(report::ReportArgs),
    /// List and describe the methods of a gRPC server
    Grpc(grpc::MethodsArgs),
    /// Create certificates or a pre-shared key to try the encrypted transports
    Certs(certs::CertsArgs),
    /// Run commands from a file
    Run(run::RunArgs),
    /// Run one of the servers from this binary, with the server's own flags
    Serve(serve::ServeArgs),
    /// Print the completions of a shell: netping completions bash > FILE
    Completions(man::CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(man::ManArgs),
}

/// Runs a command, or takes a quick look, and returns the exit code.
pub fn run(cli: Cli) -> ExitCode {
    if let Some(Command::Serve(args)) = cli.command {
        return serve::run(args);
    }
    write_under(|| Box::new(signals::whole()));
    exit_code(command(cli))
}

/// Runs a command, or takes a quick look.
fn command(cli: Cli) -> anyhow::Result<Verdict> {
    // A step of a scenario has its own, or that of the file.
    if let Some(unit) = cli.units.0 {
        unit.choose();
    }
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
        Command::Ab(args) => ab::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Next(args) => next::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Certs(args) => certs::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Completions(args) => man::completions(&args),
        Command::Grpc(args) => grpc::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Serve(_) => Err(usage("a server is no step")),
    }
}

/// Runs the body of a measuring command; what it measured is kept, whether it succeeds or not.
fn measure(
    kind: Kind,
    options: Options,
    body: impl FnOnce(&mut Runner) -> anyhow::Result<()>,
) -> anyhow::Result<Verdict> {
    crate::run::run(kind, options, validity::describe, body)
}

#[cfg(test)]
mod tests {
    use super::help;

    #[test]
    fn the_flags_of_all_commands_are_consistent_and_have_help() {
        let mut cli = help::command();
        cli.clone().debug_assert();
        for command in cli.get_subcommands_mut() {
            command.build();
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for arg in command.get_arguments() {
                let (command, flag) = (command.get_name(), arg.get_id());
                assert!(arg.get_help().is_some(), "{command} {flag}");
            }
        }
    }
}
