//! Flags of `netping clock`.

use std::time::Duration;

use clap::Args;
use netping_client::{plan::Destination, probe::metrics::ServerSource};
use netping_protocol::target::Target;

use super::{in_step::tells_time, secure::SecureArgs, time::positive};
use crate::error::PlanError;

/// Flags of `netping clock`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "The error of an offset is at most half of the round trip.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a server did not answer, 4 an offset above --max-clock-error."
)]
pub struct ClockArgs {
    /// Servers of netping, such as tcp://HOST:8004 or quic://HOST:8006
    #[arg(required = true, value_name = "URL")]
    targets: Vec<Target>,
    /// Exit with 4 if this host's clock may be further off than this from that of a server
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub max_clock_error: Option<Duration>,
    #[command(flatten)]
    secure: SecureArgs,
}

impl ClockArgs {
    /// Returns the servers.
    pub fn servers(&self) -> Result<Vec<Destination>, PlanError> {
        self.secure.check(&self.targets)?;
        let server = |target: &Target| {
            tells_time(target)?;
            let secured = self.secure.connector(target)?;
            Ok(Destination::new(
                target.clone(),
                ServerSource::Nowhere,
                secured,
            ))
        };
        self.targets.iter().map(server).collect()
    }
}
