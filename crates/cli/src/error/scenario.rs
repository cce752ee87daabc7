//! Errors of scenario files.

use std::io;

/// A scenario that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error.
        reason: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{path}:{line}: {reason}")]
    Line {
        /// Path of the file.
        path: String,
        /// The line, from 1 on.
        line: usize,
        /// The mistake.
        reason: String,
    },
    /// A command line cannot be written as a scenario.
    #[error("the result's command line cannot be read by this version: {0}")]
    CommandLine(String),
}
