//! `netping merge`: the results of several clients of one run, added up.

pub mod args;

use std::io::{self, Write};

use anyhow::Context;
use netping_report::text;
use netping_results::{merge::merge, run::Run};

use self::args::MergeArgs;
use crate::{
    error::{Failed, Verdict, tell},
    run::{command_line::command_line, options::JsonTo, store::tool, validity},
};

pub fn run(args: &MergeArgs) -> Result<Verdict, Failed> {
    let mut clients = Vec::new();
    for file in args.files()? {
        clients.push((
            file.display().to_string(),
            Run::load(file).map_err(anyhow::Error::new)?,
        ));
    }
    let merged =
        merge(&clients, &args.rules(), tool(), command_line()).map_err(anyhow::Error::new)?;
    let saved = match &args.json {
        JsonTo::File(path) => merged.save(path).map_err(anyhow::Error::new),
        JsonTo::Stdout => print_json(&merged),
    };
    if let Err(error) = saved {
        tell(&format!("error: {error:#}"));
        return Ok(Verdict::Unsaved);
    }
    // The file is written even if nobody reads this.
    let text = format!("{}\n{}", text::tables(&merged), validity::describe(&merged));
    let _ = match args.json {
        JsonTo::Stdout => writeln!(io::stderr(), "{text}"),
        JsonTo::File(_) => writeln!(io::stdout(), "{text}"),
    };
    Ok(Verdict::Success)
}

fn print_json(run: &Run) -> anyhow::Result<()> {
    let text = run.to_json()?;
    io::stdout()
        .write_all(text.as_bytes())
        .context("cannot write the results to standard output")
}
