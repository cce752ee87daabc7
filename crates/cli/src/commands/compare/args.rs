//! Flags of `netping compare`.

use std::path::{Path, PathBuf};

use clap::Args;
use netping_results::compare::Gate;

use crate::{
    args::paths::{apart, once_from_stdin},
    error::UsageError,
};

/// Flags of `netping compare`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "Steps are compared if label, protocol, arrivals, rate, callers, connections and sizes are the same; \
                  the server's address may differ. Steps of the same target and settings (--trials) are trials of one \
                  measurement. A difference is shown where its interval leaves out 0; the intervals are simultaneous. They \
                  come from Welch's t-test over trials, and a bootstrap of whole trials for quantiles; with one trial \
                  on each side, from the error bars within the runs, which p50 and p99 have from ten seconds on.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a file could not be read, 4 a --fail-if condition holds or nothing \
                  could be compared."
)]
pub struct CompareArgs {
    /// Result file to compare with; '-': standard input
    #[arg(value_name = "BASE.json")]
    base: PathBuf,
    /// Result files, each compared with the base
    #[arg(required = true, value_name = "NEW.json")]
    new: Vec<PathBuf>,
    /// Exit with 4 if a metric changed like this: 'p99>+5%', 'rate<-3%' of the base's value,
    /// 'errors>+0.1%' in percentage points; may be repeated. It holds if the change is beyond the
    /// limit and a difference is shown; without an error bar, the change alone decides. A
    /// measurement that only the base has fails too
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Gate>,
    /// Also write the comparison as a page, with the charts of all files
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl CompareArgs {
    /// Returns every file, the base first.
    ///
    /// # Errors
    /// [`UsageError`] if standard input would be read twice, or an input overwritten.
    pub fn files(&self) -> Result<Vec<&Path>, UsageError> {
        let files: Vec<&Path> = [&self.base]
            .into_iter()
            .chain(&self.new)
            .map(PathBuf::as_path)
            .collect();
        once_from_stdin(&files)?;
        apart(&files, self.html.as_deref().map(|page| ("html", page)))?;
        Ok(files)
    }
}
