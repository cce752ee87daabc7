//! `netping run`: commands from a file.

use netping_results::run::Run;

use super::print_text;
use crate::{
    args::{RunArgs, Scenario, of_command_line, schema},
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
    for step in Scenario::read(file, &args.given())?.steps {
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
