//! Flags of `netping run`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `netping run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Scenario file: TOML with the flags' names as keys
    #[arg(value_name = "FILE.toml", required_unless_present_any = ["from", "schema"])]
    pub file: Option<PathBuf>,
    /// Print the scenario of a result file instead: its command line as TOML
    #[arg(long, value_name = "RUN.json", conflicts_with = "file")]
    pub from: Option<PathBuf>,
    /// Print the JSON schema of scenario files instead
    #[arg(long, conflicts_with_all = ["file", "from"])]
    pub schema: bool,
}
