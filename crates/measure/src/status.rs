//! Completeness of a run or step.

use serde::{Deserialize, Serialize};

/// The completeness of a run or step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All of it.
    Complete,
    /// It was interrupted, or is still going on.
    Partial,
}

impl Status {
    /// Returns [`Status::Partial`] if any of its parts is partial.
    pub fn of_all(parts: impl IntoIterator<Item = Self>) -> Self {
        let partial = parts.into_iter().any(|part| part == Self::Partial);
        if partial {
            Self::Partial
        } else {
            Self::Complete
        }
    }

    /// Returns its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}
