//! Results in the formats of other tools. A new one is a file here and a line in [`FORMATS`].

mod benchfmt;
mod csv;
#[cfg(test)]
pub(crate) mod fixture;
mod hlog;
mod markdown;

use std::{fmt::Display, path::Path};

use netping_results::{
    file::save::{SaveError, prepare_file, write_atomically},
    run::Run,
};

use crate::page;

/// A format that results can be written in.
#[derive(Debug)]
pub struct Format {
    /// Its name, which is that of its flag.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Renders the content of the file.
    render: fn(&[Run]) -> Rendered,
}

/// Every format.
pub static FORMATS: [Format; 5] = [
    Format {
        name: "html",
        help: "Write the results as a page with charts, which needs no network and no other file",
        render: |runs| Ok(page::html(runs).into_bytes()),
    },
    Format {
        name: "csv",
        help: "Write the results as comma-separated values: a row for each trial, and one for each measurement of several",
        render: csv::render,
    },
    Format {
        name: "hlog",
        help: "Write the histograms as a log of HdrHistogram",
        render: hlog::render,
    },
    Format {
        name: "benchfmt",
        help: "Write the results in Go's benchmark format, for benchstat",
        render: benchfmt::render,
    },
    Format {
        name: "markdown",
        help: "Write the results as a table in Markdown",
        render: markdown::render,
    },
];

/// The content of a file.
type Rendered = Result<Vec<u8>, ExportError>;

/// Why results could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file could not be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The format's writer gave up.
    #[error("cannot export the results: {0}")]
    Writer(String),
}

impl Format {
    /// Checks that results can be rendered and written to `path`, by [`prepare_file`]: an existing
    /// file stays as it is.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn prepare(&self, runs: &[Run], path: &Path) -> Result<(), ExportError> {
        Ok(prepare_file(path, &(self.render)(runs)?)?)
    }

    /// Replaces `path` by the results, by [`write_atomically`].
    ///
    /// # Errors
    /// [`ExportError`], and then an old file is as it was.
    pub fn write(&self, runs: &[Run], path: &Path) -> Result<(), ExportError> {
        Ok(write_atomically(path, &(self.render)(runs)?)?)
    }
}

fn failed(error: impl Display) -> ExportError {
    ExportError::Writer(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_and_takes_results_without_steps() {
        let mut names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FORMATS.len());
        let folder = tempfile::tempdir().unwrap();
        for format in &FORMATS {
            let path = folder.path().join(format.name);
            format.write(&[fixture::run(Vec::new())], &path).unwrap();
            assert!(path.is_file(), "{}", format.name);
        }
    }

    #[test]
    fn an_existing_file_stays_until_there_are_results() {
        let folder = tempfile::tempdir().unwrap();
        for format in &FORMATS {
            let path = folder.path().join(format.name);
            fs::write(&path, "earlier").unwrap();
            format.prepare(&[fixture::run(Vec::new())], &path).unwrap();
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                "earlier",
                "{}",
                format.name
            );
            fs::remove_file(&path).unwrap();
            format.prepare(&[fixture::run(Vec::new())], &path).unwrap();
            assert!(path.is_file(), "{}", format.name);
        }
    }
}
