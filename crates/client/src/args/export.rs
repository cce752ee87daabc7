//! Flags for other formats of results: one for each in the report's registry.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use netping_report::export::{ExportError, FORMATS, Format};
use netping_results::run::Run;

/// The format of a page.
const PAGE: &str = "html";

/// In which formats results are written, and where.
#[derive(Debug, Clone, Default)]
pub struct ExportArgs {
    files: Vec<(&'static Format, PathBuf)>,
}

impl ExportArgs {
    /// Whether no format was asked for.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether the format of this name was asked for.
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(format, _)| format.name == name)
    }

    /// Has a page written to `path`, unless one is asked for elsewhere; gives where it will be.
    pub fn page_or(&mut self, path: &Path) -> PathBuf {
        if let Some((_, path)) = self.files.iter().find(|(format, _)| format.name == PAGE) {
            return path.clone();
        }
        self.files.extend(
            FORMATS
                .iter()
                .find(|format| format.name == PAGE)
                .map(|page| (page, path.to_owned())),
        );
        path.to_owned()
    }

    /// The files that are written, the first of each format, with the format's name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.files
            .iter()
            .map(|(format, path)| (format.name, path.as_path()))
    }

    /// Sees, before anything is measured, that all files can be written: those that are there stay as they are, the others
    /// are made, without results.
    ///
    /// # Errors
    /// The first [`ExportError`].
    pub fn prepare(&self, runs: &[Run]) -> Result<(), ExportError> {
        self.files
            .iter()
            .try_for_each(|(format, path)| format.prepare(runs, path))
    }

    /// Writes all files anew.
    ///
    /// # Errors
    /// The first [`ExportError`]; the other files are written nevertheless.
    pub fn write(&self, runs: &[Run]) -> Result<(), ExportError> {
        let mut result = Ok(());
        for (format, path) in &self.files {
            result = result.and(format.write(runs, path));
        }
        result
    }
}

impl Args for ExportArgs {
    fn augment_args(command: Command) -> Command {
        let flag = |format: &'static Format| {
            Arg::new(format.name)
                .long(format.name)
                .value_name("FILE")
                .help(format.help)
                .value_parser(file)
        };
        command.args(FORMATS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ExportArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |format: &'static Format| {
            Some((format, matches.get_one::<PathBuf>(format.name)?.clone()))
        };
        Ok(Self {
            files: FORMATS.iter().filter_map(given).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A file is written anew after every step, which standard output cannot be.
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("only --json goes to standard output; give a file".to_owned()),
        _ => Ok(text.into()),
    }
}
