//! Flags of `netping ladder`.

use std::time::Duration;

use clap::Args;
use netping_protocol::units::number_in;
use netping_system::cores;

use crate::{
    args::{output::OutputArgs, time::positive},
    error::UsageError,
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
    callers: u16,
    /// Connections that these callers share in the third block
    #[arg(long, default_value = "4", value_name = "N", value_parser = number_in::<u16>(1..=4096))]
    connections: u16,
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

/// The CPUs of a ladder's client and servers.
#[derive(Debug, Clone)]
pub enum LadderCpus {
    /// Half of those that this process may use, each.
    Halves,
    /// Any, for both.
    Any,
    /// These.
    Given {
        client: Vec<usize>,
        servers: Vec<usize>,
    },
}

/// The number of a ladder's rounds.
#[derive(Debug, Clone, Copy)]
pub struct LadderRounds {
    /// Rounds, even if they take longer than the budget.
    pub fewest: u32,
    /// The time in which more are measured.
    pub budget: Duration,
}

impl LadderArgs {
    /// Rejects sharing that is none, and a view of windows that are too short for one.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn check(&self) -> Result<(), UsageError> {
        if self.connections >= self.callers {
            return Err(UsageError(format!(
                "{} callers do not share {} connections: give fewer --connections than --callers",
                self.callers, self.connections
            )));
        }
        if self.output.is_live() {
            return Err(UsageError(
                "a ladder's steps last 150 ms, which is too short for --live: leave it out"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns the number of callers under load.
    pub fn callers(&self) -> usize {
        self.callers.into()
    }

    /// Returns the number of connections that they share.
    pub fn connections(&self) -> usize {
        self.connections.into()
    }

    /// Returns the number of rounds.
    pub fn rounds(&self) -> LadderRounds {
        let (fewest, budget) = match self.budget {
            _ if self.quick => (3, Duration::ZERO),
            Some(budget) => (3, budget),
            None => (10, Duration::from_secs(50)),
        };
        LadderRounds { fewest, budget }
    }

    /// Returns the CPUs of client and servers.
    ///
    /// # Errors
    /// [`UsageError`] if this process may not use them.
    pub fn cpus(&self) -> Result<LadderCpus, UsageError> {
        let (Some(client), Some(servers)) = (&self.client_cpus, &self.server_cpus) else {
            return Ok(if self.no_pin {
                LadderCpus::Any
            } else {
                LadderCpus::Halves
            });
        };
        let own = cores::own();
        let mut all = client.0.iter().chain(&servers.0);
        if let Some(other) = all.find(|cpu| !own.contains(cpu)) {
            return Err(UsageError(format!(
                "this process may not use CPU {other}, only {}",
                cores::show(&own)
            )));
        }
        Ok(LadderCpus::Given {
            client: client.0.clone(),
            servers: servers.0.clone(),
        })
    }
}

fn cpus(list: &str) -> Result<Cpus, String> {
    cores::parse(list)
        .map(Cpus)
        .ok_or_else(|| "a list of CPUs looks like 0-3,8".to_owned())
}
