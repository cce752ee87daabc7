//! Flags of `netping throughput`.

use std::{num::NonZeroU64, time::Duration};

use clap::Args;
use netping_client::{
    plan::{Arrival, Extent, Plan},
    transport::Kind,
};
use netping_protocol::units::LONGEST;
use netping_results::{condition::Condition, format::plural};

use crate::{
    args::{
        burst::BurstArgs,
        load::{CALLERS, ClientLoadArgs},
        range::{Range, count, optional, within},
        shared::ComparedArgs,
        target::{NamedTarget, urls},
    },
    error::require,
};

/// Flags of `netping throughput`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("trials", |arg| arg.default_value("1")))]
pub struct ThroughputArgs {
    /// Servers, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(required = true, value_name = "URL")]
    pub targets: Vec<NamedTarget>,
    /// Callers, each with one request outstanding: 64, 1,8,64, 1..4096 (doubling), 1..4096x4 or
    /// 10..100+10; in an open loop, the limit on outstanding requests
    #[arg(
        short = 'c',
        long,
        alias = "concurrency",
        default_value = "64",
        value_name = "RANGE",
        value_parser = within(str::parse, CALLERS)
    )]
    callers: Range,
    /// Open loop: requests are due at this rate per second, whether or not replies come: 10k or
    /// 10k..25k+1k
    #[arg(long, value_name = "RANGE", group = "open")]
    rate: Option<Range>,
    /// Search for the highest rate at which a condition holds, such as 'p99<1ms'
    #[arg(long, value_name = "CONDITION", group = "open", conflicts_with_all = ["rate", "trials", "until", "start_at"])]
    pub find: Option<Condition>,
    /// Open loop: measure the capacity of each target in a closed loop, then its response times at
    /// these shares of it, in per cent: 50,70,90
    #[arg(long, value_name = "RANGE", group = "open", value_parser = within(str::parse, 1..=100), conflicts_with = "start_at")]
    utilisation: Option<Range>,
    #[command(flatten)]
    load: ClientLoadArgs,
    #[command(flatten)]
    burst: BurstArgs,
    /// Number of requests to measure in each step, instead of a duration
    #[arg(short = 'n', long, value_parser = count, value_name = "N", conflicts_with = "duration")]
    requests: Option<NonZeroU64>,
    /// Connections that callers over gRPC, QUIC, --http2 and --http3 share; others have one each
    /// [default: one per worker and, but for Echo over gRPC, at least one per 100 callers]
    #[arg(long, value_name = "RANGE")]
    connections: Option<Range>,
    /// Open a connection for each request, as a part of the request
    #[arg(long, conflicts_with = "requests_per_connection")]
    new_connection_per_request: bool,
    /// Reopen a connection after N requests, as a part of the first of them
    #[arg(long, value_parser = count, value_name = "N")]
    requests_per_connection: Option<NonZeroU64>,
    #[command(flatten)]
    pub compared: ComparedArgs,
}

impl ThroughputArgs {
    /// Returns the steps: a group for each combination of callers, connections and rate, in which
    /// only the target differs.
    pub fn groups(&self) -> anyhow::Result<Vec<Vec<Plan>>> {
        self.check()?;
        let bases = self.compared.shared.request.named_plans(&self.targets)?;
        let mut groups = Vec::new();
        for &callers in self.callers.values() {
            let counts = optional(self.connections.as_ref()).into_iter();
            for connections in counts.filter(|count| count.is_none_or(|count| count <= callers)) {
                for rate in optional(self.rate.as_ref()) {
                    let open = rate.map(|rate| self.load.arrival(rate as f64));
                    let arrival = open.unwrap_or(Arrival::Closed);
                    let plan = |base: &Plan| self.plan(base, callers, connections, arrival);
                    groups.push(bases.iter().map(plan).collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
        require(
            !groups.is_empty(),
            "nothing to measure: every step has more --connections than callers (-c)",
        )?;
        Ok(groups)
    }

    fn check(&self) -> anyhow::Result<()> {
        let request = &self.compared.shared.request;
        let targets = urls(&self.targets);
        request.check(&targets)?;
        let kinds = targets.iter().map(|target| request.kind(target));
        let kinds = kinds.collect::<anyhow::Result<Vec<_>>>()?;
        self.check_sharing(&kinds)?;
        if self.compared.in_step.shares_load() {
            self.check_parts(&kinds)?;
        }
        match self.requests {
            None => {
                self.load.check()?;
                let (window, warmup) = (self.load.duration, self.load.warmup());
                self.burst.check(window, warmup)
            }
            Some(_) => Ok(()),
        }
    }

    /// Fails if clients that share the load could not know what the others do.
    fn check_parts(&self, kinds: &[Kind]) -> anyhow::Result<()> {
        require(
            self.connections.is_some() || !kinds.iter().any(|kind| kind.multiplexes()),
            "--part needs the number of all clients' connections, which otherwise follows from each host's cores: give \
             --connections",
        )?;
        require(
            !self.load.has_random_seed(),
            "--part needs random arrivals that all clients know: give them the same --seed",
        )?;
        let targets = self.targets.len() + usize::from(self.compared.is_repeated());
        require(
            !self.compared.shared.trials.has_unknown_order(targets),
            "--part needs an order of the targets that all clients know: give them the same --order-seed",
        )
    }

    /// Fails if callers were to share connections to a target to which each has its own.
    fn check_sharing(&self, kinds: &[Kind]) -> anyhow::Result<()> {
        let Some(connections) = &self.connections else {
            return Ok(());
        };
        require(
            connections == &self.callers || kinds.iter().any(|kind| kind.multiplexes()),
            "--connections is for grpc://, quic://, --http2 and --http3: otherwise each caller has a connection of its own \
             (-c)",
        )?;
        let mut targets = self.targets.iter().zip(kinds);
        let Some((target, _)) = targets.find(|(_, kind)| !kind.multiplexes()) else {
            return Ok(());
        };
        let fewest = connections.values().iter().copied().min().unwrap_or(0);
        let most = self.callers.values().iter().copied().max().unwrap_or(0);
        require(
            fewest >= most,
            format!(
                "{} has a connection for each caller: its {most} callers cannot share {}. Measure it in a command of \
                 its own, or give all targets --connections {most}",
                target.url,
                plural(fewest, "connection")
            ),
        )
    }

    /// Returns `plan` with another rate, as a step of a search.
    pub fn at_rate(&self, plan: &Plan, rate: f64) -> Plan {
        let mut plan = plan.clone();
        plan.load.arrival = self.load.arrival(rate);
        plan.execution.extent = self.extent(plan.load.arrival);
        plan
    }

    /// Returns the shares of each target's capacity at which it is to be measured.
    pub fn utilisations(&self) -> Option<impl Iterator<Item = f64>> {
        let shares = self.utilisation.as_ref()?.values();
        Some(shares.iter().map(|&percent| percent as f64 / 100.0))
    }

    /// Returns the length of the window. In an open loop, a number of requests is a time.
    fn extent(&self, arrival: Arrival) -> Extent {
        match (self.requests, arrival.rate()) {
            (None, _) => Extent::Time(self.load.duration),
            (Some(requests), None) => Extent::Requests(requests.get()),
            (Some(requests), Some(rate)) => {
                let time = Duration::try_from_secs_f64(requests.get() as f64 / rate);
                Extent::Time(time.unwrap_or(LONGEST).min(LONGEST))
            }
        }
    }

    fn plan(
        &self,
        base: &Plan,
        callers: u64,
        connections: Option<u64>,
        arrival: Arrival,
    ) -> anyhow::Result<Plan> {
        let base = base.clone();
        let mut plan = self.load.plan(base, callers, connections, arrival);
        let one = Some(NonZeroU64::MIN).filter(|_| self.new_connection_per_request);
        plan.load.bursts = self.burst.bursts(arrival, self.load.warmup());
        plan.load.requests_per_connection = one.or(self.requests_per_connection);
        plan.execution.extent = self.extent(arrival);
        self.compared.in_step.apply(&mut plan)?;
        self.compared.anatomy.apply(&mut plan)?;
        Ok(plan)
    }
}
