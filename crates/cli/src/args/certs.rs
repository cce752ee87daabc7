//! Flags of `netping certs`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `netping certs`.
#[derive(Debug, Clone, Args)]
pub struct CertsArgs {
    /// Folder for the files; created if missing, readable by its owner only
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// A name or address of the server, for its certificate; may be repeated
    #[arg(long = "host", value_name = "NAME|IP", default_values = ["localhost", "127.0.0.1", "::1"])]
    pub hosts: Vec<String>,
    /// Days for which the server's and the client's certificates are valid
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(i16).range(1..=3650))]
    pub days: i16,
    /// Create a pre-shared key, psk.key, and no certificates
    #[arg(long, conflicts_with_all = ["hosts", "days"])]
    pub psk: bool,
    /// Replace existing files; new certificates do not work with old ones
    #[arg(long)]
    pub force: bool,
}
