//! The command line. Flag types stay in this folder: a [`Plan`](netping_client::plan::Plan) or a plain value
//! leaves it.

mod bulk;
mod certs;
mod check;
mod clock;
mod compare;
mod connect;
mod export;
mod flags;
mod grpc;
mod help;
mod in_step;
mod ladder;
mod latency;
mod load;
mod man;
mod merge;
mod output;
mod paths;
mod proxy;
mod quick;
mod range;
mod report;
mod request;
mod run;
mod scenario;
mod secure;
mod service;
mod throughput;
mod time;

pub use bulk::BulkArgs;
pub use certs::CertsArgs;
pub use check::CheckArgs;
pub use clock::ClockArgs;
pub use compare::CompareArgs;
pub use connect::ConnectArgs;
pub use flags::Flags;
pub use grpc::{GrpcArgs, GrpcCommand};
pub use help::{command, parse};
pub use ladder::{LadderArgs, LadderCpus, LadderRounds};
pub use latency::{LatencyArgs, Repeat};
pub use man::ManArgs;
pub use merge::MergeArgs;
pub use proxy::{ProxyArgs, ProxyPlans};
pub use quick::QuickArgs;
pub use report::ReportArgs;
pub use run::RunArgs;
pub use scenario::{Given, Scenario, of_command_line, schema};
pub use secure::SecureArgs;
pub use throughput::ThroughputArgs;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

/// Measures what a small request costs over TCP, gRPC and QUIC
#[derive(Debug, Parser)]
#[command(
    name = "netping",
    version,
    after_long_help = "Exit codes: 0 ok, 1 errors above --max-error-rate, 2 wrong usage, 3 could not start, 4 a condition such \
                  as --fail-if, 5 a warning with --strict, 6 a result could not be saved, 130 interrupted.",
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of a command line without one.
    #[command(flatten)]
    pub quick: QuickArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure every server on this machine, from plain TCP to gRPC over TLS
    Ladder(LadderArgs),
    /// Measure sequential round trips on one connection
    Latency(LatencyArgs),
    /// Measure the rate and the times of requests from many callers at once
    Throughput(ThroughputArgs),
    /// Measure opening a connection and the first call on it, part by part
    Connect(ConnectArgs),
    /// Measure the throughput of bulk data on a few streams
    Bulk(BulkArgs),
    /// Measure what proxies add to the direct path, and the maximum throughput through them
    Proxy(ProxyArgs),
    /// Compare result files with a base
    Compare(CompareArgs),
    /// Look at this host and at servers before an expensive run, and say what to do
    Check(CheckArgs),
    /// Measure the offset of this host's clock from those of servers
    Clock(ClockArgs),
    /// Add up the result files of several clients that loaded one server at the same time
    Merge(MergeArgs),
    /// Show result files as tables, or write them as a page with charts, or in other formats
    Report(ReportArgs),
    /// List and describe the methods of a gRPC server
    Grpc(GrpcArgs),
    /// Create certificates or a pre-shared key to try the encrypted transports
    Certs(CertsArgs),
    /// Run commands from a file
    Run(RunArgs),
    /// Run one of the servers from this binary, with the server's own flags
    Serve(ServeArgs),
    /// Print the completions of a shell: netping completions bash > FILE
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

/// Flags of the commands that measure requests in trials.
#[derive(Debug, Clone, clap::Args)]
pub struct SharedArgs {
    #[command(flatten)]
    pub request: request::RequestArgs,
    #[command(flatten)]
    pub trials: output::TrialArgs,
    #[command(flatten)]
    pub output: output::OutputArgs,
}

/// Flags of `netping completions`.
#[derive(Debug, Clone, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Flags of `netping serve`.
#[derive(Debug, clap::Args)]
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
}

/// The flags of a server, which it reads itself.
#[derive(Debug, clap::Args)]
pub struct ServerFlags {
    /// The server's flags; --help lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    pub flags: Vec<OsString>,
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
