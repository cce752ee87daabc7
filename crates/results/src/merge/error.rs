//! The reasons why results cannot be merged.

use crate::environment_diff::EnvironmentDiff;

/// A reason why results cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There are fewer than two.
    #[error("there is nothing to merge: give the result files of two clients or more")]
    TooFew,
    /// One is a sum already.
    #[error("{0} is itself merged: give the clients' own files, all at once")]
    Merged(String),
    /// One has what cannot be added up.
    #[error(
        "{0} has bulk streams or overheads of proxies, which are not merged: give results of requests"
    )]
    Kind(String),
    /// Two are the same.
    #[error(
        "{first} and {second} are of the same client, which would count twice: give each client's file once"
    )]
    Same {
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// Two have not the same steps.
    #[error(
        "{first} has {first_steps} steps and {second} has {second_steps}: all clients must run the same command to its end"
    )]
    Steps {
        /// One file.
        first: String,
        /// Its steps.
        first_steps: usize,
        /// The other.
        second: String,
        /// Its steps.
        second_steps: usize,
    },
    /// Two were not asked for the same.
    #[error(
        "step {step}: {} is {} in {first}, and {} in {second}: only clients that ran the same command at the same time are \
         merged; 'netping compare' shows how others differ",
        .diff.what, .diff.base, .diff.new
    )]
    Setting {
        /// Which step, from 1 on.
        step: usize,
        /// One file.
        first: String,
        /// The other file.
        second: String,
        /// The difference, with the first file's value as the base's.
        diff: Box<EnvironmentDiff>,
    },
    /// The time of a window is unknown.
    #[error(
        "step {step} of {name} does not say when its window began: measure again with this version of netping"
    )]
    NoTime {
        /// Which step, from 1 on.
        step: usize,
        /// The file.
        name: String,
    },
    /// The clients did not load the server together.
    #[error(
        "step {step}: the windows of {first} and {second} overlap by only {percent} % of the longest, and 99 % are needed: \
         start the clients together, with the same -d (a longer one forgives more) and --warmup, on hosts whose clocks agree"
    )]
    Apart {
        /// Which step, from 1 on.
        step: usize,
        /// The file whose window ended first.
        first: String,
        /// The file whose window began last.
        second: String,
        /// Their overlap, in per cent of the longest window.
        percent: u64,
    },
}
