//! The flags of a command that a result file names.

use clap::Command;

use super::help;

/// The flags of the command that a command line begins with.
#[derive(Debug)]
pub struct Flags(Command);

impl Flags {
    /// Returns the flags of the command that `words`, a program and its arguments, call; those of the
    /// quick look where they name none.
    pub fn of(words: &[String]) -> Self {
        let all = help::command();
        let mut named = words
            .iter()
            .skip(1)
            .filter_map(|word| all.find_subcommand(word));
        Self(named.next().unwrap_or(&all).clone())
    }

    /// Returns true for a flag of the command, such as `-d` or `--warmup`.
    pub fn has(&self, flag: &str) -> bool {
        help::has_flag(&self.0, flag)
    }
}
