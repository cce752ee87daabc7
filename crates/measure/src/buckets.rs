//! Times by coarse buckets, for a picture of how they lie.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;

/// Buckets in an octave, as in schema 2 of Prometheus's native histograms: each is 19 % wide.
const IN_AN_OCTAVE: f64 = 4.0;

/// Times in nanoseconds by buckets, each a fourth of an octave wide: the least whole number of
/// nanoseconds in each bucket that has a time, and how many times it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Buckets(BTreeMap<u64, u64>);

impl Buckets {
    /// Sorts times into buckets.
    pub fn of(times: &Counts) -> Self {
        let mut buckets = Self::default();
        for (time, count) in times.iter() {
            buckets.count(least(time, 0.0), count);
        }
        buckets
    }

    /// Returns true without times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the least time of each bucket, the least of the next bucket, and the number of times
    /// between them.
    pub fn iter(&self) -> impl Iterator<Item = ([u64; 2], u64)> {
        self.0
            .iter()
            .map(|(&from, &count)| ([from, least(from, 1.0)], count))
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        for (&from, &count) in &other.0 {
            self.count(from, count);
        }
    }

    fn count(&mut self, from: u64, count: u64) {
        let sum = self.0.entry(from).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// Returns the least time of the bucket that is `after` buckets after that of `time`.
fn least(time: u64, after: f64) -> u64 {
    let number = ((time.max(1) as f64).log2() * IN_AN_OCTAVE).floor() + after;
    (number / IN_AN_OCTAVE).exp2().ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::LONGEST;

    #[test]
    fn a_bucket_is_named_by_its_least_time_and_holds_the_times_to_the_next() {
        let mut time = 1_u64;
        while time < LONGEST {
            let (from, until) = (least(time, 0.0), least(time, 1.0));
            assert!(from <= time && time < until, "{from} {time} {until}");
            assert_eq!((least(from, 0.0), least(until, 0.0)), (from, until));
            assert!(least(until - 1, 0.0) <= from, "{from} {until}");
            time += 1 + time / 37;
        }
    }

    #[test]
    fn buckets_are_a_fourth_of_an_octave_wide_and_add_up() {
        let times = Counts::from(vec![(1000, 3), (1024, 2), (1217, 5), (1218, 1)]);
        let mut buckets = Buckets::of(&times);
        let found: Vec<_> = buckets.iter().collect();
        assert_eq!(
            found,
            [([862, 1024], 3), ([1024, 1218], 7), ([1218, 1449], 1)]
        );
        buckets.add(&Buckets::of(&Counts::from(vec![(1100, 4), (9000, 1)])));
        let counts: Vec<u64> = buckets.iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [3, 11, 1, 1]);
    }
}
