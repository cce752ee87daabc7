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

use super::{shared::SharedArgs, time::positive};
use crate::{
    error::{PlanError, UsageError},
    run::{clock_demand::ClockDemand, options::Options},
};

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
    pub fn options(&self, shared: &SharedArgs) -> Result<Options, PlanError> {
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
        let start_at = self.start_at.map(|moment| moment.nanos().to_string());
        let server = self.clock_server.as_ref().map(Target::to_string);
        let error = self
            .max_clock_error
            .map(|error| format_duration(error).to_string());
        let flags = [
            ("--start-at", start_at),
            ("--clock-server", server),
            ("--max-clock-error", error),
        ];
        let given = |(flag, value): (_, Option<String>)| Some((flag, value?));
        flags.into_iter().filter_map(given).collect()
    }

    /// Gives a step its moment.
    ///
    /// # Errors
    /// [`UsageError`] if the next step's moment would not follow from it.
    pub fn apply(&self, execution: &mut Execution) -> Result<(), UsageError> {
        let length = if execution.warmup == Warmup::Auto {
            Some("give a --warmup other than auto")
        } else if execution.extent.duration().is_none() {
            Some("give a time (-d) instead of a number of requests")
        } else {
            None
        };
        match length {
            Some(remedy) if self.start_at.is_some() => Err(UsageError(format!(
                "--start-at needs steps of a known length: {remedy}"
            ))),
            _ => {
                execution.start_at = self.start_at;
                Ok(())
            }
        }
    }
}

/// Rejects a server that does not tell its time.
pub fn tells_time(target: &Target) -> Result<(), UsageError> {
    if clock_offset::tells_time(target.scheme.protocol()) {
        return Ok(());
    }
    Err(UsageError(format!(
        "{target} does not tell its time: give a netping server at tcp://, tcp+tls://, tcp+psk:// or quic://"
    )))
}
