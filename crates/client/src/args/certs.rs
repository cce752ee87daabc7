//! Flags of `netping certs`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `netping certs`.
#[derive(Debug, Clone, Args)]
pub struct CertsArgs {
    /// The folder for the files; made if it is not there, then for its owner only
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A name or an address of the server, to stand in its certificate; may be given several times
    #[arg(long = "host", value_name = "NAME|IP", default_values = ["localhost", "127.0.0.1", "::1"])]
    pub hosts: Vec<String>,
    /// Make a pre-shared key, psk.key, and no certificates
    #[arg(long, conflicts_with = "hosts")]
    pub psk: bool,
    /// Replace files that are there; the new certificates do not go together with the old ones
    #[arg(long)]
    pub force: bool,
}
