//! Destinations of results: JSON, and the export formats, which have a flag for each entry of the
//! report's registry.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use netping_report::export::{ExportError, FORMATS, Format};
use netping_results::{file::save::write_atomically, run::Run};

/// Text of the error of a failed write to standard output.
const UNWRITTEN: &str = "cannot write the results to standard output";

/// The format of a page.
const PAGE: &str = "html";

/// A destination of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTo {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl From<&str> for JsonTo {
    fn from(text: &str) -> Self {
        match text {
            "-" => Self::Stdout,
            file => Self::File(file.into()),
        }
    }
}

impl JsonTo {
    /// Returns the file; `None` for standard output.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }

    /// Writes JSON there.
    pub fn write(&self, json: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => to_stdout(json).context(UNWRITTEN),
            Self::File(path) => Ok(write_atomically(path, json.as_bytes())?),
        }
    }
}

/// Prints a text as it is; a reader that closed the pipe has read enough.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    unless_closed(to_stdout(text))
}

/// Prints a text for people, and ends its line: to standard error if standard output is for JSON.
pub fn say(json: Option<&JsonTo>, text: &str) -> anyhow::Result<()> {
    match json {
        Some(JsonTo::Stdout) => unless_closed(writeln!(io::stderr(), "{text}")),
        _ => print(format!("{text}\n")),
    }
}

fn to_stdout(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_ref())?;
    stdout.flush()
}

fn unless_closed(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context(UNWRITTEN),
    }
}

/// Files in the formats of other tools, at most one for each format.
#[derive(Debug, Clone, Default)]
pub struct Exports(Vec<(&'static Format, PathBuf)>);

impl Args for Exports {
    fn augment_args(command: Command) -> Command {
        command.args(FORMATS.iter().map(|format| {
            Arg::new(format.name)
                .long(format.name)
                .value_name("FILE")
                .help(format.help)
                .value_parser(file)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Exports {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |format: &'static Format| {
            Some((format, matches.get_one::<PathBuf>(format.name)?.clone()))
        };
        Ok(Self(FORMATS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Reads a path. Files are rewritten after every step, which standard output cannot be.
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("only --json can go to standard output; give a file".to_owned()),
        _ => Ok(text.into()),
    }
}

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

    /// Returns each file with the name of its format.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = self.0.iter();
        files.map(|(format, path)| (format.name, path.as_path()))
    }

    /// Checks that all files can be written. Existing files stay as they are, the others are
    /// created without results.
    ///
    /// # Errors
    /// The first [`ExportError`].
    pub fn prepare(&self, runs: &[Run]) -> Result<(), ExportError> {
        let mut files = self.0.iter();
        files.try_for_each(|(format, path)| format.prepare(runs, path))
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
