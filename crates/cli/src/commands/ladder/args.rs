//! Flags of `netping ladder`.

use std::time::Duration;

use clap::Args;
use netping_protocol::units::number_in;
use netping_results::format;
use netping_system::cores;

use crate::{
    args::{output::OutputArgs, time::positive},
    error::require,
    sides::Sides,
};

/// Flags of `netping ladder`.
#[derive(Debug, Clone, Args)]
// A ladder's steps are too short for it.
#[command(mut_arg("live", |flag| flag.hide(true)))]
pub struct LadderArgs {
    /// Three rounds, in about 15 s: too few to call anything a difference
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Also measure mutual TLS, and messages of 581 bytes
    #[arg(long)]
    pub full: bool,
    /// Measure rounds for this time [default: 50s, or longer until there are ten rounds]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    budget: Option<Duration>,
    /// Callers under load, each on a connection of its own
    #[arg(short = 'c', long, alias = "concurrency", default_value = "64", value_name = "N", value_parser = number_in::<u16>(2..=4096))]
    pub callers: u16,
    /// Connections that these callers share in the third block
    #[arg(long, default_value = "4", value_name = "N", value_parser = number_in::<u16>(1..=4096))]
    pub connections: u16,
    /// Let the scheduler choose the CPUs of client and servers
    #[arg(long, conflicts_with_all = ["server_cpus", "client_cpus"])]
    no_pin: bool,
    /// CPUs of the servers, such as 0-3,8 [default: half of those that this process may use]
    #[arg(long, value_name = "LIST", requires = "client_cpus", value_parser = cpus)]
    server_cpus: Option<Cpus>,
    /// CPUs of the client [default: the other half]
    #[arg(long, value_name = "LIST", requires = "server_cpus", value_parser = cpus)]
    client_cpus: Option<Cpus>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A list of CPUs.
#[derive(Debug, Clone)]
struct Cpus(Vec<usize>);

impl LadderArgs {
    /// Rejects sharing that is none, and a view of windows that are too short for one.
    pub fn check(&self) -> anyhow::Result<()> {
        let (connections, callers) = (self.connections, self.callers);
        require(
            connections < callers,
            format!(
                "{callers} callers do not share {connections} connections: give fewer --connections than --callers"
            ),
        )?;
        require(
            !self.output.live,
            "a ladder's steps last 150 ms, which is too short for --live: leave it out",
        )
    }

    /// Returns the fewest rounds, and the time in which more are measured.
    pub fn rounds(&self) -> (u32, Duration) {
        match self.budget {
            _ if self.quick => (3, Duration::ZERO),
            Some(budget) => (3, budget),
            None => (10, Duration::from_secs(50)),
        }
    }

    /// Returns the CPUs of client and servers; fails if this process may not use them.
    pub fn sides(&self) -> anyhow::Result<Sides> {
        let own = cores::own();
        let (Some(client), Some(servers)) = (&self.client_cpus, &self.server_cpus) else {
            if self.no_pin {
                let sentence =
                    "Client and servers run on any CPU (--no-pin): times depend on where.";
                return Ok(Sides::unpinned(sentence));
            }
            return Ok(Sides::split(&cores::by_core(&own)));
        };
        for cpu in client.0.iter().chain(&servers.0) {
            require(
                own.contains(cpu),
                format!(
                    "this process may not use CPU {cpu}, only {}",
                    format::cpus(&own)
                ),
            )?;
        }
        Ok(Sides::given(client.0.clone(), servers.0.clone()))
    }
}

fn cpus(list: &str) -> Result<Cpus, String> {
    cores::parse(list)
        .map(Cpus)
        .ok_or_else(|| "a list of CPUs looks like 0-3,8".to_owned())
}
