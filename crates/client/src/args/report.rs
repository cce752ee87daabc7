//! Flags of `netping report`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{ExportArgs, paths::apart};
use crate::error::UsageError;

/// Flags of `netping report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Result files, as --json writes them; the series of several share the charts
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Write each chart as an SVG file into this folder; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// In which formats results are written.
    #[command(flatten)]
    pub export: ExportArgs,
}

impl ReportArgs {
    /// Refuses to make nothing, and to write over what is read.
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn check(&self) -> Result<(), UsageError> {
        if self.export.is_empty() && self.svg.is_none() {
            return Err(UsageError(
                "there is nothing to write: give --html FILE, or another format (--help)"
                    .to_owned(),
            ));
        }
        let read: Vec<&Path> = self.runs.iter().map(PathBuf::as_path).collect();
        apart(&read, self.export.files())
    }
}
