//! Flags of `netping run`.

use std::path::PathBuf;

use clap::Args;

use crate::args::in_step::InStepArgs;

/// Flags of `netping run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Scenario file: command lines in TOML
    #[arg(value_name = "FILE.toml", required_unless_present = "from")]
    pub file: Option<PathBuf>,
    /// Value of a variable of the file, instead of its own; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub in_step: InStepArgs,
    /// Print the scenario of a result file instead: its command line in TOML
    #[arg(long, value_name = "RUN.json", conflicts_with = "file")]
    pub from: Option<PathBuf>,
}

/// Reads `NAME=VALUE`.
fn assignment(text: &str) -> Result<(String, String), String> {
    let both = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = both.ok_or("a variable is set by NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
