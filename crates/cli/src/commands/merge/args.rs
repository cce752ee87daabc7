//! Flags of `netping merge`.

use std::path::{Path, PathBuf};

use clap::{Args, builder::PossibleValuesParser};
use netping_protocol::units::number_in;
use netping_results::{merge::MergeRules, warning::NAMES};

use crate::{
    args::{
        output::{json_to, share_in_percent},
        paths::{apart, once_from_stdin},
    },
    error::UsageError,
    run::options::JsonTo,
};

/// Flags of `netping merge`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "The clients must have run the same command against the same server at the same time: all but a hundredth of \
                  their windows must overlap, by the server's clock if the results have the offsets from it (--clock-server), \
                  else by clocks that agree (NTP). Histograms and counts are added; the rate is that of the common time.\n\n\
                  Exit codes: 0 ok, 2 wrong usage, 3 a file could not be read, or the files do not \
                  belong together, 6 the sum could not be written."
)]
pub struct MergeArgs {
    /// Result files, one of each client; '-': standard input
    #[arg(required = true, num_args = 2.., value_name = "CLIENT.json")]
    files: Vec<PathBuf>,
    /// Write the sum as JSON; '-': to standard output, with the table on stderr
    #[arg(long, value_name = "FILE", value_parser = json_to)]
    pub json: JsonTo,
    /// Number of clients: fewer results are refused, and more
    #[arg(long, value_name = "N", value_parser = number_in::<usize>(2..))]
    clients: Option<usize>,
    /// Least share of the longest window that the windows of all clients have in common
    #[arg(long, default_value = "99%", value_name = "SHARE%", value_parser = share_in_percent)]
    min_overlap: f64,
    /// Accept clients with this warning, such as CLIENT_BOUND, which says that they were the limit
    /// themselves; may be repeated
    #[arg(long, value_name = "WARNING", value_parser = PossibleValuesParser::new(NAMES))]
    allow: Vec<String>,
}

impl MergeArgs {
    /// Returns the demands on the results.
    pub fn rules(&self) -> MergeRules {
        MergeRules {
            clients: self.clients,
            min_overlap: self.min_overlap,
            allowed: self.allow.clone(),
        }
    }

    /// Returns every file.
    ///
    /// # Errors
    /// [`UsageError`] if standard input would be read twice, or an input overwritten.
    pub fn files(&self) -> Result<Vec<&Path>, UsageError> {
        let files: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        once_from_stdin(&files)?;
        apart(&files, self.json.file().map(|file| ("json", file)))?;
        Ok(files)
    }
}
