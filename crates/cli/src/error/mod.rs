//! Outcomes of a command: verdicts, errors and exit codes.

mod scenario;

pub use self::scenario::ScenarioError;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use netping_client::{
    error::{SchemaError, StartError},
    service::{DataError, ExpectError},
};
use netping_protocol::{psk::KeyError, tls::TlsError};
use netping_results::format::on_lines;

/// The verdict on a command that came to its end. Of several, the greatest holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything was done, and no more requests failed than allowed.
    Success,
    /// There are warnings, and the user wanted none.
    Warnings,
    /// A condition of the user's does not hold.
    Condition,
    /// Too many requests failed.
    Requests,
    /// A result could not be saved.
    Unsaved,
    /// The user ended it.
    Interrupted,
}

impl Verdict {
    fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Requests => 1,
            Self::Condition => 4,
            Self::Warnings => 5,
            Self::Unsaved => 6,
            Self::Interrupted => 130,
        }
    }
}

/// The reason a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The flags make no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A measurement could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Anything else, such as a file that cannot be read.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<UsageError> for Failed {
    fn from(error: UsageError) -> Self {
        Self::Plan(error.into())
    }
}

/// A mistake in the command line that clap cannot see, because it lies in a combination of flags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The reason that flags make no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The flags do not go together.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A certificate or its key is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A pre-shared key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The data of requests cannot be sent.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The schema of a service is not known.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The contents that replies have to have cannot be read.
    #[error(transparent)]
    Expect(#[from] ExpectError),
}

/// Prints a line to standard error. Without one, the exit code has to do.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Reports a failure on standard error and returns the exit code.
pub fn exit_code(result: Result<Verdict, Failed>) -> ExitCode {
    let code = match result {
        Ok(verdict) => verdict.code(),
        Err(Failed::Start(StartError::Interrupted)) => Verdict::Interrupted.code(),
        Err(failed) => {
            // The message may quote a result file.
            tell(&format!("error: {}", on_lines(&failed.to_string())));
            match failed {
                Failed::Plan(
                    PlanError::Usage(_)
                    | PlanError::Data(DataError::Document { .. } | DataError::TooLarge { .. })
                    | PlanError::Expect(ExpectError::Message { .. }),
                )
                | Failed::Scenario(ScenarioError::Line { .. }) => 2,
                _ => 3,
            }
        }
    };
    ExitCode::from(code)
}
