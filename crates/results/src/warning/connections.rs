//! Warnings about connections: slow ones, and different numbers of them.

use std::{collections::BTreeSet, net::SocketAddr};

use netping_measure::{fairness::PerConnection, statistics::outliers::median};
use serde::{Deserialize, Serialize};

use super::{Facts, Severity, Subject, Told, WarningKind, facts::Rival};
use crate::{
    format::{on_one_line, plural, thousands},
    time_unit,
};

/// One connection, or a few, had longer service times or fewer replies than the others, by far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct SlowConnection {
    /// Slow connections.
    pub slow: usize,
    /// All connections.
    pub connections: usize,
    /// The number of the slowest among all, from 1 on.
    pub number: usize,
    /// Its server's address.
    #[serde(default)]
    pub server: Option<SocketAddr>,
    /// The port of its client's end.
    #[serde(default)]
    pub local_port: Option<u16>,
    /// Its replies.
    pub requests: u64,
    /// The median of the others' replies.
    pub others_requests: f64,
    /// Its mean service time, in nanoseconds; 0 without replies.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// The median of the others' mean service times, in nanoseconds.
    #[serde(rename = "others_mean_ns")]
    pub others_mean: f64,
    /// True where any free caller took a request that was due, so that quantiles have few on it.
    #[serde(default)]
    pub avoided: bool,
}

impl SlowConnection {
    const REMEDY: &str = "look at the server thread, backend or network path behind it";

    /// Returns the name of the slowest: by its port, or else by its number.
    fn name(&self) -> String {
        let name = match self.local_port {
            Some(port) => format!("local port {port}"),
            None => format!("number {}", self.number),
        };
        let to = self.server.map(|server| format!(" to {server}"));
        name + &to.unwrap_or_default()
    }

    /// Returns true if it is slow by its times rather than by its number of replies.
    fn is_long(&self) -> bool {
        self.requests > 0 && self.mean >= 2.0 * self.others_mean
    }
}

impl WarningKind for SlowConnection {
    fn of_step(facts: &Facts<'_>) -> Option<Self> {
        if facts.subject == Subject::Both {
            return None;
        }
        let all = facts.connections;
        let slow = all.iter().enumerate().filter(|(_, own)| own.slow);
        // Without a reply it is the slowest.
        let time = |own: &PerConnection| match own.requests {
            0 => f64::INFINITY,
            _ => own.mean,
        };
        let (at, slowest) = slow
            .clone()
            .max_by(|(_, a), (_, b)| time(a).total_cmp(&time(b)))?;
        let others = || all.iter().filter(|own| !own.slow);
        let answered = others().filter(|own| own.requests > 0);
        Some(Self {
            slow: slow.count(),
            connections: all.len(),
            number: at + 1,
            server: slowest.server,
            local_port: slowest.local_port,
            requests: slowest.requests,
            others_requests: median(others().map(|own| own.requests as f64)),
            mean: slowest.mean,
            others_mean: median(answered.map(|own| own.mean)),
            avoided: facts.settings.planned_rate.is_some() && !facts.settings.is_fixed(),
        })
    }

    fn tell(&self) -> Told {
        let (all, name) = (self.connections, self.name());
        let which = match self.slow {
            1 => format!("1 of {all} connections was slow: {name}"),
            slow => format!("{slow} of {all} connections were slow: the slowest ({name})"),
        };
        let replies = match self.requests {
            0 => "no reply in the window".to_owned(),
            1 => "1 reply".to_owned(),
            requests => format!("{} replies", thousands(requests as f64)),
        };
        let usual = thousands(self.others_requests);
        let sentence = if self.is_long() {
            let [own, others] = [self.mean, self.others_mean].map(time_unit::time);
            format!(
                "{which} had {replies} after {own} on average; the median of the others is {usual} after {others}"
            )
        } else {
            format!("{which} had {replies}; the median of the others is {usual}")
        };
        Told {
            severity: Severity::Note,
            extent: if self.requests == 0 {
                f64::INFINITY
            } else {
                self.mean / self.others_mean.max(1.0)
            },
            sentence,
            remedy: if self.avoided {
                &[
                    (Self::REMEDY, &[]),
                    (
                        "; the quantiles have few of its requests: to see those of users who cannot go elsewhere, give each \
                         request a connection beforehand",
                        &["--assign"],
                    ),
                ]
            } else {
                &[(Self::REMEDY, &[])]
            },
        }
    }
}

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
