//! Outcomes of a command: verdicts, errors and exit codes.
//!
//! Every error is a failure of the system, of a server or of a file, and ends the process with 3,
//! except those that [`usage`] and [`require`] make, and those of data that the user gave: they end it
//! with 2.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use netping_client::{error::StartError, service::DataError};
use netping_results::format::on_lines;

/// The verdict on a command that came to its end. Of several, the greatest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything was done, and no more requests failed than allowed.
    Success,
    /// A condition of the user's does not hold.
    Condition,
    /// Nothing can be told on this machine.
    Undecided,
    /// The results have warnings that the user does not accept: a condition on them decides nothing.
    Warnings,
    /// Too many requests failed.
    Requests,
    /// Some targets could not be measured.
    Unmeasured,
    /// A result could not be saved.
    Unsaved,
    /// The user ended it.
    Interrupted,
}

impl Verdict {
    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Requests => 1,
            Self::Unmeasured => 3,
            Self::Condition => 4,
            Self::Warnings => 5,
            Self::Unsaved => 6,
            Self::Undecided => 7,
            Self::Interrupted => 130,
        }
    }
}

/// Prints a line to standard error. Without one, the exit code has to do.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Reports a failure on standard error and returns the exit code.
pub fn exit_code(result: anyhow::Result<Verdict>) -> ExitCode {
    let code = match result {
        Ok(verdict) => verdict.code(),
        Err(error) if matches!(error.downcast_ref(), Some(StartError::Interrupted)) => {
            Verdict::Interrupted.code()
        }
        Err(error) => {
            // The message may quote a result file.
            tell(&format!("error: {}", on_lines(&message(&error))));
            if is_usage(&error) { 2 } else { 3 }
        }
    };
    ExitCode::from(code)
}

/// A mistake in the command line or in a file that it names. Only [`usage`] makes it, so that no
/// other error can pass for one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// Returns the error of a mistake in the command line, which this message explains.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Fails with [`usage`] unless a command line is as it has to be.
pub fn require(good: bool, message: impl Into<String>) -> anyhow::Result<()> {
    if good { Ok(()) } else { Err(usage(message)) }
}

/// Returns true for a mistake in the command line or in a file that it names.
pub fn is_usage(error: &anyhow::Error) -> bool {
    let is_unfit = matches!(error.downcast_ref(), Some(DataError::Unfit(_)));
    error.is::<UsageError>() || is_unfit
}

/// Returns an error with its causes, but for those that it quotes itself.
fn message(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text.as_str() {
            "" => cause,
            text if text.contains(&cause) => text.to_owned(),
            text => format!("{text}: {cause}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_verdicts_the_documented_one_holds() {
        use Verdict::{
            Condition, Interrupted, Requests, Success, Undecided, Unmeasured, Unsaved, Warnings,
        };
        let mut all = [
            Success,
            Requests,
            Unmeasured,
            Condition,
            Undecided,
            Warnings,
            Unsaved,
            Interrupted,
        ];
        all.sort_by(|a, b| b.cmp(a));
        assert_eq!(all.map(Verdict::code), [130, 6, 3, 1, 5, 7, 4, 0]);
    }
}
