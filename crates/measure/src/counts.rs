//! Histograms reduced to the values that occur.

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, histogram, record};

/// Values and how often each occurs, ascending.
///
/// A dense [`Histogram`] takes 213 kB; this takes 16 bytes for each distinct value, so that a run
/// can keep thousands of them. Values are the upper ends of the dense histogram's slots: sums of
/// counts are exact. Files have them in the text form of HdrHistogram.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(with = "String")
)]
pub struct Counts(Vec<(u64, u64)>);

impl Counts {
    /// Returns the number of samples.
    pub fn len(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Returns true without samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the greatest value.
    pub fn max(&self) -> Option<u64> {
        self.0.last().map(|(value, _)| *value)
    }

    /// Returns the smallest value that a share `q` of the samples does not exceed.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        quantile(self.iter(), q)
    }

    /// Returns each value with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        self.0.iter().copied()
    }

    /// Adds the samples of `other`.
    pub fn add(&mut self, other: &Self) {
        self.merge(other.iter());
    }

    /// Adds the samples of a dense histogram.
    pub fn add_histogram(&mut self, other: &Histogram) {
        self.merge(recorded(other));
    }

    /// Returns the same samples as a dense histogram.
    pub fn to_histogram(&self) -> Histogram {
        let mut dense = histogram();
        for (value, count) in self.iter() {
            dense.saturating_record_n(value, count);
        }
        dense
    }

    fn merge(&mut self, other: impl Iterator<Item = (u64, u64)>) {
        let mut other = other.peekable();
        if other.peek().is_none() {
            return;
        }
        let mut merged = Vec::with_capacity(self.0.len() + 64);
        let mut own = self.iter().peekable();
        for (at, count) in other {
            while let Some(entry) = own.next_if(|(value, _)| *value < at) {
                merged.push(entry);
            }
            let before = own
                .next_if(|(value, _)| *value == at)
                .map_or(0, |(_, count)| count);
            merged.push((at, before.saturating_add(count)));
        }
        merged.extend(own);
        self.0 = merged;
    }
}

impl From<&Histogram> for Counts {
    fn from(histogram: &Histogram) -> Self {
        Self(recorded(histogram).collect())
    }
}

impl FromIterator<u64> for Counts {
    /// Takes single values.
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut dense = histogram();
        for value in values {
            record(&mut dense, value);
        }
        Self::from(&dense)
    }
}

impl From<Vec<(u64, u64)>> for Counts {
    /// Takes values in any order; each must occur once.
    fn from(mut counts: Vec<(u64, u64)>) -> Self {
        counts.sort_unstable();
        Self(counts)
    }
}

/// Returns the smallest value that a share `q` of all counts does not exceed (nearest rank).
pub fn quantile(counts: impl Iterator<Item = (u64, u64)> + Clone, q: f64) -> Option<u64> {
    let total: u64 = counts.clone().map(|(_, count)| count).sum();
    let rank = ((q * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let mut counts = counts;
    counts
        .find(|(_, count)| {
            seen += count;
            seen >= rank
        })
        .map(|(value, _)| value)
}

fn recorded(histogram: &Histogram) -> impl Iterator<Item = (u64, u64)> {
    histogram
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_at_value()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_the_nearest_rank() {
        let counts = Counts::from(vec![(30, 1), (10, 90), (20, 9)]);
        assert_eq!(counts.len(), 100);
        assert_eq!(counts.quantile(0.5), Some(10));
        assert_eq!(counts.quantile(0.99), Some(20));
        assert_eq!(counts.max(), Some(30));
        assert_eq!(Counts::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn sums_and_the_dense_form_agree(
            first in prop::collection::vec(0_u64..70_000_000_000, 0..100),
            second in prop::collection::vec(0_u64..5_000, 0..100),
        ) {
            let of = |times: &[u64]| times.iter().copied().collect::<Counts>();
            let (mut sum, b) = (of(&first), of(&second));
            let mut a = sum.to_histogram();
            sum.add(&b);
            a.add(b.to_histogram()).unwrap();
            prop_assert_eq!(&sum, &Counts::from(&a));
            prop_assert_eq!(&sum.to_histogram(), &a);
            prop_assert_eq!(sum.len(), a.len());
        }
    }
}
