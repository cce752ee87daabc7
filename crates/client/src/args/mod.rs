//! The command line. Flag types stay in this folder: what leaves it is a [`Plan`](crate::plan::Plan) or a plain value.

mod bulk;
mod certs;
mod compare;
mod connect;
mod export;
mod ladder;
mod latency;
mod load;
mod merge;
mod output;
mod paths;
mod proxy;
mod range;
mod report;
mod request;
mod secure;
mod throughput;

pub use bulk::BulkArgs;
pub use certs::CertsArgs;
pub use compare::CompareArgs;
pub use connect::ConnectArgs;
pub use export::ExportArgs;
pub use ladder::LadderArgs;
pub use latency::{LatencyArgs, Repeat};
pub use merge::MergeArgs;
pub use output::{JsonTo, OutputArgs, TrialArgs};
pub use proxy::ProxyArgs;
pub use range::{ByteRange, Range};
pub use report::ReportArgs;
pub use secure::SecureArgs;
pub use throughput::ThroughputArgs;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

/// Measures what a small request costs over TCP, gRPC and QUIC
#[derive(Debug, Parser)]
#[command(
    name = "netping",
    version,
    after_help = "Exit codes: 0 ok, 1 errors above --max-error-rate or a result that could not be saved, 2 wrong usage, \
                  3 could not start, 130 interrupted.",
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure every server on this machine, from the plainest up, and show what each step costs
    Ladder(LadderArgs),
    /// Measure round trips one after the other on one connection
    Latency(LatencyArgs),
    /// Measure the rate and the times of requests from many callers at once
    Throughput(ThroughputArgs),
    /// Measure what it takes to open a connection and make the first call on it, part by part
    Connect(ConnectArgs),
    /// Measure how fast many bytes go one way on a few streams
    Bulk(BulkArgs),
    /// Measure what proxies add to the direct path at given rates, and the most that goes through them
    Proxy(ProxyArgs),
    /// Compare result files with a base: what is unlike about them, and which differences are more than chance
    Compare(CompareArgs),
    /// Add up the result files of several clients that loaded one server at the same time
    Merge(MergeArgs),
    /// Show result files as a page, with charts
    Report(ReportArgs),
    /// Make certificates or a pre-shared key for a try of the encrypted transports
    Certs(CertsArgs),
    /// Run one of the servers from this binary, with the server's own flags
    Serve(ServeArgs),
}

/// Flags of `netping serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// End when the process that started this one ends.
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
    /// Which server.
    #[command(subcommand)]
    pub server: ServerCommand,
}

/// The servers there are.
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

/// What a server is given.
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
