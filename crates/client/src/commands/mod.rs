//! What each command does.

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

use netping_results::format::on_lines;

use crate::{
    args::{Command, PlanError, UsageError},
    error::StartError,
    run::Verdict,
};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The flags make no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It could not start, for another reason.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<UsageError> for Failed {
    fn from(error: UsageError) -> Self {
        Self::Plan(error.into())
    }
}

/// Does it, and says how it went.
pub fn run(command: Command) -> ExitCode {
    let result = match command {
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
    };
    match result {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Ok(Verdict::Interrupted) | Err(Failed::Start(StartError::Interrupted)) => {
            ExitCode::from(130)
        }
        Err(failed) => {
            // A result file's text may be part of it.
            eprintln!("error: {}", on_lines(&failed.to_string()));
            ExitCode::from(if matches!(failed, Failed::Plan(PlanError::Usage(_))) {
                2
            } else {
                3
            })
        }
    }
}
