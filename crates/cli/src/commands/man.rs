//! `netping man` and `netping completions`: what a system knows of commands.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

use super::help;
use crate::{args::export::print, error::Verdict};

/// Flags of `netping man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Write the pages of netping and of each command into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Flags of `netping completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn run(args: &ManArgs) -> anyhow::Result<Verdict> {
    let command = help::command().disable_help_subcommand(true);
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        print(page)?;
    }
    Ok(Verdict::Success)
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<Verdict> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "netping", &mut text);
    print(text)?;
    Ok(Verdict::Success)
}
