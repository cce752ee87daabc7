//! Flags of `netping proxy`.

use std::{
    fmt::Display,
    iter,
    num::{NonZeroU32, NonZeroU64},
    str::FromStr,
    sync::Arc,
};

use clap::Args;
use netping_client::{
    plan::{Arrival, Plan},
    probe::metrics::ServerSource,
    transport::ReplyLength,
};
use netping_protocol::{target::Target, units::number_in};

use crate::{
    args::{load::LoadArgs, range::Range, shared::SharedArgs},
    error::{PlanError, UsageError},
};

/// Flags of `netping proxy`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("trials", |arg| arg.default_value("3")))]
pub struct ProxyArgs {
    /// The backend itself, such as tcp://HOST:8004
    #[arg(long, value_name = "URL")]
    direct: Target,
    /// A proxy in front of it, with a name of your choice: haproxy=tcp://HOST:8011; may be repeated
    #[arg(long = "via", required = true, value_name = "NAME=URL")]
    proxies: Vec<Named<Target>>,
    /// Open loop: requests are due at this rate per second, whether or not replies come: 10k or
    /// 10k..25k+1k
    #[arg(
        long,
        value_name = "RANGE",
        group = "open",
        required_unless_present = "max"
    )]
    rate: Option<Range>,
    /// Open loop: limit on outstanding requests
    #[arg(short = 'c', long, alias = "concurrency", default_value = "64", value_name = "N", value_parser = number_in::<u32>(1..))]
    callers: u32,
    /// Also measure the maximum throughput of each path, in closed loops of these numbers of
    /// callers [default without a value: 16,64,256]
    #[arg(long, value_name = "RANGE", num_args = 0..=1, require_equals = true, default_missing_value = "16,64,256")]
    max: Option<Range>,
    #[command(flatten)]
    load: LoadArgs,
    /// Reopen a connection after N requests, as a part of the first of them; 'keep': never
    #[arg(long, default_value = "50", value_name = "N|keep")]
    requests_per_connection: Reuse,
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

/// Name of the path without a proxy.
const DIRECT: &str = "direct";

/// The steps of a comparison of paths, in groups in which only the path differs. The first path of
/// each group is the direct one.
#[derive(Debug)]
pub struct ProxyPlans {
    /// Open loops, a group for each rate.
    pub rates: Vec<Vec<Plan>>,
    /// Closed loops, a group for each number of callers.
    pub closed: Vec<Vec<Plan>>,
}

impl ProxyArgs {
    /// Returns the steps.
    pub fn plans(&self) -> Result<ProxyPlans, PlanError> {
        self.load.check()?;
        self.check_targets()?;
        self.check_names()?;
        // Replies of another length than on the direct path are a proxy's own pages.
        let reply_length = ReplyLength::default();
        let bases = self
            .shared
            .request
            .plans(self.paths().map(|(_, target)| target))?;
        let group = |callers: u64, arrival: Arrival| -> Result<Vec<Plan>, UsageError> {
            let plan = |((name, target), base): ((&str, &Target), &Plan)| {
                let mut plan = self.load.plan(base.clone(), callers, None, arrival)?;
                plan.target.label = Some(String::from(name));
                plan.target.server = self.server(name, target);
                plan.target.reply_length = Some(Arc::clone(&reply_length));
                plan.load.requests_per_connection = self.requests_per_connection.0;
                Ok(plan)
            };
            self.paths().zip(&bases).map(plan).collect()
        };
        let rates = self.rate.as_ref().map(Range::values).unwrap_or_default();
        let callers = self.max.as_ref().map(Range::values).unwrap_or_default();
        Ok(ProxyPlans {
            rates: rates
                .iter()
                .map(|&rate| group(self.callers.into(), self.load.arrival(rate as f64)))
                .collect::<Result<_, _>>()?,
            closed: callers
                .iter()
                .map(|&callers| group(callers, Arrival::Closed))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the name and the target of each path, the direct one first.
    fn paths(&self) -> impl Iterator<Item = (&str, &Target)> {
        let proxies = self.proxies.iter();
        iter::once((DIRECT, &self.direct))
            .chain(proxies.map(|proxy| (proxy.name.as_str(), &proxy.value)))
    }

    /// Returns the source of the counters of the server or proxy at `target`.
    fn server(&self, name: &str, target: &Target) -> ServerSource {
        let backend = self.shared.request.server(target);
        let pids: Vec<u32> = self
            .pids
            .iter()
            .filter(|pid| pid.name == name)
            .map(|pid| pid.value.get())
            .collect();
        let metrics = self.metrics.iter().find(|metrics| metrics.name == name);
        match metrics {
            _ if name == DIRECT => backend,
            Some(metrics) => ServerSource::Url {
                url: metrics.value.clone(),
                asked: true,
            },
            None if !pids.is_empty() => ServerSource::Processes(pids),
            // `--server-metrics off` is for proxies too.
            None if self.shared.request.without_metrics() => ServerSource::Nowhere,
            None => ServerSource::default_of_relay(target),
        }
    }

    fn check_targets(&self) -> Result<(), UsageError> {
        let targets: Vec<Target> = self.paths().map(|(_, target)| target.clone()).collect();
        self.shared.request.check(&targets)?;
        if self.shared.request.has_unix_socket() {
            return Err(UsageError(
                "--unix-socket would be the same server on every path: give the proxies' addresses"
                    .to_owned(),
            ));
        }
        let direct = &self.direct;
        match targets.iter().find(|target| target.scheme != direct.scheme) {
            None => Ok(()),
            Some(other) => Err(UsageError(format!(
                "{other} and {direct} have different protocols: a proxy is compared with the direct path by the same \
                 requests"
            ))),
        }
    }

    fn check_names(&self) -> Result<(), UsageError> {
        let names: Vec<&str> = self
            .proxies
            .iter()
            .map(|proxy| proxy.name.as_str())
            .collect();
        for (place, name) in names.iter().enumerate() {
            if *name == DIRECT {
                return Err(UsageError(format!(
                    "--via {DIRECT}=...: the path without a proxy has this name; give the proxy another one"
                )));
            }
            if names[..place].contains(name) {
                return Err(UsageError(format!(
                    "--via {name}=... is given twice; give each proxy its own name"
                )));
            }
        }
        let of_pids = self.pids.iter().map(|pid| ("--proxy-pid", &pid.name));
        let of_metrics = self
            .metrics
            .iter()
            .map(|metrics| ("--proxy-metrics", &metrics.name));
        for (flag, name) in of_pids.chain(of_metrics) {
            if !names.contains(&name.as_str()) {
                return Err(UsageError(format!(
                    "{flag} {name}=...: no --via has this name, only {}; for the server of the direct path, use \
                     --server-pid or --server-metrics",
                    names.join(", ")
                )));
            }
        }
        for (place, Named { name, .. }) in self.metrics.iter().enumerate() {
            let again = self.metrics[..place]
                .iter()
                .any(|other| other.name == *name);
            if again || self.pids.iter().any(|pid| pid.name == *name) {
                return Err(UsageError(format!(
                    "{name} has two sources of counters: give one --proxy-metrics, or a --proxy-pid for each of its \
                     processes"
                )));
            }
        }
        Ok(())
    }
}

/// A value of a proxy, by its name: `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named<T> {
    name: String,
    value: T,
}

impl<T: FromStr<Err: Display>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let value = value.parse::<T>().map_err(|error| error.to_string())?;
                Ok(Self {
                    name: name.to_owned(),
                    value,
                })
            }
            _ => Err("the name is missing; write NAME=, such as haproxy=".to_owned()),
        }
    }
}

/// Requests on a connection before it is reopened; `None`: it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reuse(Option<NonZeroU64>);

impl FromStr for Reuse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "keep" => Ok(Self(None)),
            Ok(requests) => Ok(Self(Some(requests))),
            Err(_) => Err("neither a number from 1 on nor 'keep'".to_owned()),
        }
    }
}
