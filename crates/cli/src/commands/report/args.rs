//! Flags of `netping report`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{
    args::{export::ExportArgs, paths::apart},
    error::UsageError,
};

/// Flags of `netping report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Result files, as --json writes them; several share the charts
    #[arg(required = true, value_name = "RUN.json")]
    pub files: Vec<PathBuf>,
    /// Write each chart as an SVG file into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub export: ExportArgs,
}

impl ReportArgs {
    /// Rejects outputs that would overwrite an input.
    pub fn check(&self) -> Result<(), UsageError> {
        let exports = &self.export.0;
        let read: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        apart(&read, exports.files())
    }
}
