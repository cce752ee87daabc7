//! Results in the formats of other tools. A new one is a file here and a line in [`FORMATS`].

mod benchfmt;
mod csv;
#[cfg(test)]
pub(crate) mod fixture;
mod hgrm;
mod hlog;
mod markdown;

use std::{
    fs,
    path::{Path, PathBuf},
};

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
    /// What it is, as help text.
    pub help: &'static str,
    /// Makes the content of its files: one, unless the format takes a single distribution for each.
    render: fn(&[Run]) -> Rendered,
}

/// Every format.
pub static FORMATS: [Format; 6] = [
    Format {
        name: "html",
        help: "Write the results as a page with charts, which needs no network and no other file",
        render: |runs| Ok(vec![page::html(runs).into_bytes()]),
    },
    Format {
        name: "csv",
        help: "Write the results as comma-separated values, a row for each step",
        render: csv::render,
    },
    Format {
        name: "hlog",
        help: "Write the histograms as a log of HdrHistogram",
        render: hlog::render,
    },
    Format {
        name: "hgrm",
        help: "Write the response times as HdrHistogram's percentile distribution, in ms; a second step goes to a file \
               with '.2' before the extension",
        render: hgrm::render,
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

/// The content of a format's files, in their order.
type Rendered = Result<Vec<Vec<u8>>, ExportError>;

/// Why results could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file could not be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A further file would go where something else is.
    #[error("{} is there, and is none of netping's: move it, or give another name", .0.display())]
    Taken(PathBuf),
    /// A table has the columns of one kind of result.
    #[error(
        "these results have requests and bulk streams, which have columns of their own: export them one by one"
    )]
    Mixed,
    /// The format's writer gave up.
    #[error("cannot make the {format} file: {reason}")]
    Writer {
        /// The format.
        format: &'static str,
        /// Why.
        reason: String,
    },
}

impl Format {
    /// Sees that results can be made and written to `path`, by [`prepare_file`]: a file that is there stays as it is.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn prepare(&self, runs: &[Run], path: &Path) -> Result<(), ExportError> {
        for (number, content) in (1_usize..).zip((self.render)(runs)?) {
            prepare_file(&numbered(path, number), &content)?;
        }
        Ok(())
    }

    /// Writes the results anew to `path`. A format that takes one distribution for each file has the first step there,
    /// and the others beside it with their number before the extension: `run.hgrm`, `run.2.hgrm`, `run.3.hgrm`. Of those,
    /// what is left of earlier results goes away, and what is of something else stays.
    ///
    /// # Errors
    /// [`ExportError`], and then an old file is as it was.
    pub fn write(&self, runs: &[Run], path: &Path) -> Result<(), ExportError> {
        let files = (self.render)(runs)?;
        // Only a step has further files, and only where there is one are they of its format.
        let numbers = files.last().is_some_and(|last| hgrm::is_own(last));
        let count = files.len();
        for (number, content) in (1_usize..).zip(files) {
            let path = numbered(path, number);
            let old = if number > 1 {
                fs::read(&path).ok()
            } else {
                None
            };
            match old {
                // While steps are added, those before them stay as they are.
                Some(old) if old == content => {}
                Some(old) if !hgrm::is_own(&old) => return Err(ExportError::Taken(path)),
                _ => write_atomically(&path, &content)?,
            }
        }
        if numbers {
            remove_further(path, count + 1)?;
        }
        Ok(())
    }
}

/// Removes the files of earlier results from a number on, up to the first that is not there or not of them.
fn remove_further(path: &Path, from: usize) -> Result<(), SaveError> {
    for path in (from..).map(|number| numbered(path, number)) {
        if !fs::read(&path).is_ok_and(|content| hgrm::is_own(&content)) {
            break;
        }
        fs::remove_file(&path).map_err(|reason| SaveError {
            path: path.clone(),
            reason,
        })?;
    }
    Ok(())
}

/// The path of a format's first, second or later file.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Lines as the content of a file.
fn text(lines: &[String]) -> Vec<u8> {
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_the_extension() {
        assert_eq!(
            numbered(Path::new("a/run.hgrm"), 1),
            Path::new("a/run.hgrm")
        );
        assert_eq!(
            numbered(Path::new("a/run.hgrm"), 12),
            Path::new("a/run.12.hgrm")
        );
        assert_eq!(numbered(Path::new("run"), 2), Path::new("run.2"));
    }

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
    fn a_second_step_goes_to_a_second_file_where_a_format_takes_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.hgrm");
        let hgrm = FORMATS.iter().find(|format| format.name == "hgrm").unwrap();
        let steps = vec![
            fixture::step("tcp://h:1", 1, &[1000]),
            fixture::step("tcp://h:1", 2, &[2000]),
        ];
        hgrm.write(&[fixture::run(steps)], &path).unwrap();
        let [first, second] =
            ["run.hgrm", "run.2.hgrm"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert_ne!(first, second);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn of_numbered_files_only_earlier_results_are_replaced_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.hgrm");
        let hgrm = FORMATS.iter().find(|format| format.name == "hgrm").unwrap();
        let write = |steps: usize| {
            let steps = (1..=steps)
                .map(|callers| fixture::step("tcp://h:1", callers, &[1000]))
                .collect();
            hgrm.write(&[fixture::run(steps)], &path)
        };
        let names = || {
            let entries = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
            names.sort_unstable();
            names
        };
        write(4).unwrap();
        fs::write(folder.path().join("run.5.hgrm"), "somebody else's\n").unwrap();
        write(2).unwrap();
        assert_eq!(names(), ["run.2.hgrm", "run.5.hgrm", "run.hgrm"]);
        // Before the first step, nothing is known of what there will be.
        write(0).unwrap();
        assert_eq!(names(), ["run.2.hgrm", "run.5.hgrm", "run.hgrm"]);
        let error = write(6).unwrap_err().to_string();
        assert!(
            error.contains("run.5.hgrm is there, and is none of netping's"),
            "{error}"
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("run.5.hgrm")).unwrap(),
            "somebody else's\n"
        );
        // A format that has one file leaves others alone.
        let csv = FORMATS.iter().find(|format| format.name == "csv").unwrap();
        csv.write(
            &[fixture::run(vec![fixture::step("tcp://h:1", 1, &[1000])])],
            &path,
        )
        .unwrap();
        assert!(names().contains(&"run.2.hgrm".to_owned()));
    }

    #[test]
    fn what_is_there_stays_until_there_are_results() {
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
