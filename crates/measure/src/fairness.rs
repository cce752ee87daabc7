//! The spread of a step's requests over its connections.

use serde::{Deserialize, Serialize};

/// Maximum number of connections that are listed one by one.
const MOST_LISTED: usize = 1024;

/// The requests of one connection that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerConnection {
    /// Verified replies.
    pub requests: u64,
    /// Mean service time, in nanoseconds; 0 without requests.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
}

/// The spread of requests over connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Verified replies of the connection with the fewest.
    pub min: u64,
    /// The median.
    pub median: u64,
    /// Of the connection with the most.
    pub max: u64,
    /// Jain's index: 1 where all have the same, 1/n where one has all (Jain, Chiu and Hawe, "A
    /// quantitative measure of fairness and discrimination for resource allocation in shared
    /// computer systems", 1984).
    pub jain: f64,
    /// Each connection; empty where there are more than 1024.
    pub connections: Vec<PerConnection>,
}

impl Fairness {
    /// Summarizes the connections; `None` with fewer than two.
    pub fn of(mut connections: Vec<PerConnection>) -> Option<Self> {
        if connections.len() < 2 {
            return None;
        }
        let mut counts: Vec<u64> = connections
            .iter()
            .map(|connection| connection.requests)
            .collect();
        counts.sort_unstable();
        let sum: f64 = counts.iter().map(|&count| count as f64).sum();
        let squares: f64 = counts.iter().map(|&count| (count as f64).powi(2)).sum();
        let n = counts.len();
        if n > MOST_LISTED {
            connections.clear();
        }
        let jain = if squares > 0.0 {
            sum * sum / (n as f64 * squares)
        } else {
            1.0
        };
        Some(Self {
            min: counts[0],
            median: counts[n / 2],
            max: counts[n - 1],
            jain,
            connections,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[u64]) -> Option<Fairness> {
        Fairness::of(
            counts
                .iter()
                .map(|&requests| PerConnection {
                    requests,
                    mean: 1.0,
                })
                .collect(),
        )
    }

    #[test]
    fn the_index_is_one_for_equals_and_one_nth_for_a_hog() {
        assert!((of(&[5, 5, 5]).unwrap().jain - 1.0).abs() < 1e-12);
        let hog = of(&[0, 9, 0, 0]).unwrap();
        assert!((hog.jain - 0.25).abs() < 1e-12);
        assert_eq!((hog.min, hog.max), (0, 9));
        assert_eq!(of(&[7]), None);
    }
}
