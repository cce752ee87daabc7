//! The options of a measuring command: where its results go, and when it fails.

use std::path::{Path, PathBuf};

use netping_report::export::{ExportError, FORMATS, Format};
use netping_results::{
    condition::{Answer, Condition},
    format::plural,
    run::{Run, Step},
};

use crate::run::{clock_demand::ClockDemand, progress::Form};

/// The format of a page.
const PAGE: &str = "html";

/// The options of a measuring command.
#[derive(Debug, Clone)]
pub struct Options {
    /// Destination of the results as JSON.
    pub json: Option<JsonTo>,
    /// Files in other formats.
    pub exports: Exports,
    /// URL of a Pushgateway that gets live numbers.
    pub push: Option<String>,
    /// The form of progress on standard error; `None`: as it is a terminal or not.
    pub progress: Option<Form>,
    /// The demands on this host's clock.
    pub clock: ClockDemand,
    /// Conditions under which the command fails.
    pub limits: Limits,
}

/// A destination of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTo {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl JsonTo {
    /// Returns the file; `None` for standard output.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

/// Conditions under which a command fails, although it measured.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Largest share of requests that may fail, from 0 to 1.
    pub max_error_rate: f64,
    /// Conditions of which none may hold.
    pub fail_if: Vec<Condition>,
    /// Any warning is a failure.
    pub strict: bool,
    /// Names of warnings that are none.
    pub allowed: Vec<String>,
}

impl Limits {
    /// Returns true if a warning of this name is a failure.
    pub fn forbids(&self, warning: &str) -> bool {
        self.strict && !self.allowed.iter().any(|allowed| allowed == warning)
    }

    /// Returns a line for each `--fail-if` condition that holds for a step, perhaps one of several
    /// trials, or cannot be decided.
    pub fn broken(&self, step: &Step, has_trials: bool) -> Vec<String> {
        let callers = plural(step.settings.callers as u64, "caller");
        let trial = if has_trials {
            format!(", trial {}", step.trial)
        } else {
            String::new()
        };
        let place = format!("{} with {callers}{trial}", step.name());
        let line = |condition: &Condition| match condition.check(step) {
            Answer::Fails(_) => None,
            Answer::Holds(value) => Some(format!(
                "  failed by --fail-if '{condition}': {place}: {}",
                condition.describe(value)
            )),
            Answer::Unknown => Some(format!(
                "  failed by --fail-if '{condition}': {place}: too few samples to tell"
            )),
        };
        self.fail_if.iter().filter_map(line).collect()
    }

    /// Returns the `--fail-if` conditions as one names them, if there are any.
    pub fn conditions(&self) -> Option<String> {
        let quoted = self
            .fail_if
            .iter()
            .map(|condition| format!("'{condition}'"));
        let all: Vec<_> = quoted.collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Files in the formats of other tools, at most one for each format.
#[derive(Debug, Clone, Default)]
pub struct Exports(pub Vec<(&'static Format, PathBuf)>);

impl Exports {
    /// Adds a page at `path` unless there is one; returns the page's path.
    pub fn page_or(&mut self, path: &Path) -> PathBuf {
        if let Some((_, path)) = self.0.iter().find(|(format, _)| format.name == PAGE) {
            return path.clone();
        }
        let page = FORMATS.iter().find(|format| format.name == PAGE);
        self.0.extend(page.map(|page| (page, path.to_owned())));
        path.to_owned()
    }

    /// Returns each file with the name of its format; of a format with several files, the first.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.0
            .iter()
            .map(|(format, path)| (format.name, path.as_path()))
    }

    /// Checks that all files can be written. Existing files stay as they are, the others are
    /// created without results.
    ///
    /// # Errors
    /// The first [`ExportError`].
    pub fn prepare(&self, runs: &[Run]) -> Result<(), ExportError> {
        self.0
            .iter()
            .try_for_each(|(format, path)| format.prepare(runs, path))
    }

    /// Writes all files.
    ///
    /// # Errors
    /// The first [`ExportError`]; the other files are written nevertheless.
    pub fn write(&self, runs: &[Run]) -> Result<(), ExportError> {
        let mut result = Ok(());
        for (format, path) in &self.0 {
            result = result.and(format.write(runs, path));
        }
        result
    }
}
