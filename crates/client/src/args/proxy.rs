//! Flags of `netping proxy`.

use std::{
    fmt::Display,
    num::{NonZeroU32, NonZeroU64},
    str::FromStr,
    sync::Arc,
};

use clap::Args;
use netping_protocol::target::Target;

use super::{
    OutputArgs, Range, TrialArgs,
    load::{LoadArgs, OPEN_LOOP_CALLERS},
    request::RequestArgs,
};
use crate::{
    engine::arrival::Arrival,
    error::{PlanError, UsageError},
    plan::Plan,
    probe::metrics::ServerSource,
    transport::ReplyLength,
};

/// Flags of `netping proxy`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("trials", |arg| arg.default_value("3")))]
pub struct ProxyArgs {
    /// The backend itself, such as tcp://HOST:8004
    #[arg(long, value_name = "URL")]
    direct: Target,
    /// A proxy in front of it, by a name of your choice: haproxy=tcp://HOST:8011; may be given several times
    #[arg(long = "via", required = true, value_name = "NAME=URL")]
    proxies: Vec<Named<Target>>,
    /// Open loop: requests are due at this rate per second, whether or not replies come: 10k or 10k..25k+1k
    #[arg(
        long,
        value_name = "RANGE",
        group = "open",
        required_unless_present = "max"
    )]
    rate: Option<Range>,
    /// Open loop: the most requests outstanding
    #[arg(short = 'c', long, default_value_t = OPEN_LOOP_CALLERS as u32, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    callers: u32,
    /// Then look for the most that goes on each path: closed loops of so many callers [default without a value:
    /// 16,64,256]
    #[arg(long, value_name = "RANGE", num_args = 0..=1, require_equals = true, default_missing_value = "16,64,256")]
    max: Option<Range>,
    /// How load comes about.
    #[command(flatten)]
    load: LoadArgs,
    /// Open a connection anew after so many requests, which is part of the first of them; 'keep': never
    #[arg(long, default_value = "50", value_name = "N|keep")]
    requests_per_connection: Reuse,
    #[command(flatten)]
    request: RequestArgs,
    /// How often to measure.
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Take a proxy's CPU time and memory from the system: one of its processes on this host, with what that has started;
    /// may be given several times
    #[arg(long = "proxy-pid", value_name = "NAME=PID")]
    pids: Vec<Named<NonZeroU32>>,
    /// Where a proxy's metrics are, for Prometheus [default: http://HOST:PORT+1000/metrics, where netping-proxy has
    /// them; none for http://]
    #[arg(long = "proxy-metrics", value_name = "NAME=URL")]
    metrics: Vec<Named<String>>,
    /// How long the replies are where all paths lead to a web server: a proxy's own page is none of them.
    #[arg(skip)]
    reply_length: ReplyLength,
}

/// The path without a proxy, among the names of paths.
const DIRECT: &str = "direct";

impl ProxyArgs {
    /// The open loops: for each rate a group, in which only the path differs; the direct one is the first.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn at_rates(&self) -> Result<Vec<Vec<Plan>>, PlanError> {
        self.check()?;
        let rates = self.rate.as_ref().map(Range::values).unwrap_or_default();
        rates
            .iter()
            .map(|&rate| self.group(self.callers.into(), self.load.arrival(rate as f64)))
            .collect()
    }

    /// The closed loops: for each number of callers a group like those.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn at_most(&self) -> Result<Vec<Vec<Plan>>, PlanError> {
        self.check()?;
        let callers = self.max.as_ref().map(Range::values).unwrap_or_default();
        callers
            .iter()
            .map(|&callers| self.group(callers, Arrival::Closed))
            .collect()
    }

    fn group(&self, callers: u64, arrival: Arrival) -> Result<Vec<Plan>, PlanError> {
        let plan = |name: &str, target: &Target| -> Result<Plan, PlanError> {
            let base = self.request.plan(target, &self.output)?;
            let server = self.server(name, target);
            let requests_per_connection = self.requests_per_connection.0;
            let label = Some(name.to_owned());
            let reply_length = Some(Arc::clone(&self.reply_length));
            let plan = self.load.plan(base, callers, None, arrival)?;
            Ok(Plan {
                label,
                server,
                requests_per_connection,
                reply_length,
                ..plan
            })
        };
        let direct = std::iter::once(plan(DIRECT, &self.direct));
        direct
            .chain(
                self.proxies
                    .iter()
                    .map(|proxy| plan(&proxy.name, &proxy.value)),
            )
            .collect()
    }

    /// Where the counters of what is at `target` are: those of the backend, or of a proxy.
    fn server(&self, name: &str, target: &Target) -> ServerSource {
        let backend = self.output.server(target);
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
            // `--server-metrics off` asks nobody; and what speaks HTTP is not netping's own.
            None if backend == ServerSource::Nowhere || target.scheme.is_http() => {
                ServerSource::Nowhere
            }
            None => ServerSource::default_of(target),
        }
    }

    fn check(&self) -> Result<(), UsageError> {
        self.load.check()?;
        let targets: Vec<Target> = std::iter::once(&self.direct)
            .chain(self.proxies.iter().map(|proxy| &proxy.value))
            .cloned()
            .collect();
        self.request.check(&targets)?;
        if let Some(other) = targets
            .iter()
            .find(|target| target.scheme != self.direct.scheme)
        {
            return Err(UsageError(format!(
                "{other} does not speak what {} does: a proxy is compared with the direct path by the same requests",
                self.direct
            )));
        }
        let names: Vec<&str> = self
            .proxies
            .iter()
            .map(|proxy| proxy.name.as_str())
            .collect();
        for (place, name) in names.iter().enumerate() {
            if *name == DIRECT {
                return Err(UsageError(format!(
                    "--via {DIRECT}=...: this is the name of the path without a proxy; give the proxy another one"
                )));
            }
            if names[..place].contains(name) {
                return Err(UsageError(format!(
                    "--via {name}=... stands there twice; give each proxy its own name"
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
                    "{flag} {name}=...: no --via has this name, only {}; for the direct path's server there are \
                     --server-pid and --server-metrics",
                    names.join(", ")
                )));
            }
        }
        for (place, metrics) in self.metrics.iter().enumerate() {
            let again = self.metrics[..place]
                .iter()
                .any(|other| other.name == metrics.name);
            if again || self.pids.iter().any(|pid| pid.name == metrics.name) {
                let name = &metrics.name;
                return Err(UsageError(format!(
                    "the counters of {name} are in one place: give one --proxy-metrics, or --proxy-pid for each of its \
                     processes"
                )));
            }
        }
        Ok(())
    }
}

/// What belongs to a proxy, by its name: `NAME=VALUE`.
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
            _ => Err("no name stands before it; write NAME=, such as haproxy=".to_owned()),
        }
    }
}

/// How many requests a connection serves; `None`: it is kept.
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
