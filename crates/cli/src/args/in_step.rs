//! Flags about clocks, for clients on several hosts that measure in step.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Args;
use humantime::format_duration;
use netping_client::{
    clock::Moment,
    clock_offset,
    plan::{PartNumber, Plan, Warmup},
};
use netping_protocol::target::Target;

use super::{request::RequestArgs, time::positive};
use crate::{
    error::{require, usage},
    run::{clock_demand::ClockDemand, in_step::Announcement},
};

/// The source of the moment of the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StartAt {
    Moment(Moment),
    /// A file that will have it.
    File(PathBuf),
}

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => Err("the file's name is missing; write @FILE".to_owned()),
            Some(file) => Ok(Self::File(file.into())),
            None => text.parse().map(Self::Moment),
        }
    }
}

impl fmt::Display for StartAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A time from now on stays the same moment.
            Self::Moment(moment) => write!(f, "{}", moment.nanos()),
            Self::File(file) => write!(f, "@{}", file.display()),
        }
    }
}

/// Flags about clocks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several hosts")]
pub struct InStepArgs {
    /// Send the first request at this moment, in step with other clients: RFC 3339 in UTC, nanoseconds
    /// since 1970, or +10s. Further steps begin at moments that follow from it. '@FILE': make FILE.ready when
    /// ready, and wait for a line with the moment in FILE
    #[arg(long, value_name = "TIME|@FILE")]
    start_at: Option<StartAt>,
    /// Longest wait for '--start-at @FILE'
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = positive, requires = "start_at")]
    start_timeout: Duration,
    /// This client's number among those that share the load, and how many they are, such as 2/8: callers, connections
    /// and rate are those of all together. The first reads the server's counters
    #[arg(long, value_name = "NUMBER/CLIENTS", requires = "start_at")]
    part: Option<PartNumber>,
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

    /// Returns the file that will have the moment of the first request, if one will.
    pub fn announcement(&self) -> Option<Announcement> {
        match &self.start_at {
            Some(StartAt::File(file)) => Some(Announcement {
                file: file.clone(),
                timeout: self.start_timeout,
            }),
            _ => None,
        }
    }

    /// Returns true if the client measures in step with others.
    pub fn is_given(&self) -> bool {
        self.start_at.is_some()
    }

    /// Returns the flags that are given, with their values, for the steps of a scenario.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        if let Some(start) = &self.start_at {
            flags.push(("--start-at", start.to_string()));
            let timeout = format_duration(self.start_timeout);
            flags.push(("--start-timeout", timeout.to_string()));
        }
        if let Some(part) = self.part {
            flags.push(("--part", part.to_string()));
        }
        if let Some(server) = &self.clock_server {
            flags.push(("--clock-server", server.to_string()));
        }
        if let Some(error) = self.max_clock_error {
            flags.push(("--max-clock-error", format_duration(error).to_string()));
        }
        flags
    }

    /// Returns true if this client shares a load with others.
    pub fn shares_load(&self) -> bool {
        self.part.is_some()
    }

    /// Gives a step its moment, and leaves it this client's part of the load; fails if the next step's moment would
    /// not follow from this one's, or the load is too small.
    pub fn apply(&self, plan: &mut Plan) -> anyhow::Result<()> {
        let execution = &mut plan.execution;
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
        execution.in_step = self.start_at.is_some();
        if let Some(StartAt::Moment(moment)) = self.start_at {
            execution.start_at = Some(moment);
        }
        self.part
            .map_or(Ok(()), |part| plan.take_part(part))
            .map_err(|error| usage(format!("--part: {error}")))
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
