//! Flags about load, shared by the commands with many callers.

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, ValueEnum};
use humantime::format_duration;
use netping_client::{
    plan::{Arrival, Extent, Plan, Warmup},
    transport::Kind,
};
use netping_protocol::units::number_in;
use netping_system::cores;

use super::time::{positive, warmup};
use crate::{environment, error::UsageError};

/// Flags about load. A command with these flags has a group `open`, the flags that make an open
/// loop.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Open loop: gaps between requests
    #[arg(
        long,
        default_value = "constant",
        value_name = "KIND",
        requires = "open"
    )]
    arrivals: Arrivals,
    /// Seed of the Poisson arrivals, to have the same ones again [default: random; in the JSON]
    #[arg(long, value_name = "N", requires = "open")]
    seed: Option<u64>,
    /// Open loop: limit on requests waiting for a caller; more count as not sent
    #[arg(long, default_value = "1M", value_name = "N", value_parser = number_in::<usize>(..), requires = "open")]
    max_backlog: usize,
    /// Worker threads of the client [default: the number of cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Pin each worker to a core of its own
    #[arg(long)]
    pin: bool,
    /// Warm up for this long; these requests do not count. 'auto': until the rate is steady
    /// [default: a fifth of -d, at most 2s]
    #[arg(long, value_parser = warmup, value_name = "TIME|auto")]
    warmup: Option<Warmup>,
    /// Longest warm-up with '--warmup auto'; after it, the step is measured with a warning
    #[arg(long, default_value = "60s", value_parser = positive, value_name = "TIME")]
    warmup_max: Duration,
    /// Measured time of each step
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME")]
    pub duration: Duration,
}

/// The longest warm-up that nobody asked for.
const LONGEST_DEFAULT_WARMUP: Duration = Duration::from_secs(2);

/// Most callers on one connection of QUIC or `--http2` by default: servers commonly allow 100
/// streams, netping's QUIC server 256.
const STREAMS: usize = 100;

/// The distribution of the times between requests of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Arrivals {
    /// Equal times
    Constant,
    /// Exponentially distributed times, as from many independent users
    Poisson,
}

/// Checks a number of callers.
pub fn callers_in_range(callers: u64) -> Result<usize, UsageError> {
    let fits = u32::try_from(callers).map(|callers| callers as usize);
    fits.map_err(|_| {
        UsageError(format!(
            "{callers} callers are too many; the maximum is {}",
            u32::MAX
        ))
    })
}

/// Gives `plan` so many callers. `connections` is the number of shared connections, `None`: one for
/// each worker; `workers` that of the client's threads, `None`: one for each core.
pub fn with_callers(
    mut plan: Plan,
    callers: u64,
    connections: Option<u64>,
    workers: Option<NonZeroUsize>,
) -> Result<Plan, UsageError> {
    let callers = callers_in_range(callers)?;
    let workers = workers.map_or_else(|| cores::own().len().max(1), NonZeroUsize::get);
    let connections = match connections {
        _ if !plan.load.kind.multiplexes() => callers,
        None if matches!(
            plan.load.kind,
            Kind::Quic | Kind::Http2 | Kind::Http3 | Kind::GrpcCall
        ) =>
        {
            callers.min(workers.max(callers.div_ceil(STREAMS)))
        }
        None => callers.min(workers),
        Some(connections) => connections as usize,
    };
    plan.load.callers = callers;
    plan.load.connections = connections;
    plan.execution.workers = workers.min(connections);
    Ok(plan)
}

impl LoadArgs {
    /// Rejects steps that are shorter than their warm-up.
    pub fn check(&self) -> Result<(), UsageError> {
        match self.warmup {
            Some(Warmup::Time(warmup)) if self.duration < warmup => {
                let (duration, warmup) = (format_duration(self.duration), format_duration(warmup));
                Err(UsageError(format!(
                    "-d {duration} is shorter than the warm-up of {warmup}: measure longer, or give a shorter --warmup"
                )))
            }
            _ => Ok(()),
        }
    }

    fn warmup(&self) -> Warmup {
        let default = || Warmup::Time(LONGEST_DEFAULT_WARMUP.min(self.duration / 5));
        self.warmup.unwrap_or_else(default)
    }

    /// Returns an open loop with `rate` requests per second.
    pub fn arrival(&self, rate: f64) -> Arrival {
        match self.arrivals {
            Arrivals::Constant => Arrival::Constant(rate),
            Arrivals::Poisson => Arrival::Poisson {
                rate,
                // Clients and trials must not send at the same times.
                seed: self.seed.unwrap_or_else(environment::random_seed),
            },
        }
    }

    /// Puts `base` under the load of so many callers. `connections` is the number of shared
    /// connections; `None`: one for each worker.
    pub fn plan(
        &self,
        plan: Plan,
        callers: u64,
        connections: Option<u64>,
        arrival: Arrival,
    ) -> Result<Plan, UsageError> {
        let mut plan = with_callers(plan, callers, connections, self.workers)?;
        plan.load.arrival = arrival;
        plan.load.max_backlog = self.max_backlog;
        plan.execution.pin = self.pin;
        plan.execution.warmup = self.warmup();
        plan.execution.warmup_max = self.warmup_max;
        plan.execution.extent = Extent::Time(self.duration);
        Ok(plan)
    }
}
