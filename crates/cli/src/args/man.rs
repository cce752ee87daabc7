//! Flags of `netping man`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `netping man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Write the pages of netping and of each command into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
