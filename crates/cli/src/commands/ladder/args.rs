//! Flags of `netping ladder`.

use std::time::Duration;

use clap::Args;
use netping_protocol::units::number_in;
use netping_results::format;
use netping_system::cores;

use super::{
    rungs::{OwnRung, RUNGS, Rung},
    started::{Over, StartedRung},
};
use crate::{
    args::{output::OutputArgs, time::positive},
    error::{require, usage},
    sides::Sides,
};

/// Flags of `netping ladder`.
#[derive(Debug, Clone, Args)]
// A ladder's steps are too short for it.
#[command(mut_arg("live", |flag| flag.hide(true)))]
pub struct LadderArgs {
    /// Three rounds, in about 20 s: too few to call anything a difference
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Also measure mutual TLS, messages on open gRPC streams, and messages of 581 bytes
    #[arg(long)]
    pub full: bool,
    /// Measure rounds for this time [default: 50s, or longer until there are ten rounds]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    budget: Option<Duration>,
    /// Callers under load, each on a connection of its own
    #[arg(short = 'c', long, alias = "concurrency", default_value = "64", value_name = "N", value_parser = number_in::<u16>(2..=4096))]
    pub callers: u16,
    /// Connections that these callers share in the block about sharing
    #[arg(long, default_value = "4", value_name = "N", value_parser = number_in::<u16>(1..=4096))]
    pub connections: u16,
    /// A further rung: the command of any server, behind its name; '{listen}' in it becomes the address to listen on.
    /// Another protocol than lines over TCP stands before the command: mine=grpc:'./server {listen}'
    #[arg(long = "rung", value_name = "NAME=[PROTOCOL:]COMMAND")]
    pub started: Vec<StartedRung>,
    /// The rung that one of --rung is compared with [default: netping's own of its protocol]
    #[arg(long, value_name = "NAME=RUNG", requires = "started")]
    over: Vec<Over>,
    /// Limit on the time until such a server answers
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = positive)]
    pub start_timeout: Duration,
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
        )?;
        self.check_names()
    }

    /// Rejects rungs with the name of another, and bases that are none.
    fn check_names(&self) -> anyhow::Result<()> {
        let own: Vec<&str> = RUNGS.iter().map(|rung| rung.name).collect();
        let measured = self.own_rungs().map(|rung| rung.name);
        let mut known: Vec<&str> = measured.collect();
        for rung in &self.started {
            let name = rung.name.as_str();
            require(
                !own.contains(&name),
                format!("the ladder has a rung '{name}' of its own: give --rung another name"),
            )?;
            require(
                !known.contains(&name),
                format!("two rungs have the name '{name}': give each its own"),
            )?;
            let overs: Vec<&Over> = self.over.iter().filter(|own| own.name == name).collect();
            require(
                overs.len() < 2,
                format!("--over {name}=RUNG stands there twice: a rung is compared with one other"),
            )?;
            if let Some(Over { base, .. }) = overs.first() {
                require(
                    known.contains(&base.as_str()),
                    format!(
                        "--over {name}={base}: there is no such rung before it; there are: {}",
                        known.join(", ")
                    ),
                )?;
            }
            known.push(name);
        }
        let names: Vec<&str> = self.started.iter().map(|own| own.name.as_str()).collect();
        let stray = self
            .over
            .iter()
            .find(|own| !names.contains(&own.name.as_str()));
        stray.map_or(Ok(()), |Over { name, base }| {
            Err(usage(format!(
                "--over {name}={base}: no --rung has the name '{name}'"
            )))
        })
    }

    /// Returns the rungs on netping's own servers that are measured.
    pub fn own_rungs(&self) -> impl Iterator<Item = &'static OwnRung> {
        RUNGS.iter().filter(|rung| self.full || !rung.is_extra)
    }

    /// Returns the rung that a command starts, over the one that the user wishes.
    pub fn rung(&self, started: &StartedRung) -> Rung {
        started.rung(self.over.iter().find(|own| own.name == started.name))
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
