//! `netping run`: commands from a file.

mod scenario;
mod words;
mod write;

use std::path::PathBuf;

use clap::Args;
use netping_results::run::Run;

use self::write::of_command_line;
pub use self::{scenario::Scenario, words::Given};
use super::text::print;
use crate::{
    args::{choice::Named, in_step::InStepArgs},
    error::{Verdict, tell},
    run::command_line::stand_for,
};

/// Flags of `netping run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Scenario file: command lines in TOML
    #[arg(value_name = "FILE.toml", required_unless_present = "from")]
    file: Option<PathBuf>,
    /// Value of a variable of the file, instead of its own; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<Named<String>>,
    #[command(flatten)]
    in_step: InStepArgs,
    /// Print the scenario of a result file instead: its command line in TOML
    #[arg(long, value_name = "RUN.json", conflicts_with = "file")]
    from: Option<PathBuf>,
}

pub fn run(args: &RunArgs) -> anyhow::Result<Verdict> {
    if let Some(result) = &args.from {
        print(of_command_line(&Run::load(result)?.command_line)?)?;
    }
    let mut verdict = Verdict::Success;
    let Some(file) = &args.file else {
        return Ok(verdict);
    };
    let given = Given {
        variables: args.set.clone(),
        flags: args.in_step.flags(),
    };
    for step in Scenario::read(file, &given)?.steps {
        tell(&step.name);
        stand_for(step.words);
        verdict = verdict.max(super::command(step.cli)?);
        if verdict == Verdict::Interrupted {
            break;
        }
    }
    Ok(verdict)
}
