//! `netping run`: commands from a file.

pub mod args;

use netping_results::run::Run;

use self::args::RunArgs;
use super::text::print_text;
use crate::{
    args::{Given, Scenario, of_command_line, schema},
    error::{Failed, Verdict, tell},
    run::command_line::stand_for,
};

pub fn run(args: &RunArgs) -> Result<Verdict, Failed> {
    if args.schema {
        return show(&format!("{:#}\n", schema()));
    }
    if let Some(result) = &args.from {
        let run = Run::load(result).map_err(anyhow::Error::new)?;
        return show(&of_command_line(&run.command_line)?);
    }
    let Some(file) = &args.file else {
        return Ok(Verdict::Success);
    };
    let mut verdict = Verdict::Success;
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

fn show(text: &str) -> Result<Verdict, Failed> {
    print_text(text)?;
    Ok(Verdict::Success)
}
