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
