//! Flags about results.

use std::io::{self, IsTerminal};

use clap::{Args, builder::PossibleValuesParser};
use netping_client::probe::metrics::ServerSource;
use netping_protocol::target::Target;
use netping_results::{condition::Condition, warning::NAMES};
use url::Url;

use super::{export::ExportArgs, paths::apart};
use crate::{
    environment,
    error::UsageError,
    run::{
        clock_demand::ClockDemand,
        options::{JsonTo, Limits, Options},
        progress::Form,
        trials::Trials,
        until::Until,
    },
};

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
        let order_seed = self.order_seed.unwrap_or_else(environment::random_seed);
        Trials::new(self.trials, order_seed)
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
    /// Returns `trials` with what these flags ask for.
    ///
    /// # Errors
    /// [`UsageError`] if there is nothing to compare.
    pub fn of(&self, trials: Trials, targets: usize) -> Result<Trials, UsageError> {
        let trials = Trials {
            count: if self.until.is_some() {
                self.max_trials
            } else {
                trials.count
            },
            until: self.until,
            aa: self.aa,
            equivalent: self.equivalent,
            ..trials
        };
        if (self.aa || self.equivalent.is_some()) && trials.count < 2 {
            return Err(UsageError(
                "--aa and --equivalent compare trials: give --trials 3 or more, or --until"
                    .to_owned(),
            ));
        }
        if self.equivalent.is_some() && targets < 2 && !self.aa {
            return Err(UsageError(
                "--equivalent compares targets: give a second one".to_owned(),
            ));
        }
        Ok(trials)
    }
}

/// Flags about result files and exit codes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Write the results as JSON after every step; '-': to standard output at the end, with tables
    /// on stderr
    #[arg(long, value_name = "FILE", value_parser = json_to)]
    json: Option<JsonTo>,
    #[command(flatten)]
    export: ExportArgs,
    /// Progress on standard error [default: a bar on a terminal, elsewhere a line per second]
    #[arg(long, value_name = "FORM")]
    progress: Option<Form>,
    /// Exit with 1 if a larger share of requests fails, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    max_error_rate: f64,
    /// Exit with 5 if there is any warning
    #[arg(long)]
    strict: bool,
    /// Accept this warning, such as SHARED_HOST, with --strict; may be repeated
    #[arg(long, value_name = "WARNING", requires = "strict", value_parser = PossibleValuesParser::new(NAMES))]
    allow: Vec<String>,
    /// Push live numbers to a Prometheus Pushgateway once a second; without a path: to
    /// /metrics/job/netping
    #[arg(long, value_name = "URL", value_parser = gateway)]
    prometheus_push: Option<String>,
}

impl ResultArgs {
    /// Returns the options of a run that fails under these conditions, too.
    ///
    /// # Errors
    /// [`UsageError`] if two results have one file.
    pub fn options(&self, fail_if: &[Condition]) -> Result<Options, UsageError> {
        let json = self.json.as_ref().and_then(JsonTo::file);
        let exports = &self.export.0;
        apart(
            &[],
            json.map(|file| ("json", file))
                .into_iter()
                .chain(exports.files()),
        )?;
        Ok(Options {
            json: self.json.clone(),
            exports: exports.clone(),
            push: self.prometheus_push.clone(),
            progress: self.progress,
            clock: ClockDemand::default(),
            limits: Limits {
                max_error_rate: self.max_error_rate,
                fail_if: fail_if.to_vec(),
                strict: self.strict,
                allowed: self.allow.clone(),
            },
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
    live: bool,
    /// Exit with 4 if this holds for a step: 'p99>2ms', 'errors>0.1%', 'rate<100k'; may be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
}

impl OutputArgs {
    /// Returns the options of a run.
    ///
    /// # Errors
    /// [`UsageError`] if two results have one file, or there is no terminal for a full screen.
    pub fn options(&self) -> Result<Options, UsageError> {
        let mut options = self.results.options(&self.fail_if)?;
        if self.live {
            if !io::stderr().is_terminal() {
                return Err(UsageError(
                    "--live needs a terminal at standard error: use --progress lines".to_owned(),
                ));
            }
            options.progress = Some(Form::Live);
        }
        Ok(options)
    }

    /// Returns true if a full screen is asked for.
    pub fn is_live(&self) -> bool {
        self.live
    }
}

/// Flags about the server's own counters.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server's counters")]
pub struct ServerArgs {
    /// URL of the server's metrics, or 'off' [default: http://HOST:PORT+1000/metrics]
    #[arg(long, value_name = "URL|off", conflicts_with = "server_pid")]
    server_metrics: Option<String>,
    /// Take the server's CPU time from the operating system: this process and its descendants
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
}

impl ServerArgs {
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

/// Reads a destination of JSON.
pub fn json_to(text: &str) -> Result<JsonTo, String> {
    Ok(match text {
        "-" => JsonTo::Stdout,
        file => JsonTo::File(file.into()),
    })
}

fn gateway(text: &str) -> Result<String, String> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host());
    let mut url =
        url.ok_or("not the URL of a Pushgateway, such as http://HOST:9091/metrics/job/netping")?;
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
