//! Flags about load, shared by the commands with many callers.

use std::{num::NonZeroUsize, ops::RangeInclusive, time::Duration};

use clap::{ArgAction, Args};
use netping_client::{
    plan::{Arrival, Assign, Extent, Plan, Warmup},
    transport::Kind,
};
use netping_protocol::units::number_in;
use netping_system::cores;

use super::{
    choice::one_of,
    time::{positive, warmup},
};
use crate::{environment, error::require};

/// The gaps between requests, and whether they are random.
static ARRIVALS: [(&str, bool); 2] = [("constant", false), ("poisson", true)];

/// The callers that a due request is for.
static ASSIGN: [(&str, Assign); 2] = [("any", Assign::Any), ("fixed", Assign::Fixed)];

/// Flags about load. A command with these flags has a group `open`, the flags that make an open
/// loop.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct ClientLoadArgs {
    /// Open loop: gaps between requests
    #[arg(long = "arrivals", default_value = "constant", value_name = "KIND", requires = "open", value_parser = one_of(&ARRIVALS), action = ArgAction::Set)]
    is_poisson: bool,
    /// Seed of the Poisson arrivals, to have the same ones again [default: random; in the JSON]
    #[arg(long, value_name = "N", requires = "open")]
    seed: Option<u64>,
    /// Open loop: the caller of a due request. 'any': any that is free. 'fixed': one of a connection that each
    /// request belongs to beforehand, as a hash would choose it, so that response times have the queue of a
    /// slow connection
    #[arg(long, default_value = "any", value_name = "WHICH", requires = "open", value_parser = one_of(&ASSIGN))]
    assign: Assign,
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

/// Numbers of callers.
pub const CALLERS: RangeInclusive<u64> = 1..=u32::MAX as u64;

/// The longest warm-up that nobody asked for.
const LONGEST_DEFAULT_WARMUP: Duration = Duration::from_secs(2);

/// Most callers on one connection of QUIC or `--http2` by default: servers commonly allow 100
/// streams, netping's QUIC server 256.
const STREAMS: usize = 100;

/// Gives `plan` a number of callers. `connections` is the number of shared connections, `None`: one
/// for each worker; `workers` that of the client's threads, `None`: one for each core.
pub fn with_callers(
    mut plan: Plan,
    callers: u64,
    connections: Option<u64>,
    workers: Option<NonZeroUsize>,
) -> Plan {
    let callers = callers as usize;
    let workers = workers.map_or_else(|| cores::own().len().max(1), NonZeroUsize::get);
    let kind = plan.load.kind;
    let least = match kind {
        _ if plan.target.streams.per_connection.is_some() => 1,
        Kind::Quic | Kind::Http2 | Kind::Http3 | Kind::GrpcCall | Kind::GrpcMessages => {
            callers.div_ceil(STREAMS)
        }
        _ => 1,
    };
    let connections = match connections {
        _ if !kind.multiplexes() => callers,
        None => callers.min(workers.max(least)),
        Some(connections) => connections as usize,
    };
    plan.load.callers = callers;
    plan.load.connections = connections;
    plan.execution.workers = workers.min(connections);
    plan
}

impl ClientLoadArgs {
    /// Rejects steps that are shorter than their warm-up.
    pub fn check(&self) -> anyhow::Result<()> {
        let (duration, warmup) = (self.duration, self.warmup().duration().unwrap_or_default());
        require(
            warmup <= duration,
            "-d is shorter than the warm-up: measure longer, or give a shorter --warmup",
        )
    }

    /// Returns the phase before each window.
    pub fn warmup(&self) -> Warmup {
        let default = || Warmup::Time(LONGEST_DEFAULT_WARMUP.min(self.duration / 5));
        self.warmup.unwrap_or_else(default)
    }

    /// Returns true if arrivals are random, and no seed is given.
    pub fn has_random_seed(&self) -> bool {
        self.is_poisson && self.seed.is_none()
    }

    /// Returns an open loop with `rate` requests per second.
    pub fn arrival(&self, rate: f64) -> Arrival {
        if !self.is_poisson {
            return Arrival::Constant(rate);
        }
        // Clients and trials must not send at the same times.
        let seed = self.seed.unwrap_or_else(environment::random_seed);
        Arrival::Poisson { rate, seed }
    }

    /// Puts `plan` under the load of this number of callers. `connections` is the number of shared
    /// connections; `None`: one for each worker.
    pub fn plan(
        &self,
        plan: Plan,
        callers: u64,
        connections: Option<u64>,
        arrival: Arrival,
    ) -> Plan {
        let mut plan = with_callers(plan, callers, connections, self.workers);
        plan.load.arrival = arrival;
        plan.load.assign = self.assign;
        plan.load.max_backlog = self.max_backlog;
        plan.execution.pin = self.pin;
        plan.execution.warmup = self.warmup();
        plan.execution.warmup_max = self.warmup_max;
        plan.execution.extent = Extent::Time(self.duration);
        plan
    }
}
