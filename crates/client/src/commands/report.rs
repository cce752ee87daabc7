//! `netping report`: result files as a page, or as charts.

use std::io::{self, Write};

use netping_report::page;
use netping_results::run::Run;

use crate::{
    args::ReportArgs,
    error::{Failed, Verdict},
};

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &ReportArgs) -> Result<Verdict, Failed> {
    args.check()?;
    let runs = args
        .runs
        .iter()
        .map(|path| Run::load(path))
        .collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(anyhow::Error::new)?;
    args.export.write(&runs).map_err(anyhow::Error::new)?;
    let mut written: Vec<_> = args
        .export
        .files()
        .map(|(_, path)| format!("wrote {}", path.display()))
        .collect();
    if let Some(folder) = &args.svg {
        let charts = page::save_charts(&runs, folder).map_err(anyhow::Error::new)?;
        written.push(format!("wrote {charts} charts to {}", folder.display()));
    }
    // The files are there, whether anybody reads about them or not.
    let _ = writeln!(io::stdout(), "{}", written.join("\n"));
    Ok(Verdict::Success)
}
