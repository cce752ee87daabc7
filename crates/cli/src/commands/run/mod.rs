//! `netping run`: commands from a file.

mod file;
mod published;
mod scenario;
mod words;
mod write;

use std::path::PathBuf;

use clap::Args;
use netping_report::text;
use netping_results::run::Run;

use self::write::of_command_line;
pub use self::{published::read_published, scenario::Scenario, words::Given};
use crate::{
    args::{
        choice::Named,
        export::{JsonTo, print, say},
        in_step::InStepArgs,
        output::gateway,
    },
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
    /// Push live numbers of the steps to a Prometheus Pushgateway, as the steps' own flag does
    #[arg(long, value_name = "URL", value_parser = gateway)]
    prometheus_push: Option<String>,
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
    let mut flags = args.in_step.flags();
    let gateway = args.prometheus_push.clone();
    flags.extend(gateway.map(|url| ("--prometheus-push", url)));
    let given = Given {
        variables: args.set.clone(),
        flags,
    };
    let scenario = Scenario::read(file, &given)?;
    let mut results = Vec::new();
    for step in scenario.steps {
        tell(&step.name);
        stand_for(step.words);
        verdict = verdict.max(super::command(step.cli)?);
        if verdict == Verdict::Interrupted {
            return Ok(verdict);
        }
        results.extend(step.result.filter(|own| !results.contains(own)));
    }
    if !scenario.published.is_empty() {
        let runs = results.iter().filter_map(JsonTo::file).map(Run::load);
        let runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
        let is_stdout = |own: &&JsonTo| own.file().is_none();
        let to_stdout = results.iter().find(is_stdout);
        let tables = text::published(&scenario.published, &runs);
        if let Err(error) = say(to_stdout, &format!("\n{tables}")) {
            tell(&format!("error: {error:#}"));
            verdict = verdict.max(Verdict::Unsaved);
        }
    }
    Ok(verdict)
}
