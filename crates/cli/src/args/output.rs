//! Flags about results.

use std::io::{self, IsTerminal};

use anyhow::ensure;
use clap::{Args, builder::PossibleValuesParser};
use netping_client::probe::metrics::ServerSource;
use netping_protocol::target::Target;
use netping_results::{condition::Condition, warning::NAMES};
use url::Url;

use super::{
    export::{Exports, JsonTo},
    paths::apart,
};
use crate::run::{clock_demand::ClockDemand, progress::ProgressForm, trials::Trials, until::Until};

/// Flags about repetition.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trials")]
pub struct TrialArgs {
    /// Measure everything N times, the targets in random order each time, and compare the targets
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Seed of the random order, to have the same one again [default: random; in the JSON]
    #[arg(long, value_name = "N")]
    order_seed: Option<u64>,
}

impl TrialArgs {
    /// Returns the trials that the flags ask for.
    pub fn trials(&self) -> Trials {
        Trials::new(self.trials, self.order_seed)
    }
}

/// Flags about the comparison of targets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trials")]
pub struct ComparisonArgs {
    /// Measure the first target twice, as if it were two: a difference that is no larger than theirs
    /// is not shown
    #[arg(long)]
    aa: bool,
    /// Say where targets are equivalent: the same to within this share (two one-sided tests)
    #[arg(long, value_name = "SHARE%", value_parser = share_in_percent)]
    equivalent: Option<f64>,
    /// Repeat until the interval of a metric is this narrow for every target: 'p99 +-5%'
    #[arg(long, value_name = "METRIC +-SHARE%", conflicts_with_all = ["trials", "start_at"])]
    until: Option<Until>,
    /// Most trials with --until
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(3..), requires = "until")]
    max_trials: u32,
}

impl ComparisonArgs {
    /// Returns `trials` with what these flags ask for; fails if there is nothing to compare.
    pub fn of(&self, trials: Trials, targets: usize) -> anyhow::Result<Trials> {
        let count = self.until.map_or(trials.count, |_| self.max_trials);
        ensure!(
            count > 1 || (!self.aa && self.equivalent.is_none()),
            "--aa and --equivalent compare trials: give --trials 3 or more, or --until"
        );
        ensure!(
            targets > 1 || self.aa || self.equivalent.is_none(),
            "--equivalent compares targets: give a second one"
        );
        Ok(Trials {
            count,
            until: self.until,
            aa: self.aa,
            equivalent: self.equivalent,
            ..trials
        })
    }
}

/// The options of a measuring command: where its results go, and when it fails.
#[derive(Debug, Clone)]
pub struct Options {
    /// Flags about result files and exit codes.
    pub results: ResultArgs,
    /// Conditions of which none may hold.
    pub fail_if: Vec<Condition>,
    /// The demands on this host's clock.
    pub clock: ClockDemand,
}

/// Flags about result files and exit codes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Write the results as JSON after every step; '-': to standard output at the end, with tables
    /// on stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTo>,
    #[command(flatten)]
    pub exports: Exports,
    /// Progress on standard error [default: a bar on a terminal, elsewhere a line per second]
    #[arg(long, value_name = "FORM")]
    pub progress: Option<ProgressForm>,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Push live numbers to a Prometheus Pushgateway once a second; without a path: to
    /// /metrics/job/netping
    #[arg(long, value_name = "URL", value_parser = gateway)]
    pub prometheus_push: Option<String>,
}

/// Limits of which a command that measured fails.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Exit with 1 if a larger share of requests fails, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub max_error_rate: f64,
    /// Exit with 5 if there is any warning
    #[arg(long)]
    strict: bool,
    /// Accept this warning, such as SHARED_HOST, with --strict; may be repeated
    #[arg(long, value_name = "WARNING", requires = "strict", value_parser = PossibleValuesParser::new(NAMES))]
    allow: Vec<String>,
}

impl LimitArgs {
    /// Returns true if a warning of this name is a failure.
    pub fn forbids(&self, warning: &str) -> bool {
        self.strict && !self.allow.iter().any(|allowed| allowed == warning)
    }
}

impl ResultArgs {
    /// Returns the options of a run that fails under these conditions, too; fails if two results
    /// have one file.
    pub fn options(&self, fail_if: &[Condition]) -> anyhow::Result<Options> {
        let json = self.json.as_ref().and_then(JsonTo::file);
        let json = json.map(|file| ("json", file)).into_iter();
        apart(&[], json.chain(self.exports.files()))?;
        Ok(Options {
            results: self.clone(),
            fail_if: fail_if.to_vec(),
            clock: ClockDemand::default(),
        })
    }
}

/// Flags about the results of requests.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct OutputArgs {
    #[command(flatten)]
    results: ResultArgs,
    /// Show the running step on the whole terminal, with keys to end it; the server's counters are
    /// read once a second
    #[arg(long, conflicts_with = "progress")]
    pub live: bool,
    /// Exit with 4 if this holds for a step: 'p99>2ms', 'errors>0.1%', 'rate<100k'; may be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
}

impl OutputArgs {
    /// Returns the options of a run; fails if two results have one file, or there is no terminal for
    /// a full screen.
    pub fn options(&self) -> anyhow::Result<Options> {
        let mut options = self.results.options(&self.fail_if)?;
        if self.live {
            ensure!(
                io::stderr().is_terminal(),
                "--live needs a terminal at standard error: use --progress lines"
            );
            options.results.progress = Some(ProgressForm::Live);
        }
        Ok(options)
    }
}

/// Flags about the server's own counters.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server's counters")]
pub struct CounterArgs {
    /// URL of the server's metrics, or 'off' [default: http://HOST:PORT+1000/metrics]
    #[arg(long, value_name = "URL|off", conflicts_with = "server_pid")]
    server_metrics: Option<String>,
    /// Take the server's CPU time from the operating system: this process and its descendants
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
}

impl CounterArgs {
    /// Returns the source of the counters of the server at `target`.
    pub fn source(&self, target: &Target) -> ServerSource {
        match (&self.server_metrics, self.server_pid) {
            (_, Some(pid)) => ServerSource::Processes(vec![pid]),
            (Some(_), None) if self.is_off() => ServerSource::Nowhere,
            (Some(url), None) => ServerSource::Url {
                url: url.clone(),
                asked: true,
            },
            (None, None) => ServerSource::default_of(target),
        }
    }

    /// Returns true if the user names a source.
    pub fn is_given(&self) -> bool {
        self.server_metrics.is_some() || self.server_pid.is_some()
    }

    /// Returns true if no metrics are to be read.
    pub fn is_off(&self) -> bool {
        self.server_metrics.as_deref() == Some("off")
    }
}

fn gateway(text: &str) -> Result<String, String> {
    let mut url = Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or("not the URL of a Pushgateway, such as http://HOST:9091/metrics/job/netping")?;
    if url.path() == "/" {
        url.set_path("/metrics/job/netping");
    }
    Ok(url.into())
}

/// Reads a share in per cent.
pub fn share_in_percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("not a share from 0% to 100%, such as 5%".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share @ 0.0..=1.0) => Ok(share),
        _ => Err("not a share from 0 to 1, such as 0.001".to_owned()),
    }
}
