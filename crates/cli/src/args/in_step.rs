//! Flags about clocks, for clients on several hosts that measure in step.

use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use humantime::format_duration;
use netping_client::{
    clock::Moment,
    clock_offset,
    plan::{Execution, Warmup},
};
use netping_protocol::target::Target;

use super::{output::Options, shared::SharedArgs, time::positive};
use crate::run::clock_demand::ClockDemand;

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
    /// Returns the options of a run with these flags about clocks.
    pub fn options(&self, shared: &SharedArgs) -> anyhow::Result<Options> {
        let server = self.clock_server.as_ref();
        let server = server.map(|target| {
            tells_time(target)?;
            shared.request.destination(target)
        });
        let clock = ClockDemand {
            server: server.transpose()?,
            max_error: self.max_clock_error,
        };
        Ok(Options {
            clock,
            ..shared.output.options()?
        })
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
        let remedy = if execution.warmup == Warmup::Auto {
            Some("give a --warmup other than auto")
        } else if execution.extent.duration().is_none() {
            Some("give a time (-d) instead of a number of requests")
        } else {
            None
        };
        if let (Some(remedy), Some(_)) = (remedy, self.start_at) {
            bail!("--start-at needs steps of a known length: {remedy}");
        }
        execution.start_at = self.start_at;
        Ok(())
    }
}

/// Rejects a server that does not tell its time.
pub fn tells_time(target: &Target) -> anyhow::Result<()> {
    ensure!(
        clock_offset::tells_time(target.scheme.protocol()),
        "{target} does not tell its time: give a netping server at tcp://, tcp+tls://, tcp+psk:// or quic://"
    );
    Ok(())
}
