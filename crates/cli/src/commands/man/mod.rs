//! `netping man` and `netping completions`: what a system knows of commands.

pub mod args;

use std::{fs, path::Path};

use anyhow::Context;
use clap::Command;

use self::args::{CompletionsArgs, ManArgs};
use super::text::print;
use crate::{
    args::help,
    error::{Failed, Verdict},
};

pub fn run(args: &ManArgs) -> Result<Verdict, Failed> {
    let command = help::command().disable_help_subcommand(true);
    match &args.out {
        Some(folder) => write_all(command, folder)?,
        None => print(|out| clap_mangen::Man::new(command).render(out))?,
    }
    Ok(Verdict::Success)
}

pub fn completions(args: &CompletionsArgs) -> Result<Verdict, Failed> {
    let mut command = help::command();
    let name = command.get_name().to_owned();
    print(|out| {
        clap_complete::generate(args.shell, &mut command, name, out);
        Ok(())
    })?;
    Ok(Verdict::Success)
}

fn write_all(command: Command, folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(command, folder).with_context(cannot)
}
