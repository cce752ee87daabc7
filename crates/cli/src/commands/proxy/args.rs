//! Flags of `netping proxy`.

use std::{collections::BTreeSet, iter, num::NonZeroU32, sync::Arc, time::Duration};

use clap::Args;
use netping_client::{
    plan::{Arrival, Extent, Plan},
    probe::metrics::ServerSource,
    transport::ReplyLength,
};
use netping_protocol::{target::Target, units::number_in};

use crate::{
    args::{
        choice::Named,
        load::{CALLERS, ClientLoadArgs},
        range::{CountLimit, Range, count_or, within},
        shared::SharedArgs,
        target::{NamedTarget, with_name},
        time::positive,
    },
    error::require,
};

/// Flags of `netping proxy`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("trials", |arg| arg.default_value("6")))]
pub struct ProxyComparisonArgs {
    /// The backend itself, such as tcp://HOST:8004
    #[arg(long, value_name = "URL")]
    direct: NamedTarget,
    /// A proxy in front of it, with a name of your choice: haproxy=tcp://HOST:8011; may be repeated
    #[arg(long = "via", required = true, value_name = "NAME=URL", value_parser = with_name)]
    proxies: Vec<NamedTarget>,
    /// Open loop: requests are due at this rate per second, whether or not replies come: 10k or
    /// 10k..25k+1k
    #[arg(
        long,
        value_name = "RANGE",
        group = "open",
        required_unless_present = "max"
    )]
    rate: Option<Range>,
    /// Open loop: measured time at the highest rate, by which the proxies are compared [default: -d]
    #[arg(long, value_parser = positive, value_name = "TIME", requires = "rate")]
    hold: Option<Duration>,
    /// Open loop: limit on outstanding requests
    #[arg(short = 'c', long, alias = "concurrency", default_value = "64", value_name = "N", value_parser = number_in::<u32>(1..))]
    callers: u32,
    /// Also measure the maximum throughput of each path, in closed loops of these numbers of
    /// callers [default without a value: 16,64,256]
    #[arg(long, value_name = "RANGE", num_args = 0..=1, require_equals = true, default_missing_value = "16,64,256", value_parser = within(str::parse, CALLERS))]
    max: Option<Range>,
    #[command(flatten)]
    load: ClientLoadArgs,
    /// Reopen a connection after N requests, as a part of the first of them; 'keep': never
    #[arg(long, default_value = "50", value_name = "N|keep", value_parser = count_or("keep"))]
    requests_per_connection: CountLimit,
    #[command(flatten)]
    pub shared: SharedArgs,
    /// Take a proxy's CPU time and memory from this process and its descendants on this host; may
    /// be repeated
    #[arg(long = "proxy-pid", value_name = "NAME=PID")]
    pids: Vec<Named<NonZeroU32>>,
    /// URL of a proxy's Prometheus metrics [default: http://HOST:PORT+1000/metrics, if
    /// netping-proxy answers there]
    #[arg(long = "proxy-metrics", value_name = "NAME=URL")]
    metrics: Vec<Named<String>>,
}

/// Name of the path without a proxy, unless the user gives another.
const DIRECT: &str = "direct";

impl ProxyComparisonArgs {
    /// Returns the steps, in groups in which only the path differs: open loops for each rate, then
    /// closed loops for each number of callers. The first path of each group is the direct one.
    pub fn groups(&self) -> anyhow::Result<Vec<Vec<Plan>>> {
        self.load.check()?;
        require(
            self.hold.is_none_or(|hold| hold >= self.load.duration),
            "--hold is shorter than -d: it is the time at the highest rate, and -d that at the others",
        )?;
        self.check_targets()?;
        self.check_names()?;
        // Replies of another length than on the direct path are a proxy's own pages.
        let reply_length = ReplyLength::default();
        let targets = self.paths().map(|(_, target)| target);
        let bases = self.shared.request.plans(targets)?;
        let group = |(callers, arrival): (u64, Arrival)| {
            let plan = |((name, target), base): ((&str, &Target), &Plan)| {
                let mut plan = self.load.plan(base.clone(), callers, None, arrival);
                plan.target.label = Some(name.to_owned());
                plan.target.server = self.server(name, target);
                plan.target.behind_proxy = name != self.direct_name();
                plan.target.reply_length = Some(Arc::clone(&reply_length));
                plan.load.requests_per_connection = self.requests_per_connection.0;
                if let Some(hold) = self.hold.filter(|_| self.is_highest(arrival)) {
                    plan.execution.extent = Extent::Time(hold);
                }
                plan
            };
            self.paths().zip(&bases).map(plan).collect()
        };
        let rates = self.rate.as_ref().map(Range::values).unwrap_or_default();
        let open = rates
            .iter()
            .map(|&rate| (self.callers.into(), self.load.arrival(rate as f64)));
        let callers = self.max.as_ref().map(Range::values).unwrap_or_default();
        let closed = callers.iter().map(|&callers| (callers, Arrival::Closed));
        Ok(open.chain(closed).map(group).collect())
    }

    /// Returns true if the paths of a group are compared: at the highest rate, and in closed loops. At
    /// the lower rates of a ramp they are described, so that fewer claims share the correction.
    pub fn is_compared(&self, group: &[Plan]) -> bool {
        group.first().is_some_and(|plan| {
            let arrival = plan.load.arrival;
            arrival == Arrival::Closed || self.is_highest(arrival)
        })
    }

    fn is_highest(&self, arrival: Arrival) -> bool {
        let rates = self.rate.iter().flat_map(Range::values);
        let highest = rates.max().map(|&rate| rate as f64);
        highest.is_some() && arrival.rate() == highest
    }

    /// Returns the name and the target of each path, the direct one first.
    fn paths(&self) -> impl Iterator<Item = (&str, &Target)> {
        let proxies = self.proxies.iter();
        let proxies = proxies.filter_map(|own| Some((own.name.as_deref()?, &own.url)));
        iter::once((self.direct_name(), &self.direct.url)).chain(proxies)
    }

    /// Returns the name of the path without a proxy.
    fn direct_name(&self) -> &str {
        self.direct.name.as_deref().unwrap_or(DIRECT)
    }

    /// Returns the source of the counters of the server or proxy at `target`.
    fn server(&self, name: &str, target: &Target) -> ServerSource {
        let own = &self.shared.request.server;
        if name == self.direct_name() {
            return own.source(target);
        }
        if let Some(metrics) = self.metrics.iter().find(|metrics| metrics.name == name) {
            let url = metrics.value.clone();
            return ServerSource::Url { url, asked: true };
        }
        let pids = self.pids.iter().filter(|pid| pid.name == name);
        let pids: Vec<u32> = pids.map(|pid| pid.value.get()).collect();
        match pids[..] {
            // `--server-metrics off` is for proxies too.
            [] if own.is_off() => ServerSource::Nowhere,
            [] => ServerSource::default_of_relay(target),
            _ => ServerSource::Processes(pids),
        }
    }

    fn check_targets(&self) -> anyhow::Result<()> {
        let targets: Vec<Target> = self.paths().map(|(_, target)| target.clone()).collect();
        self.shared.request.check(&targets)?;
        require(
            self.shared.request.unix_socket.is_none(),
            "--unix-socket would be the same server on every path: give the proxies' addresses",
        )?;
        let direct = &self.direct.url;
        for other in &targets {
            require(
                other.scheme == direct.scheme,
                format!(
                    "{other} and {direct} have different protocols: a proxy is compared with the direct path by the same \
                 requests"
                ),
            )?;
        }
        Ok(())
    }

    fn check_names(&self) -> anyhow::Result<()> {
        let direct = self.direct_name();
        let proxies: BTreeSet<&str> = self.paths().skip(1).map(|(name, _)| name).collect();
        require(
            proxies.len() == self.proxies.len() && !proxies.contains(direct),
            format!("each --via needs a name of its own, and {direct} is the path without a proxy"),
        )?;
        let with_pids: BTreeSet<&str> = self.pids.iter().map(|own| &*own.name).collect();
        let mut sources: Vec<&str> = self.metrics.iter().map(|own| &*own.name).collect();
        sources.extend(with_pids);
        for (place, name) in sources.iter().enumerate() {
            require(
                proxies.contains(name),
                format!(
                    "--proxy-pid and --proxy-metrics: no --via has the name {name}; for the server of the direct path, use \
                     --server-pid or --server-metrics"
                ),
            )?;
            require(
                !sources[..place].contains(name),
                format!(
                    "{name} has two sources of counters: give one --proxy-metrics, or a --proxy-pid for each of its processes"
                ),
            )?;
        }
        Ok(())
    }
}
