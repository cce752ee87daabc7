//! Flags of `netping ab`.

use std::time::Duration;

use clap::Args;
use netping_client::plan::{Arrival, Plan};
use netping_protocol::{target::Target, units::number_in};

use crate::{
    args::{
        load::with_callers,
        output::{Options, OutputArgs},
        request::RequestArgs,
        share::share_in_percent,
        target::{NamedTarget, check_names},
        time::positive,
    },
    environment,
    error::{require, usage},
    launcher::{Launcher, is_filled},
};

/// Flags of `netping ab`.
#[derive(Debug, Clone, Args)]
#[command(
    // They name one server; here, `servers` refuses them.
    mut_arg("server_pid", |flag| flag.hide(true)),
    mut_arg("unix_socket", |flag| flag.hide(true)),
    after_long_help = "Exit codes: 0 the new server is worse by no more than the margin, 4 it is worse by more, or a \
                  --fail-if condition holds, 7 this machine cannot tell, or the run is NOT VALID; 1 requests failed, \
                  2 wrong usage, 3 a server could not be started or does not answer, 5 NOT VALID with --strict or a \
                  condition, 6 a result could not be saved, 130 interrupted."
)]
pub struct AbArgs {
    /// The base and the new server, such as http://127.0.0.1:8080/ http://127.0.0.1:8081/
    #[arg(value_name = "URL", num_args = 2, required_unless_present = "base", conflicts_with_all = ["base", "new", "url"])]
    targets: Vec<NamedTarget>,
    /// Command that starts the base; '{listen}' in it becomes the address to listen on, '{port}' its port
    #[arg(long, value_name = "COMMAND", requires_all = ["new", "url"])]
    base: Option<Launcher>,
    /// Command that starts the new server
    #[arg(long, value_name = "COMMAND", requires_all = ["base", "url"])]
    new: Option<Launcher>,
    /// URL of the servers that the commands start, such as 'http://{listen}/'
    #[arg(long, value_name = "URL", requires_all = ["base", "new"])]
    url: Option<String>,
    /// The new server may be worse by less than this, and still count as not worse
    #[arg(long, default_value = "5%", value_name = "SHARE%", value_parser = share_in_percent)]
    pub margin: f64,
    /// Begin no round after this time, even without an answer; the first five are always measured
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = positive)]
    pub budget: Duration,
    /// Warm-up before each window in which the servers are called in turn; those that commands start are new in each
    /// round
    #[arg(long, default_value = "100ms", value_name = "TIME", value_parser = positive)]
    pub warmup: Duration,
    /// Callers that call the servers by turns; with --rate, the limit on outstanding requests
    /// [default: 1; 64 with --rate]
    #[arg(short = 'c', long, alias = "concurrency", value_name = "N", value_parser = number_in::<u32>(1..=4096))]
    callers: Option<u32>,
    /// Open loop: requests per second for each server, at random times
    #[arg(long, value_name = "N", value_parser = number_in::<u64>(1..))]
    rate: Option<u64>,
    /// Callers of the windows in which the highest rate of each server is measured; 0: none
    /// [default: 64; 0 with --rate]
    #[arg(long, value_name = "N", value_parser = number_in::<u32>(..=4096))]
    capacity: Option<u32>,
    /// Let the scheduler choose the CPUs of the client and of servers that commands start
    #[arg(long)]
    pub no_pin: bool,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The servers to compare.
#[derive(Debug, Clone)]
pub enum Servers {
    /// They run already: the base, and the new one.
    Running([NamedTarget; 2]),
    /// Commands start them: the base, and the new one; and the form of their URLs.
    Commands([Launcher; 2], String),
}

/// Most requests that wait for a caller.
const MAX_BACKLOG: usize = 1_000_000;

impl AbArgs {
    /// Returns the servers to compare.
    pub fn servers(&self) -> anyhow::Result<Servers> {
        let counters = &self.request.server;
        require(
            !counters.is_given() || counters.is_off(),
            "ab has two servers, and looks for the CPU time of each: leave out --server-pid and --server-metrics URL; \
             that of servers that --base and --new start is known",
        )?;
        require(
            self.request.unix_socket.is_none(),
            "--unix-socket is one socket, and ab compares two servers: give each a port",
        )?;
        let (Some(base), Some(new), Some(url)) = (&self.base, &self.new, &self.url) else {
            let [base, new] = &self.targets[..] else {
                return Err(usage("ab compares two servers: the base, and the new one"));
            };
            check_names(&self.targets)?;
            require(
                base.name.is_some() == new.name.is_some(),
                "name both servers, or neither: base=URL new=URL",
            )?;
            return Ok(Servers::Running([base.clone(), new.clone()]));
        };
        require(
            is_filled(url),
            "--url is that of whichever address a server gets: write it like 'http://{listen}/'",
        )?;
        Ok(Servers::Commands([base.clone(), new.clone()], url.clone()))
    }

    /// Returns the options of the run.
    pub fn options(&self) -> anyhow::Result<Options> {
        self.output.options()
    }

    /// Returns the names of the warnings that are accepted.
    pub fn allowed(&self) -> Vec<String> {
        self.output.accepted().names()
    }

    /// Returns a plan for each target: of requests by turns or at the rate; and of the highest rate, if that
    /// is measured.
    pub fn plans(&self, targets: &[Target]) -> anyhow::Result<(Vec<Plan>, Option<Vec<Plan>>)> {
        self.request.check(targets)?;
        let bases = self.request.plans(targets)?;
        let of = |callers: u32| {
            let plans = |connections: Option<u64>| {
                let plan =
                    |base: &Plan| with_callers(base.clone(), callers.into(), connections, None);
                bases.iter().map(plan).collect::<Vec<Plan>>()
            };
            // The difference is not to be that of connections: each server has as many as the one that needs most.
            let most = plans(None).iter().map(|plan| plan.load.connections).max();
            plans(most.map(|most| most as u64))
        };
        let [callers, capacity] = match self.rate {
            None => [1, 64],
            Some(_) => [64, 0],
        };
        let mut calls = of(self.callers.unwrap_or(callers));
        if let Some(rate) = self.rate {
            let seed = environment::random_seed();
            for plan in &mut calls {
                plan.load.arrival = Arrival::Poisson {
                    rate: rate as f64,
                    seed,
                };
                plan.load.max_backlog = MAX_BACKLOG;
            }
        }
        let capacity = self.capacity.unwrap_or(capacity);
        Ok((calls, (capacity > 0).then(|| of(capacity))))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn both_servers_have_the_connections_of_the_one_that_needs_more() {
        let command = Command::new("netping").no_binary_name(true);
        let targets = ["tcp://127.0.0.1:1", "grpc://127.0.0.1:2"];
        let matches = AbArgs::augment_args(command).get_matches_from(targets);
        let args = AbArgs::from_arg_matches(&matches).unwrap();
        let targets = targets.map(|target| target.parse::<Target>().unwrap());
        let (calls, capacity) = args.plans(&targets).unwrap();
        let connections = |plans: &[Plan]| -> Vec<usize> {
            plans.iter().map(|plan| plan.load.connections).collect()
        };
        assert_eq!(connections(&calls), [1, 1]);
        assert_eq!(connections(&capacity.unwrap()), [64, 64]);
    }
}
