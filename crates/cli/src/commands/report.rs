//! `netping report`: result files as tables, as a page, as charts, or in other formats.

use std::path::PathBuf;

use clap::Args;
use netping_report::{page, table::wrap, text};
use netping_results::run::Run;

use super::{run::read_published, validity};
use crate::{
    args::{
        choice::Named,
        export::{Exports, print},
        paths::apart,
    },
    error::Verdict,
};

/// Flags of `netping report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Result files, as --json writes them; several share the charts
    #[arg(required = true, value_name = "RUN.json")]
    files: Vec<PathBuf>,
    /// Write each chart as an SVG file into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Show the published numbers of this scenario file beside those of the result files
    #[arg(long, value_name = "SCENARIO.toml")]
    published: Option<PathBuf>,
    /// Value of a variable of the scenario file, instead of its own; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "published")]
    set: Vec<Named<String>>,
    #[command(flatten)]
    exports: Exports,
}

impl ReportArgs {
    /// Rejects outputs that would overwrite an input.
    pub fn check(&self) -> anyhow::Result<()> {
        let published = self.published.iter().cloned();
        let read: Vec<PathBuf> = self.files.iter().cloned().chain(published).collect();
        apart(&read, self.exports.files())
    }
}

pub fn run(args: &ReportArgs) -> anyhow::Result<Verdict> {
    args.check()?;
    let published = args.published.as_ref();
    let published = published.map(|path| read_published(path, &args.set));
    let published = published.transpose()?;
    let runs = args.files.iter().map(|path| Run::load(path));
    let runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
    args.exports.write(&runs)?;
    let files = args.exports.files();
    let mut written: Vec<_> = files
        .map(|(_, path)| format!("wrote {}", path.display()))
        .collect();
    if let Some(folder) = &args.svg {
        let charts = page::save_charts(&runs, folder)?;
        written.push(format!("wrote {charts} charts to {}", folder.display()));
    }
    if let Some(tables) = published {
        written.push(text::published(&tables, &runs));
    }
    if written.is_empty() {
        for run in &runs {
            let verdict = validity::describe(run);
            let tables = text::tables(run);
            written.push(wrap(&format!("{tables}\n{verdict}"), usize::MAX));
        }
    }
    print(written.join("\n") + "\n")?;
    Ok(Verdict::Success)
}
