//! Flags for the export formats, one for each entry of the report's registry.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use netping_report::export::{FORMATS, Format};

use crate::run::options::Exports;

/// Flags for the export formats.
#[derive(Debug, Clone)]
pub struct ExportArgs(pub Exports);

impl Args for ExportArgs {
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

impl FromArgMatches for ExportArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |format: &'static Format| {
            Some((format, matches.get_one::<PathBuf>(format.name)?.clone()))
        };
        Ok(Self(Exports(FORMATS.iter().filter_map(given).collect())))
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
