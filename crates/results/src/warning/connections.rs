//! A warning about targets with different numbers of connections.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Severity, Told, WarningKind, facts::Rival};
use crate::format::{on_one_line, plural, thousands};

/// Targets that are compared, or were measured side by side under one load, had different numbers of
/// connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct UnequalConnections {
    /// The targets, in the order of their measurements.
    pub targets: Vec<TargetConnections>,
}

/// The connections of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct TargetConnections {
    /// Its label or URL.
    pub target: String,
    /// The smallest number of its connections.
    pub least: usize,
    /// The largest number of its connections.
    pub most: usize,
}

impl TargetConnections {
    fn of(name: &str, numbers: &BTreeSet<usize>) -> Option<Self> {
        Some(Self {
            target: name.to_owned(),
            least: *numbers.first()?,
            most: *numbers.last()?,
        })
    }

    /// Returns the number of connections, or the range of several.
    fn number(&self) -> String {
        let [least, most] = [self.least, self.most].map(|number| thousands(number as f64));
        if least == most {
            least
        } else {
            format!("{least} to {most}")
        }
    }

    /// Returns its name and the number, with the noun if it is the first of several.
    fn in_words(&self, is_first: bool) -> String {
        let name = on_one_line(&self.target);
        match self.most {
            _ if !is_first => format!("{name} {}", self.number()),
            1 => format!("{name} had {}", plural(1, "connection")),
            _ => format!("{name} had {} connections", self.number()),
        }
    }
}

impl WarningKind for UnequalConnections {
    /// Two targets are unequal if they have no number of connections in common.
    fn of_rivals(rivals: &[Rival<'_>]) -> Option<Self> {
        let mut targets: Vec<(&str, BTreeSet<usize>)> = Vec::new();
        for rival in rivals {
            match targets.iter_mut().find(|(name, _)| *name == rival.name) {
                Some((_, numbers)) => drop(numbers.insert(rival.connections)),
                None => targets.push((rival.name, [rival.connections].into())),
            }
        }
        let is_apart =
            |own: &BTreeSet<usize>| targets.iter().any(|(_, other)| own.is_disjoint(other));
        if !targets.iter().any(|(_, own)| is_apart(own)) {
            return None;
        }
        let connections = targets
            .iter()
            .filter_map(|(name, numbers)| TargetConnections::of(name, numbers));
        Some(Self {
            targets: connections.collect(),
        })
    }

    fn tell(&self) -> Told {
        let targets = || self.targets.iter();
        let fewest = targets().map(|own| own.least).min().unwrap_or(0);
        let most = targets().map(|own| own.most).max().unwrap_or(0);
        let mut phrases: Vec<String> = targets()
            .enumerate()
            .map(|(at, own)| own.in_words(at == 0))
            .collect();
        let last = phrases.pop().unwrap_or_default();
        Told {
            severity: Severity::Note,
            extent: most as f64 / fewest.max(1) as f64,
            sentence: format!("{} and {last}", phrases.join(", ")),
            remedy: &[
                (
                    "to compare them, give all the same number",
                    &["--connections"],
                ),
                (
                    "; TCP and HTTP/1.1 have one for each caller, so that it is the number of callers",
                    &[],
                ),
            ],
        }
    }
}
