//! `netping report`: result files as tables, as a page, as charts, or in other formats.

pub mod args;

use std::io::{self, Write};

use netping_report::page;
use netping_results::run::Run;

use self::args::ReportArgs;
use super::table::table;
use crate::error::{Failed, Verdict};

pub fn run(args: &ReportArgs) -> Result<Verdict, Failed> {
    args.check()?;
    let runs = args.files.iter().map(|path| Run::load(path));
    let runs: Vec<Run> = runs.collect::<Result<_, _>>().map_err(anyhow::Error::new)?;
    let exports = &args.export.0;
    exports.write(&runs).map_err(anyhow::Error::new)?;
    let mut written: Vec<_> = exports
        .files()
        .map(|(_, path)| format!("wrote {}", path.display()))
        .collect();
    if let Some(folder) = &args.svg {
        let charts = page::save_charts(&runs, folder).map_err(anyhow::Error::new)?;
        written.push(format!("wrote {charts} charts to {}", folder.display()));
    }
    if written.is_empty() {
        written.extend(runs.into_iter().map(table));
    }
    // The files are written even if nobody reads this.
    let _ = writeln!(io::stdout(), "{}", written.join("\n"));
    Ok(Verdict::Success)
}
