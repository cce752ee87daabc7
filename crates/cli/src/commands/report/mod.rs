//! `netping report`: result files as tables, as a page, as charts, or in other formats.

pub mod args;

use std::io::{self, Write};

use netping_report::{page, table::wrap, text};
use netping_results::run::Run;

use self::args::ReportArgs;
use crate::{
    error::{Failed, Verdict},
    run::validity,
};

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
        for run in runs {
            let verdict = validity::describe(&run);
            let tables = text::tables_of_file(run);
            written.push(wrap(&format!("{tables}\n{verdict}"), usize::MAX));
        }
    }
    // The files are written even if nobody reads this.
    let _ = writeln!(io::stdout(), "{}", written.join("\n"));
    Ok(Verdict::Success)
}
