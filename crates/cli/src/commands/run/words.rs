//! The words of a step: its command line, with the flags that others add.

use clap::{CommandFactory, Parser, error::ErrorKind};

use crate::{
    args::{choice::Named, export::JsonTo},
    commands::{Cli, help},
};

/// The commands of scenarios: those that measure, and those that work on result files.
const COMMANDS: &str = "ladder, latency, throughput, connect, bulk, proxy, compare, merge, report";

/// The commands that measure nothing themselves.
const WITHOUT_LOAD: [&str; 3] = ["compare", "merge", "report"];

/// The flag that puts clients in step.
const START_AT: &str = "--start-at";

/// Additions of the command line to a file.
#[derive(Debug, Default)]
pub struct Given {
    /// Values of variables, by their names.
    pub variables: Vec<Named<String>>,
    /// Flags and their values, for each step that has such a flag and does not set it.
    pub flags: Vec<(&'static str, String)>,
}

/// Adds the flags of `netping run` to a step that has them and does not set them.
pub(super) fn add_given(words: &mut Vec<String>, given: &Given) {
    for (name, value) in &given.flags {
        let flag = [(*name).to_owned(), value.clone()];
        let is_set = words.iter().any(|word| word.starts_with(&flag[0]));
        if !is_set && unfit(words, &flag) != Some(ErrorKind::UnknownArgument) {
            *words = with(words, &flag);
        }
    }
}

/// Returns why a flag does not go with a step: its command has no such flag, or the step sets it or
/// one that excludes it. Other mistakes are for [`parse`] to tell.
pub(super) fn unfit(step: &[String], flag: &[String]) -> Option<ErrorKind> {
    let error = Cli::try_parse_from(with(step, flag)).err()?;
    let kinds = [ErrorKind::UnknownArgument, ErrorKind::ArgumentConflict];
    Some(error.kind()).filter(|kind| kinds.contains(kind))
}

/// Puts a flag behind the words of a step, or before `--`.
pub(super) fn with(step: &[String], flag: &[String]) -> Vec<String> {
    let end = step.iter().position(|word| word == "--");
    let (flags, others) = step.split_at(end.unwrap_or(step.len()));
    [flags, flag, others].concat()
}

/// Returns the command of a step; `None` for a quick look.
fn command_of(words: &[String]) -> Option<&str> {
    let command = words.get(1).map(String::as_str);
    command.filter(|name| COMMANDS.split(", ").any(|own| own == *name))
}

/// Returns the title of a step.
pub(super) fn title(words: &[String]) -> &str {
    command_of(words).unwrap_or("quick look")
}

/// Reads the words of a step.
pub(super) fn parse(words: &[String], given: &Given) -> Result<Cli, String> {
    let cli = Cli::try_parse_from(words).map_err(|error| reason(error, words))?;
    let command = command_of(words);
    if cli.command.is_some() && command.is_none() {
        return Err(format!(
            "'{}' is no step: give {COMMANDS} or a quick look",
            words[1]
        ));
    }
    let measures = !command.is_some_and(|name| WITHOUT_LOAD.contains(&name));
    let has_start = words.iter().any(|word| word.starts_with(START_AT));
    let is_given = given.flags.iter().any(|(name, _)| *name == START_AT);
    if measures && is_given && !has_start {
        return Err(format!(
            "{START_AT} is for throughput and latency: this step's length is not known"
        ));
    }
    Ok(cli)
}

/// Returns the destination of a step's result; `None` where it has none.
pub(super) fn result_of(words: &[String]) -> Option<JsonTo> {
    let matches = Cli::command().try_get_matches_from(words).ok()?;
    let own = matches.subcommand().map_or(&matches, |(_, own)| own);
    own.try_get_one("json").ok().flatten().cloned()
}

/// Returns the reason and the hint of an error in these words, without what is about command lines.
fn reason(error: clap::Error, words: &[String]) -> String {
    let text = help::with_hints(error, words.iter()).to_string();
    let Some(text) = text.strip_prefix("error: ") else {
        return "a step measures or works on result files".to_owned();
    };
    let (text, _) = text.split_once("\nUsage:").unwrap_or((text, ""));
    let (text, _) = text.split_once("\nFor more").unwrap_or((text, ""));
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
