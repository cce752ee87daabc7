//! `netping run`: commands from a file.

pub mod args;

use netping_results::run::Run;

use self::args::RunArgs;
use super::text::print_text;
use crate::{
    args::{Given, Scenario, of_command_line},
    error::{Failed, Verdict, tell},
    run::command_line::stand_for,
};

pub fn run(args: &RunArgs) -> Result<Verdict, Failed> {
    if let Some(result) = &args.from {
        let run = Run::load(result).map_err(anyhow::Error::new)?;
        print_text(&of_command_line(&run.command_line)?)?;
        return Ok(Verdict::Success);
    }
    let Some(file) = &args.file else {
        return Ok(Verdict::Success);
    };
    let mut verdict = Verdict::Success;
    for step in Scenario::read(file, &given(args))?.steps {
        tell(&step.name);
        stand_for(step.words);
        verdict = verdict.max(super::command(step.cli)?);
        if verdict == Verdict::Interrupted {
            break;
        }
    }
    Ok(verdict)
}

/// Returns what the command line adds to the file.
pub fn given(args: &RunArgs) -> Given {
    Given {
        variables: args.set.clone(),
        flags: args.in_step.flags(),
    }
}
