//! Warnings about clients that share a load.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Severity, Told, WarningKind};
use crate::format::thousands;

/// Parts of a load that several clients shared are not in the sum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct PartsMissing {
    /// The clients that shared the load.
    pub clients: usize,
    /// The numbers of those that are missing.
    pub missing: Vec<usize>,
    /// Their callers.
    pub callers: usize,
    /// The callers of all clients.
    pub all_callers: usize,
}

impl PartsMissing {
    /// Most numbers that are named.
    const NAMED: usize = 5;

    pub(crate) const REMEDY: &str = "fetch the missing results, or measure again with all clients";
}

impl fmt::Display for PartsMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.missing.iter().take(Self::NAMED);
        let mut names: Vec<String> = first.map(ToString::to_string).collect();
        let more = self.missing.len().saturating_sub(Self::NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let (what, are, them) = match &self.missing[..] {
            [_] => ("part", "is", "it"),
            _ => ("parts", "are", "them"),
        };
        write!(
            f,
            "{what} {} of {} {are} missing, and with {them} {} of {} callers",
            names.join(", "),
            self.clients,
            thousands(self.callers as f64),
            thousands(self.all_callers as f64)
        )
    }
}

impl WarningKind for PartsMissing {
    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.missing.len() as f64,
            sentence: self.to_string(),
            remedy: &[(Self::REMEDY, &[])],
        }
    }
}
