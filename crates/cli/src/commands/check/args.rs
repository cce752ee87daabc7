//! Flags of `netping check`.

use std::time::Duration;

use clap::Args;
use netping_client::plan::Plan;
use netping_protocol::{target::Target, units::number_in};

use crate::{
    args::{output::json_to, request::RequestArgs, time::positive},
    error::PlanError,
    run::options::JsonTo,
};

/// Flags of `netping check`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "Exit codes: 0 ready, perhaps with warnings, 2 wrong usage, 4 something would spoil a run, 6 the \
                  findings could not be written."
)]
pub struct CheckArgs {
    /// Servers, such as tcp://HOST:8004; without one, only this host is looked at
    #[arg(value_name = "URL")]
    targets: Vec<Target>,
    /// Connections that the run is to open
    #[arg(long, default_value = "1024", value_name = "N", value_parser = number_in::<u64>(1..))]
    pub connections: u64,
    /// Largest offset of this host's clock from that of a server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub max_clock_error: Option<Duration>,
    /// Write the findings as JSON; '-': to standard output, with the table on stderr
    #[arg(long, value_name = "FILE", value_parser = json_to)]
    pub json: Option<JsonTo>,
    #[command(flatten)]
    request: RequestArgs,
}

impl CheckArgs {
    /// Returns a plan for each server.
    pub fn plans(&self) -> Result<Vec<Plan>, PlanError> {
        if !self.targets.is_empty() {
            self.request.check(&self.targets)?;
        }
        self.request.plans(&self.targets)
    }
}
