//! A run as data: what was measured, where, and the results.

mod asked;
pub mod clock;
pub mod kind;
pub mod measurement;
pub mod of_trials;
pub mod part;
pub mod proof;
pub mod replaced;
pub mod rounds;
pub mod settings;
pub mod step;

pub(crate) use asked::unlike;
pub use clock::{ClockOffset, HostClock};
pub use kind::Kind;
pub use measurement::{Measurement, Pairing};
pub use of_trials::NotATrial;
pub use part::{Part, PartStep};
pub use proof::Proof;
pub use replaced::Replaced;
pub use rounds::{CutRound, WholeRounds};
pub use settings::{InProcess, PartSettings, StepSettings};
pub use step::{Place, Step};

use std::collections::BTreeMap;

use netping_measure::status::Status;
use serde::{Deserialize, Serialize};

/// The version of the result file's form. It rises when a reader of the old form could misread the
/// new one.
pub const SCHEMA_VERSION: u32 = 3;

/// One invocation of a command, as it stands in a result file. The schema is in
/// `schema/run.schema.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Completeness.
    pub status: Status,
    /// The program that wrote it.
    pub tool: Tool,
    /// The command line.
    pub command_line: Vec<String>,
    /// The command that measured it.
    #[serde(default)]
    pub kind: Kind,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// Where the client ran.
    pub environment: Environment,
    /// The time of day there; absent in a merged run, whose parts have theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<HostClock>,
    /// The seed of the order in which the targets of a trial were measured; absent with one trial.
    pub order_seed: Option<u64>,
    /// The measurements that are compared within the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairings: Vec<Pairing>,
    /// The number of times at which the trials could end: with several, intervals hold at all of them.
    #[serde(default = "once")]
    pub looks: usize,
    /// The margin within which targets are called equivalent, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The warnings that the command was told to accept, if its answer depends on that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// What was planted on the client's machine, and what was seen of it; absent without `--prove`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The windows that were measured again, whose steps are not kept; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Replaced>,
    /// The steps that are done, in the order they were run.
    pub steps: Vec<Step>,
    /// The clients whose results were added up; empty: there was one client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// The name under which the environment's settings have which CPUs client and servers were kept to.
pub const PLACEMENT: &str = "placement";

fn once() -> usize {
    1
}

/// The program that wrote a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
}

/// The machine that the client ran on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Its name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// The processor's model.
    pub cpu_model: String,
    /// Cores that the client may run on.
    pub cpus: usize,
    /// The limit on open files.
    pub open_files: u64,
    /// Other properties of the system that may affect the numbers: setting and value.
    pub system: BTreeMap<String, String>,
}
