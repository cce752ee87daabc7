//! The reasons why results cannot be merged.

use serde_json::Value;

use crate::{
    environment_diff::EnvironmentDiff,
    format::percent,
    run::unlike,
    warning::{PartsMissing, Warning},
};

/// A reason why results cannot be merged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// There are fewer than two.
    #[error("there is nothing to merge: give the result files of two clients or more")]
    TooFew,
    /// There are not as many as there were clients.
    #[error(
        "{found} result files for {expected} clients: fetch those that are missing, or give another --clients"
    )]
    Missing {
        /// Number of files.
        found: usize,
        /// Number of clients.
        expected: usize,
    },
    /// A part of a shared load is missing.
    #[error("step {step}: {missing}: {}, or accept it with --allow-missing {}", PartsMissing::REMEDY, .missing.missing.len())]
    PartsMissing {
        /// Which step, from 1 on.
        step: usize,
        /// The parts.
        missing: PartsMissing,
    },
    /// Two are the same part of a shared load.
    #[error(
        "{first} and {second} are both part {number}: give each client's file once, and each client a --part of its own"
    )]
    SamePart {
        /// The part.
        number: usize,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// One has no step.
    #[error(
        "{0} has no results, since its client ended before it measured: merge what all have measured, or leave the file out"
    )]
    Empty(String),
    /// One is a sum already.
    #[error("{0} is itself merged: give the clients' own files, all at once")]
    Merged(String),
    /// One has changed while it was read.
    #[error("{0} has changed while it was read: merge again once all clients have ended")]
    Changed(String),
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
    /// Two are of other programs, or were not asked for the same.
    #[error(
        "{place}{} is {} in {first}, and {} in {second}: only clients that ran the same command of the same netping at the \
         same time are merged; 'netping compare' shows how others differ",
        .diff.what, .diff.base, .diff.new
    )]
    Unlike {
        /// The step, as `step 1: `; empty where the runs differ as a whole.
        place: String,
        /// One file.
        first: String,
        /// The other file.
        second: String,
        /// The difference, with the first file's value as the base's.
        diff: Box<EnvironmentDiff>,
    },
    /// A client was the limit itself.
    #[error(
        "step {step} of {name}: {}: {warning}; {}, or accept it with --allow {}",
        warning.name(), warning.remedy(), warning.name()
    )]
    Client {
        /// Which step, from 1 on.
        step: usize,
        /// The file.
        name: String,
        /// The warning.
        warning: Box<Warning>,
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
        "step {step}: the windows of {first} and {second} overlap by only {} of the longest, and {} are needed \
         (--min-overlap): {}",
        percent((.overlap * 1e3).floor() / 1e3), percent(*.needed),
        if *.is_cut_short {
            "the first was cut short, so measure again"
        } else {
            "start the clients at one moment (--start-at), with the same -d and --warmup, on hosts whose clocks agree"
        }
    )]
    Apart {
        /// Which step, from 1 on.
        step: usize,
        /// The file whose window ended first.
        first: String,
        /// The file whose window began last.
        second: String,
        /// Their overlap, as a share of the longest window.
        overlap: f64,
        /// The overlap that is needed.
        needed: f64,
        /// The first did not measure to its end.
        is_cut_short: bool,
    },
}

/// Refuses clients that differ in what all must share. Each comes with the name of its file.
pub(super) fn refuse_unlike<'a>(
    place: &str,
    clients: impl IntoIterator<Item = (&'a str, Value)>,
) -> Result<(), MergeError> {
    let mut clients = clients.into_iter();
    let Some((first, base)) = clients.next() else {
        return Ok(());
    };
    for (second, new) in clients {
        if let Some(diff) = unlike(&base, &new, &[]) {
            return Err(MergeError::Unlike {
                place: place.to_owned(),
                first: first.to_owned(),
                second: second.to_owned(),
                diff: Box::new(diff),
            });
        }
    }
    Ok(())
}
