//! The form of a result file: a run, and the warnings about it in words.

use std::path::Path;

use serde::{Serialize, de::Error as _};
use serde_json::Error;

use super::{
    check::check,
    save::{SaveError, prepare_file, write_atomically},
};
use crate::{run::Run, warning::Warnings};

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
    /// True where it invalidates numbers: those of measurements of which over a fifth of the windows have a
    /// warning that does.
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
        let warnings = kinds.map(|found| RunWarning {
            name: found.worst.name(),
            invalid: found.is_invalid(),
            sentence: found.worst.to_string(),
            remedy: found.worst.remedy(),
            steps: found.steps,
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
    /// Those of `serde_json`, and a description of what would keep it from being read again.
    pub fn to_json(&self) -> serde_json::Result<String> {
        // JSON has no number that is not finite. Where there need not be a number, it would read as none.
        check(self).map_err(|what| {
            Error::custom(format!(
                "a number of the result cannot be, which is a fault of netping: {what}"
            ))
        })?;
        let text = serde_json::to_string_pretty(&ResultFile::of(self))? + "\n";
        // As from a file: reading other forms of text would be compiled once more.
        match serde_json::from_slice::<Self>(text.as_bytes()) {
            Ok(_) => Ok(text),
            Err(error) => Err(Error::custom(format!(
                "a number of the result is not finite, which is a fault of netping: {error}"
            ))),
        }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use netping_measure::cost::ServerDemand;

    use crate::fixtures::{run, step};

    #[test]
    fn a_result_that_could_not_be_read_does_not_replace_one_that_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let mut run = run(vec![step(1, |_| vec![1000])]);
        run.save(&path).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        let mut refused = |spoil: fn(&mut ServerDemand)| {
            let mut server = ServerDemand::default();
            spoil(&mut server);
            run.steps[0].cost.server = Some(server);
            let error = run.save(&path).unwrap_err().to_string();
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
            error
        };
        let error = refused(|server| server.cpu_seconds = f64::NAN);
        assert!(error.contains("server.cpu_seconds is NaN"), "{error}");
        let error = refused(|server| server.context_switches_per_request = Some(f64::NAN));
        assert!(error.contains("switches_per_request is NaN"), "{error}");
        let error = refused(|server| server.host.steal_seconds = Some(f64::INFINITY));
        assert!(error.contains("steal_seconds is inf"), "{error}");
    }
}
