//! The form of a result file: a run, and the warnings about it in words.

use std::path::Path;

use serde::Serialize;

use super::save::{SaveError, prepare_file, write_atomically};
use crate::{
    run::Run,
    warning::{Severity, Warning},
};

/// A result file. The schema is in `schema/run.schema.json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultFile<'a> {
    #[serde(flatten)]
    run: &'a Run,
    /// The warnings of all steps and bulk streams, each kind once. They are derived from those of
    /// the steps when the file is written, and not read.
    warnings: Vec<RunWarning>,
}

/// A kind of warning, and what it is about.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunWarning {
    /// Its name.
    name: &'static str,
    /// True where it invalidates the numbers.
    invalid: bool,
    /// The steps that it is about, by their places from 0 on.
    steps: Vec<usize>,
    /// The bulk streams that it is about.
    bulk: Vec<usize>,
    /// The worst of these warnings, in words.
    sentence: String,
    #[serde(skip)]
    worst: Warning,
    /// The remedy.
    remedy: &'static str,
}

impl<'a> ResultFile<'a> {
    /// Returns the file of a run.
    pub fn of(run: &'a Run) -> Self {
        let mut warnings = Vec::new();
        for (place, step) in run.steps.iter().enumerate() {
            for warning in &step.warnings {
                entry(&mut warnings, warning).steps.push(place);
            }
        }
        for (place, bulk) in run.bulk.iter().enumerate() {
            for warning in &bulk.warnings {
                entry(&mut warnings, warning).bulk.push(place);
            }
        }
        Self { run, warnings }
    }
}

/// Returns the entry of a warning's kind, a new one if it is the first of its kind.
fn entry<'a>(all: &'a mut Vec<RunWarning>, warning: &Warning) -> &'a mut RunWarning {
    let known = all.iter().position(|own| own.name == warning.name());
    let place = known.unwrap_or_else(|| {
        all.push(RunWarning {
            name: warning.name(),
            invalid: warning.severity() == Severity::Invalid,
            steps: Vec::new(),
            bulk: Vec::new(),
            sentence: warning.to_string(),
            worst: warning.clone(),
            remedy: warning.remedy(),
        });
        all.len() - 1
    });
    let own = &mut all[place];
    if warning.is_worse_than(&own.worst) {
        own.invalid = warning.severity() == Severity::Invalid;
        own.sentence = warning.to_string();
        own.remedy = warning.remedy();
        own.worst = warning.clone();
    }
    own
}

impl Run {
    /// The JSON text, with a newline at its end.
    ///
    /// # Errors
    /// Those of `serde_json`, which these types never cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&ResultFile::of(self)).map(|text| text + "\n")
    }

    /// Checks that the file can be written, by [`prepare_file`]: one that is there stays as it is.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn prepare(&self, path: &Path) -> Result<(), SaveError> {
        prepare_file(path, self.text(path)?.as_bytes())
    }

    /// Writes the file anew, by [`write_atomically`].
    ///
    /// # Errors
    /// [`SaveError`], and then the old file is as it was.
    pub fn save(&self, path: &Path) -> Result<(), SaveError> {
        write_atomically(path, self.text(path)?.as_bytes())
    }

    /// The text for the file at `path`.
    fn text(&self, path: &Path) -> Result<String, SaveError> {
        self.to_json().map_err(|error| SaveError {
            path: path.to_owned(),
            reason: error.into(),
        })
    }
}
