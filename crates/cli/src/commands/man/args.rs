//! Flags of `netping man` and `netping completions`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Flags of `netping man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Write the pages of netping and of each command into this folder, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Flags of `netping completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}
