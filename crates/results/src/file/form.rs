//! The form of a result file: a run, and the warnings about it in words.

use std::path::Path;

use serde::Serialize;

use super::save::{SaveError, prepare_file, write_atomically};
use crate::{
    run::Run,
    warning::{Found, Severity, Warnings},
};

/// A result file. The schema is in `schema/run.schema.json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultFile<'a> {
    #[serde(flatten)]
    run: &'a Run,
    /// The warnings of all steps, each kind once. They are derived from the steps when the file is
    /// written, and not read.
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
    /// The worst of these warnings, in words.
    sentence: String,
    /// The remedy.
    remedy: String,
}

impl<'a> ResultFile<'a> {
    /// Returns the file of a run.
    pub fn of(run: &'a Run) -> Self {
        let kinds = Warnings::of(run).kinds.into_iter();
        let warnings = kinds.map(|Found { worst, steps, .. }| RunWarning {
            name: worst.name(),
            invalid: worst.severity() == Severity::Invalid,
            steps,
            sentence: worst.to_string(),
            remedy: worst.remedy(),
        });
        Self {
            run,
            warnings: warnings.collect(),
        }
    }
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
        self.to_json().map_err(|error| SaveError::of(path, error))
    }
}
