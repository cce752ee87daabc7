//! Flags about results.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use netping_protocol::target::Target;
use netping_results::{
    condition::{Answer, Condition},
    run::Step,
};
use url::Url;

use super::{ExportArgs, UsageError, paths::apart};
use crate::probe::metrics::ServerSource;

/// How often to measure.
#[derive(Debug, Clone, Args)]
pub struct TrialArgs {
    /// Measure everything so often, the targets in a random order each time, and compare the targets
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub trials: u32,
    /// Where the randomness of that order begins
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub order_seed: u64,
}

/// Where results go.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Write the results as JSON, anew after every step; '-': to standard output at the end, with tables on stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTo>,
    /// Other formats of results.
    #[command(flatten)]
    pub export: ExportArgs,
    /// Push live numbers to a Prometheus Pushgateway once a second; without a path: to /metrics/job/netping
    #[arg(long, value_name = "URL", value_parser = gateway)]
    pub prometheus_push: Option<String>,
    /// Exit with 1 when a larger share of requests fails, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub max_error_rate: f64,
    /// Exit with 1 when this holds for a step: 'p99>2ms', 'errors>0.1%', 'rate<100k'; may be given several times
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Condition>,
    /// Exit with 1 when there is any warning about a step
    #[arg(long)]
    pub strict: bool,
    /// Where the server's metrics are, or 'off' [default: http://HOST:PORT+1000/metrics]
    #[arg(long, value_name = "URL|off", conflicts_with = "server_pid")]
    server_metrics: Option<String>,
    /// Take the server's CPU time from the system: its process and what that has started, on this host
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
}

impl OutputArgs {
    /// Whether the flags say where the server's counters are.
    pub fn names_server(&self) -> bool {
        self.server_metrics.is_some() || self.server_pid.is_some()
    }

    /// Sees that each format has a file of its own.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn check(&self) -> Result<(), UsageError> {
        let json = self
            .json
            .as_ref()
            .and_then(JsonTo::file)
            .map(|file| ("json", file));
        apart(&[], json.into_iter().chain(self.export.files()))
    }

    /// Which of the conditions to fail on hold for a step, each as a line that says by how much.
    pub fn broken(&self, step: &Step) -> Vec<String> {
        let line = |condition: &Condition| match condition.check(step) {
            Answer::Fails(_) => None,
            Answer::Holds(value) => Some(format!(
                "  failed by --fail-if '{condition}': {}",
                condition.describe(value)
            )),
            Answer::Unknown => Some(format!(
                "  failed by --fail-if '{condition}': there are too few samples to tell"
            )),
        };
        self.fail_if.iter().filter_map(line).collect()
    }

    /// Where the counters of the server at `target` are.
    pub fn server(&self, target: &Target) -> ServerSource {
        match (&self.server_metrics, self.server_pid) {
            (_, Some(pid)) => ServerSource::Processes(vec![pid]),
            (Some(url), None) if url == "off" => ServerSource::Nowhere,
            (Some(url), None) => ServerSource::Url {
                url: url.clone(),
                asked: true,
            },
            (None, None) => ServerSource::default_of(target),
        }
    }
}

/// Where JSON goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTo {
    /// To standard output.
    Stdout,
    /// To this file.
    File(PathBuf),
}

impl JsonTo {
    /// The file; `None` for standard output.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

impl FromStr for JsonTo {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" {
            Self::Stdout
        } else {
            Self::File(text.into())
        })
    }
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

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share @ 0.0..=1.0) => Ok(share),
        _ => Err("not a share from 0 to 1, such as 0.001".to_owned()),
    }
}
