//! Completeness of a run or step.

use serde::{Deserialize, Serialize};

/// Whether all of a run or step was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All of it.
    Complete,
    /// It was interrupted, or is still going on.
    Partial,
}
