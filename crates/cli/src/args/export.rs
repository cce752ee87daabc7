//! Flags for the export formats, one for each entry of the report's registry.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use netping_report::export::{FORMATS, Format};

use crate::run::options::Exports;

/// Formats of request times, which a bulk stream does not have.
const OF_REQUESTS: [&str; 1] = ["hlog"];

/// Flags for the export formats; without `REQUESTS`, only for those that bulk streams have.
#[derive(Debug, Clone)]
pub struct ExportArgs<const REQUESTS: bool>(pub Exports);

impl<const REQUESTS: bool> ExportArgs<REQUESTS> {
    fn formats() -> impl Iterator<Item = &'static Format> {
        FORMATS
            .iter()
            .filter(|format| REQUESTS || !OF_REQUESTS.contains(&format.name))
    }
}

impl<const REQUESTS: bool> Args for ExportArgs<REQUESTS> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::formats().map(|format| {
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

impl<const REQUESTS: bool> FromArgMatches for ExportArgs<REQUESTS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |format: &'static Format| {
            Some((format, matches.get_one::<PathBuf>(format.name)?.clone()))
        };
        Ok(Self(Exports(Self::formats().filter_map(given).collect())))
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
