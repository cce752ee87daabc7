//! Flags about clocks, for clients on several hosts that measure in step.

use std::time::Duration;

use clap::Args;
use humantime::format_duration;
use netping_client::{
    clock::Moment,
    clock_offset,
    plan::{Execution, Warmup},
};
use netping_protocol::target::Target;

use super::{request::RequestArgs, time::positive};
use crate::{error::require, run::clock_demand::ClockDemand};

/// Flags about clocks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several hosts")]
pub struct InStepArgs {
    /// Send the first request at this moment, in step with other clients: RFC 3339 in UTC, nanoseconds
    /// since 1970, or +10s. Further steps begin at moments that follow from it
    #[arg(long, value_name = "TIME")]
    start_at: Option<Moment>,
    /// Measure the offset of this host's clock from that of a netping server, such as
    /// tcp://HOST:8004, and keep it in the results
    #[arg(long, value_name = "URL")]
    clock_server: Option<Target>,
    /// Refuse to measure if the clock is further off than this: from that of --clock-server, else by
    /// the kernel's estimate
    #[arg(long, value_name = "TIME", value_parser = positive)]
    max_clock_error: Option<Duration>,
}

impl InStepArgs {
    /// Returns the demands of a run with such requests on this host's clock.
    pub fn clock(&self, request: &RequestArgs) -> anyhow::Result<ClockDemand> {
        let server = self.clock_server.as_ref();
        let server = server.map(|target| {
            tells_time(target)?;
            request.destination(target)
        });
        Ok(ClockDemand {
            server: server.transpose()?,
            max_error: self.max_clock_error,
        })
    }

    /// Returns true if the client measures in step with others.
    pub fn is_given(&self) -> bool {
        self.start_at.is_some()
    }

    /// Returns the flags that are given, with their values, for the steps of a scenario.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        if let Some(moment) = self.start_at {
            flags.push(("--start-at", moment.nanos().to_string()));
        }
        if let Some(server) = &self.clock_server {
            flags.push(("--clock-server", server.to_string()));
        }
        if let Some(error) = self.max_clock_error {
            flags.push(("--max-clock-error", format_duration(error).to_string()));
        }
        flags
    }

    /// Gives a step its moment; fails if the next step's moment would not follow from it.
    pub fn apply(&self, execution: &mut Execution) -> anyhow::Result<()> {
        if self.start_at.is_some() {
            require(
                execution.warmup != Warmup::Auto,
                "--start-at needs steps of a known length: give a --warmup other than auto",
            )?;
            require(
                execution.extent.duration().is_some(),
                "--start-at needs steps of a known length: give a time (-d), and no number of requests",
            )?;
        }
        execution.start_at = self.start_at;
        Ok(())
    }
}

/// Rejects a server that does not tell its time.
pub fn tells_time(target: &Target) -> anyhow::Result<()> {
    require(
        clock_offset::tells_time(target.scheme.protocol()),
        format!(
            "{target} does not tell its time: give a netping server at tcp://, tcp+tls://, tcp+psk:// or quic://"
        ),
    )
}
