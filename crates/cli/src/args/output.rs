//! Flags about results.

use std::{
    io::{self, IsTerminal},
    str::FromStr,
};

use clap::{Args, builder::PossibleValuesParser};
use netping_client::probe::metrics::ServerSource;
use netping_protocol::target::Target;
use netping_results::{compare::Gate, condition::Condition, metric::Metric, warning::NAMES};
use url::Url;

use super::{
    choice::one_of,
    export::{Exports, JsonTo},
    paths::apart,
    share::share,
};
use crate::{
    error::{require, usage},
    run::{clock_demand::ClockDemand, in_step::Announcement, progress::ProgressForm},
};

/// The options of a measuring command: where its results go, and when it fails.
#[derive(Debug, Clone)]
pub struct Options {
    /// Flags about result files and exit codes.
    pub results: ResultArgs,
    /// Conditions of which none may hold for a step.
    pub fail_if: Vec<Condition>,
    /// Conditions of which none may hold for a difference between targets.
    pub changes: Vec<Gate>,
    /// The demands on this host's clock.
    pub clock: ClockDemand,
    /// The file that will have the moment of the first request, if one will.
    pub announcement: Option<Announcement>,
    /// URL of the Pushgateway that gets live numbers.
    pub gateway: Option<String>,
    /// True with `--prove`.
    pub prove: bool,
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
}

/// Faults of a window that are tolerated.
#[derive(Debug, Clone, Args)]
pub struct ToleranceArgs {
    /// Exit with 1 if a larger share of requests fails, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub max_error_rate: f64,
    #[command(flatten)]
    pub accepted: AllowArgs,
}

/// Limits of which a command that measured fails.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    #[command(flatten)]
    pub tolerated: ToleranceArgs,
    /// Exit with 5 if the results are NOT VALID, as with --fail-if; '--strict=notes': if there is any
    /// warning
    #[arg(
        long, value_name = "invalid|notes", num_args = 0..=1, require_equals = true, hide_possible_values = true,
        default_missing_value = "invalid", value_parser = one_of(&STRICTNESS)
    )]
    pub strict: Option<Strictness>,
}

/// The warnings of which a command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Those that invalidate.
    Invalid,
    /// Notes too.
    Notes,
}

static STRICTNESS: [(&str, Strictness); 2] = [
    ("invalid", Strictness::Invalid),
    ("notes", Strictness::Notes),
];

/// The name that stands for all warnings.
const ALL: &str = "all";

/// Flags about warnings that are no failure.
#[derive(Debug, Clone, Default, Args)]
pub struct AllowArgs {
    /// Accept these warnings, such as STALLED,NOT_STEADY, or 'all'; may be repeated
    #[arg(long, value_name = "WARNING", value_delimiter = ',', value_parser = PossibleValuesParser::new(NAMES.iter().copied().chain([ALL])))]
    allow: Vec<String>,
}

impl AllowArgs {
    /// Returns true if a warning of this name is no failure.
    pub fn accepts(&self, name: &str) -> bool {
        self.allow.iter().any(|own| own == name || own == ALL)
    }

    /// Returns the names of all warnings that are no failure.
    pub fn names(&self) -> Vec<String> {
        let accepted = NAMES.iter().filter(|name| self.accepts(name));
        accepted.map(ToString::to_string).collect()
    }
}

/// Returns a list of warnings that fail a command, and the flag that accepts them.
pub fn not_accepted(names: &[&str]) -> String {
    let [listed, flag] = [", ", ","].map(|separator| names.join(separator));
    format!("{listed} (--allow {flag} accepts it)")
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
            changes: Vec::new(),
            clock: ClockDemand::default(),
            announcement: None,
            gateway: None,
            prove: false,
        })
    }
}

/// Flags about the results of requests.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct OutputArgs {
    #[command(flatten)]
    results: ResultArgs,
    /// Show the running step on the whole terminal, with keys to end it
    #[arg(long, conflicts_with = "progress")]
    pub live: bool,
    /// Push live numbers to a Prometheus Pushgateway once a second; without a path: to
    /// /metrics/job/netping
    #[arg(long, value_name = "URL", value_parser = gateway)]
    prometheus_push: Option<String>,
    /// Also measure servers of netping's own with a planted difference of 2 % and a planted stall, and say whether
    /// these were seen: takes 0.7 s for each trial, of which there are ten or more, and 1 s
    #[arg(long)]
    prove: bool,
    /// Exit with 4 if this holds for a step: 'p99>2ms', 'errors>0.1%', 'rate<100k'; or for the difference of a
    /// target's trials from the first target's: 'p50>+10%'. Exit with 5 if the results are NOT VALID. May be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<FailIf>,
}

/// A condition of which none may hold.
#[derive(Debug, Clone)]
enum FailIf {
    /// On a step.
    Step(Condition),
    /// On the difference between a target and the first.
    Change(Gate),
}

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if Gate::is_meant(text) {
            text.parse().map(Self::Change)
        } else {
            text.parse().map(Self::Step)
        }
    }
}

impl OutputArgs {
    /// Returns the options of a run that compares no targets; fails if two results have one file, there is
    /// no terminal for a full screen, or a condition is on a difference.
    pub fn options(&self) -> anyhow::Result<Options> {
        let options = self.comparing()?;
        if let Some(change) = options.changes.first() {
            return Err(usage(format!(
                "--fail-if '{change}' is about a difference between targets: give it to throughput, latency or compare"
            )));
        }
        Ok(options)
    }

    /// Returns the warnings that are no failure.
    pub fn accepted(&self) -> &AllowArgs {
        &self.results.limits.tolerated.accepted
    }

    /// Returns true if a condition is on a difference between targets.
    pub fn has_changes(&self) -> bool {
        let mut all = self.fail_if.iter();
        all.any(|own| matches!(own, FailIf::Change(_)))
    }

    /// Returns true if a condition is on each step.
    pub fn has_conditions(&self) -> bool {
        let mut all = self.fail_if.iter();
        all.any(|own| matches!(own, FailIf::Step(_)))
    }

    /// Returns true if a condition is on this metric or its difference.
    pub fn is_on(&self, metric: &Metric) -> bool {
        let mut all = self.fail_if.iter();
        all.any(|own| match own {
            FailIf::Step(condition) => condition.metric() == metric,
            FailIf::Change(gate) => gate.metric() == metric,
        })
    }

    /// Returns the options of a run that may compare targets; fails if two results have one file, or there
    /// is no terminal for a full screen.
    pub fn comparing(&self) -> anyhow::Result<Options> {
        let mut options = self.results.options(&[])?;
        for own in &self.fail_if {
            match own {
                FailIf::Step(condition) => options.fail_if.push(condition.clone()),
                FailIf::Change(gate) => options.changes.push(gate.clone()),
            }
        }
        options.gateway.clone_from(&self.prometheus_push);
        options.prove = self.prove;
        if self.live {
            require(
                io::stderr().is_terminal(),
                "--live needs a terminal at standard error: use --progress lines",
            )?;
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

/// Reads the URL of a Pushgateway.
pub(crate) fn gateway(text: &str) -> Result<String, String> {
    let mut url = Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "http" && url.has_host())
        .ok_or("not the URL of a Pushgateway, such as http://HOST:9091/metrics/job/netping")?;
    if url.path() == "/" {
        url.set_path("/metrics/job/netping");
    }
    Ok(url.into())
}
