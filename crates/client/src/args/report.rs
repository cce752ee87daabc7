//! Flags of `netping report`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Flags of `netping report`.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("outputs").required(true).multiple(true).args(["html", "svg"])))]
pub struct ReportArgs {
    /// Result files, as --json writes them; the series of several share the charts
    #[arg(required = true, value_name = "RUN.json")]
    pub runs: Vec<PathBuf>,
    /// Write everything as one HTML page that needs no network and no other file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write each chart as an SVG file into this folder; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}
