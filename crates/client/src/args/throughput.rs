//! Flags of `netping throughput`.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    time::Duration,
};

use clap::{Args, ValueEnum};
use humantime::format_duration;
use netping_protocol::target::Target;
use netping_report::Condition;

use super::{
    OutputArgs, PlanError, Range, TrialArgs, UsageError,
    request::{RequestArgs, positive, warmup},
};
use crate::{
    arrival::Arrival,
    cores,
    plan::{Extent, Plan, Warmup},
    transport::Kind,
};

/// Flags of `netping throughput`.
#[derive(Debug, Clone, Args)]
pub struct ThroughputArgs {
    /// Servers, such as tcp://HOST:8004, grpc://HOST:8005 or http://HOST:80/PATH
    #[arg(required = true, value_name = "URL")]
    targets: Vec<Target>,
    /// Callers, each with one request outstanding: 64, 1,8,64, 1..4096 (doubling), 1..4096x4 or 10..100+10; with
    /// --rate or --find, the most requests outstanding [default with --rate or --find: 64]
    #[arg(short = 'c', long, value_name = "RANGE", required_unless_present_any = ["rate", "find"])]
    callers: Option<Range>,
    /// Open loop: requests are due at this rate per second, whether or not replies come: 10k or 10k..25k+1k
    #[arg(long, value_name = "RANGE", group = "open")]
    rate: Option<Range>,
    /// Look for the highest rate of an open loop that keeps a condition, such as 'p99<1ms'
    #[arg(long, value_name = "CONDITION", group = "open", conflicts_with_all = ["rate", "trials"])]
    pub find: Option<Condition>,
    /// Open loop: the distances between requests
    #[arg(long, default_value = "constant", value_name = "KIND", requires = "open")]
    arrivals: Arrivals,
    /// Open loop: where the randomness of poisson arrivals begins
    #[arg(long, default_value_t = 1, value_name = "N", requires = "open")]
    seed: u64,
    /// Open loop: the most requests that may be due and wait for a caller; one more counts as not sent
    #[arg(long, default_value_t = 1_000_000, value_name = "N", requires = "open")]
    max_backlog: usize,
    /// Connections that gRPC, QUIC and --http2 callers share [default: one for each worker, over QUIC and --http2 at
    /// least one for 100 callers; TCP, and HTTP without --http2, has one for each caller]
    #[arg(long, value_name = "RANGE")]
    connections: Option<Range>,
    /// How long each step is measured
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME")]
    duration: Duration,
    /// Measure so many requests at each step instead
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    requests: Option<NonZeroU64>,
    /// Requests before that do not count: for this long, or 'auto' until the rate is steady
    #[arg(long, default_value = "2s", value_parser = warmup, value_name = "TIME|auto")]
    warmup: Warmup,
    /// Worker threads of the client [default: the number of cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Keep each worker on a core of its own
    #[arg(long)]
    pin: bool,
    /// Open a connection for each request; opening it is part of the request
    #[arg(long, conflicts_with = "requests_per_connection")]
    new_connection_per_request: bool,
    /// Open a connection anew after so many requests; opening it is part of the first of them
    #[arg(long, value_name = "N")]
    requests_per_connection: Option<NonZeroU64>,
    #[command(flatten)]
    request: RequestArgs,
    /// How often to measure.
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The most requests outstanding in an open loop, unless told otherwise.
const OPEN_LOOP_CALLERS: u64 = 64;

/// Callers on one connection of QUIC or `--http2`, unless told otherwise: servers commonly allow 100 streams, netping's
/// QUIC server 256.
const STREAMS: usize = 100;

/// The distances between the requests of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Equal
    Constant,
    /// Exponentially distributed, as those of many independent users
    Poisson,
}

impl ThroughputArgs {
    /// The steps: for each number of callers and connections and each rate a group, in which only the target differs.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn groups(&self) -> Result<Vec<Vec<Plan>>, PlanError> {
        let kinds = self.targets.iter().map(|target| self.request.kind(target.scheme));
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
        if self.connections.is_some() && !kinds.into_iter().any(Kind::multiplexes) {
            let reason = "--connections is for grpc://, quic:// and --http2: otherwise each caller has a connection of \
                          its own (-c)";
            return Err(UsageError(reason.to_owned()).into());
        }
        if let Warmup::Time(warmup) = self.warmup
            && self.requests.is_none()
            && self.duration < warmup
        {
            let (duration, warmup) = (format_duration(self.duration), format_duration(warmup));
            return Err(UsageError(format!(
                "-d {duration} is shorter than the warm-up of {warmup}: measure longer, or give a shorter --warmup"
            ))
            .into());
        }
        let mut groups = Vec::new();
        for &callers in self.callers.as_ref().map_or(&[OPEN_LOOP_CALLERS][..], Range::values) {
            for connections in self.connection_counts(callers) {
                for arrival in self.arrivals() {
                    let plan = |target: &Target| self.plan(target, callers, connections, arrival);
                    groups.push(self.targets.iter().map(plan).collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
        if groups.is_empty() {
            return Err(UsageError(
                "every step has more --connections than callers (-c): nothing to measure".to_owned(),
            )
            .into());
        }
        Ok(groups)
    }

    /// The numbers of shared connections that so many callers can use; `None`: as many as there are workers.
    fn connection_counts(&self, callers: u64) -> Vec<Option<u64>> {
        match &self.connections {
            None => vec![None],
            Some(range) => range.values().iter().filter(|&&count| count <= callers).map(|&count| Some(count)).collect(),
        }
    }

    /// `plan` with another rate: a step of a search.
    pub fn at_rate(&self, plan: &Plan, rate: f64) -> Plan {
        let arrival = self.arrival(rate);
        Plan { arrival, extent: self.extent(arrival), ..plan.clone() }
    }

    /// The ways in which requests come about: one for each rate, or a closed loop.
    fn arrivals(&self) -> Vec<Arrival> {
        let rates = self.rate.as_ref().map(|rates| rates.values().iter().map(|&rate| self.arrival(rate as f64)));
        rates.map_or_else(|| vec![Arrival::Closed], Iterator::collect)
    }

    fn arrival(&self, rate: f64) -> Arrival {
        match self.arrivals {
            Arrivals::Constant => Arrival::Constant(rate),
            Arrivals::Poisson => Arrival::Poisson { rate, seed: self.seed },
        }
    }

    /// How long the window is: an open loop's number of requests is a time.
    fn extent(&self, arrival: Arrival) -> Extent {
        match (self.requests, arrival.rate()) {
            (None, _) => Extent::Time(self.duration),
            (Some(requests), None) => Extent::Requests(requests.get()),
            (Some(requests), Some(rate)) => Extent::Time(Duration::from_secs_f64(requests.get() as f64 / rate)),
        }
    }

    fn plan(
        &self,
        target: &Target,
        callers: u64,
        connections: Option<u64>,
        arrival: Arrival,
    ) -> Result<Plan, PlanError> {
        let (connector, trust) = self.request.connector(target)?;
        let kind = self.request.kind(target.scheme)?;
        let callers = u32::try_from(callers)
            .map_err(|_| UsageError(format!("{callers} callers are too many; 4294967295 are the most")))?
            as usize;
        let workers = self.workers.map_or_else(|| cores::own().len().max(1), NonZeroUsize::get);
        let connections = match connections {
            _ if !kind.multiplexes() => callers,
            None if matches!(kind, Kind::Quic | Kind::Http2) => callers.min(workers.max(callers.div_ceil(STREAMS))),
            None => callers.min(workers),
            Some(connections) => connections as usize,
        };
        let requests_per_connection =
            if self.new_connection_per_request { Some(NonZeroU64::MIN) } else { self.requests_per_connection };
        Ok(Plan {
            target: target.clone(),
            label: None,
            server: self.output.server(target),
            kind,
            connector,
            trust,
            resolve_each: false,
            arrival,
            max_backlog: self.max_backlog,
            callers,
            connections,
            workers: workers.min(connections),
            pin: self.pin,
            busy_poll: self.request.busy_poll,
            payload: self.request.payload(target.scheme),
            reply: self.request.reply(),
            warmup: self.warmup,
            extent: self.extent(arrival),
            timeout: self.request.timeout,
            requests_per_connection,
        })
    }
}
