//! The parts of round trips, described and kept.

use std::{collections::BTreeMap, ops::Range};

use netping_measure::{
    anatomy::{Anatomy, Part, Similar, group_of, group_start},
    counts::Counts,
    distribution::is_backed,
};
use serde::{Deserialize, Serialize};

use crate::times::Times;

/// The parts of round trips, by the kernel's time stamps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnatomySummary {
    /// The times of each part that requests have. Those of a request add up to its service time; quantiles of the parts
    /// do not.
    pub parts: BTreeMap<Part, Times>,
    /// The requests about the median: the middle tenth by service time; absent without requests.
    pub typical: Option<PartMeans>,
    /// The slowest hundredth by service time; absent with too few requests for a p99.
    pub slowest: Option<PartMeans>,
    /// Successful requests that have no parts: a time stamp is missing, or is of another request.
    pub without_stamps: u64,
    /// Successful requests that have no parts: the time of day was set meanwhile.
    pub clock_set: u64,
    /// Requests of similar service times: their number, and the sums of their parts in nanoseconds: send, away, network,
    /// out, server, back, wake. The key is the number of the group: below 128 its service time in nanoseconds; above, each octave
    /// has 64 groups.
    pub by_total: BTreeMap<usize, Similar>,
}

/// The means of each part among some of the requests: their sum is their mean service time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartMeans {
    /// Requests. Of the groups of similar service times at either end, as many as are needed count, each with the
    /// group's means.
    pub requests: f64,
    /// The mean of each part that requests have, in nanoseconds.
    #[serde(rename = "mean_ns")]
    pub means: BTreeMap<Part, f64>,
}

impl PartMeans {
    /// Returns the mean service time, in nanoseconds.
    pub fn total(&self) -> f64 {
        self.means.values().sum()
    }

    /// Returns the part with the largest mean.
    pub fn largest(&self) -> Option<(Part, f64)> {
        let means = self.means.iter().map(|(part, mean)| (*part, *mean));
        means.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The shares of requests, by service time, that are typical, and that are the slowest.
const TYPICAL: Range<f64> = 0.45..0.55;
const SLOWEST: Range<f64> = 0.99..1.0;

impl AnatomySummary {
    /// Describes the parts of a step.
    pub fn of(anatomy: &Anatomy) -> Self {
        let parts = anatomy.parts.iter();
        let groups = anatomy.by_total.iter().copied().enumerate();
        Self::described(
            parts
                .filter(|(_, times)| !times.is_empty())
                .map(|(part, times)| (part, Counts::from(times)))
                .collect(),
            groups.filter(|(_, own)| own.requests > 0).collect(),
            (anatomy.without_stamps, anatomy.clock_set),
        )
    }

    /// Returns the parts of all requests together, of several clients or trials; `None` without any.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let mut parts: BTreeMap<Part, Counts> = BTreeMap::new();
        let mut by_total: BTreeMap<usize, Similar> = BTreeMap::new();
        let (mut without_stamps, mut clock_set, mut is_none) = (0_u64, 0_u64, true);
        for own in all {
            is_none = false;
            for (part, times) in &own.parts {
                parts.entry(*part).or_default().add(&times.histogram);
            }
            for (group, similar) in &own.by_total {
                by_total.entry(*group).or_default().add(similar);
            }
            without_stamps = without_stamps.saturating_add(own.without_stamps);
            clock_set = clock_set.saturating_add(own.clock_set);
        }
        (!is_none).then(|| Self::described(parts, by_total, (without_stamps, clock_set)))
    }

    fn described(
        parts: BTreeMap<Part, Counts>,
        by_total: BTreeMap<usize, Similar>,
        (without_stamps, clock_set): (u64, u64),
    ) -> Self {
        let counts = by_total.values().map(|own| own.requests);
        let requests = counts.fold(0, u64::saturating_add);
        let has_slowest = is_backed(requests, 100.0 * SLOWEST.start);
        let own: Vec<Part> = parts.keys().copied().collect();
        let of = |shares| means(&own, &by_total, requests, shares);
        Self {
            typical: of(TYPICAL),
            slowest: has_slowest.then(|| of(SLOWEST)).flatten(),
            parts: parts
                .into_iter()
                .map(|(part, times)| (part, Times::of(times)))
                .collect(),
            without_stamps,
            clock_set,
            by_total,
        }
    }

    /// Returns the number of requests that have parts.
    pub fn requests(&self) -> u64 {
        let counts = self.by_total.values().map(|own| own.requests);
        counts.fold(0, u64::saturating_add)
    }

    /// Checks that the parts add up: each request has one send and one wake, and one of away, network and out; with
    /// network or out it has one server, with out one back. The sums of each group are those of service times that
    /// belong to it.
    ///
    /// # Errors
    /// The contradiction.
    pub(crate) fn check(&self) -> Result<(), String> {
        let requests = self.requests();
        let count = |part: Part| self.parts.get(&part).map_or(0, |own| own.histogram.len());
        let counts = |parts: &[Part]| {
            let all = parts.iter().map(|part| count(*part));
            all.fold(0, u64::saturating_add)
        };
        for (parts, expected) in [
            (&[Part::Send][..], requests),
            (&[Part::Away, Part::Network, Part::Out], requests),
            (&[Part::Server], counts(&[Part::Network, Part::Out])),
            (&[Part::Back], count(Part::Out)),
            (&[Part::Wake], requests),
        ] {
            let count = counts(parts);
            if count != expected {
                let names: Vec<&str> = parts.iter().map(|part| part.name()).collect();
                let names = names.join(", ");
                return Err(format!(
                    "{count} times of the parts {names}, of {requests} requests with parts; it should be {expected}"
                ));
            }
        }
        if let Some((group, _)) = self.by_total.range(group_of(u64::MAX)..).next() {
            return Err(format!("by_total has no group {group}"));
        }
        for (group, own) in &self.by_total {
            let sum: u128 = own.sums.values().map(|sum| u128::from(*sum)).sum();
            let bounds = [*group, group.saturating_add(1)]
                .map(|group| u128::from(group_start(group)) * u128::from(own.requests));
            if sum < bounds[0] || sum >= bounds[1].max(1) {
                return Err(format!(
                    "group {group} of by_total has parts of {sum} ns, which are not its own"
                ));
            }
        }
        Ok(())
    }
}

/// Returns the means of these parts of the requests between two shares of all, by service time; `None` without any.
fn means(
    parts: &[Part],
    by_total: &BTreeMap<usize, Similar>,
    requests: u64,
    shares: Range<f64>,
) -> Option<PartMeans> {
    let (from, until) = (shares.start * requests as f64, shares.end * requests as f64);
    let mut sums: BTreeMap<Part, f64> = parts.iter().map(|part| (*part, 0.0)).collect();
    let (mut below, mut counted) = (0.0, 0.0);
    for own in by_total.values() {
        let upto = below + own.requests as f64;
        let inside = (upto.min(until) - f64::max(below, from)).max(0.0);
        if inside > 0.0 {
            counted += inside;
            for (part, sum) in &mut sums {
                *sum += own.sums[*part] as f64 * inside / own.requests as f64;
            }
        }
        below = upto;
    }
    (counted > 0.0).then(|| PartMeans {
        requests: counted,
        means: sums
            .into_iter()
            .map(|(part, sum)| (part, sum / counted))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use netping_measure::anatomy::{Parts, Served};

    use super::*;
    use crate::fixtures;

    /// Returns an anatomy of requests with these parts, each so often.
    fn anatomy(requests: &[([u64; 3], u64)]) -> Anatomy {
        let of = |(parts, count): &([u64; 3], u64)| (fixtures::parts(*parts, None), *count);
        with(&requests.iter().map(of).collect::<Vec<_>>())
    }

    fn with(requests: &[(Parts, u64)]) -> Anatomy {
        let mut anatomy = Anatomy::default();
        for (parts, count) in requests {
            for _ in 0..*count {
                anatomy.record(*parts);
            }
        }
        anatomy
    }

    fn of(means: Option<&PartMeans>) -> Vec<f64> {
        let means = means.into_iter().flat_map(|own| own.means.values());
        means.copied().collect()
    }

    #[test]
    fn the_slowest_requests_are_told_by_what_they_spent_their_time_on() {
        let summary = AnatomySummary::of(&anatomy(&[
            ([1_000, 20_000, 9_000], 1_970),
            ([1_000, 20_000, 500_000], 15),
            ([1_000, 900_000, 9_000], 15),
        ]));
        assert_eq!(of(summary.typical.as_ref()), [1_000.0, 20_000.0, 9_000.0]);
        // The slowest twenty: the fifteen of the server, and five of the client.
        let slowest = summary.slowest.clone();
        assert_eq!(of(slowest.as_ref()), [1_000.0, 680_000.0, 131_750.0]);
        let slowest = slowest.unwrap();
        assert_eq!((slowest.requests, slowest.total()), (20.0, 812_750.0));
        assert_eq!(slowest.largest(), Some((Part::Away, 680_000.0)));
        let few = AnatomySummary::of(&anatomy(&[([1, 2, 3], 999)]));
        assert_eq!((few.requests(), few.slowest), (999, None));
        let none = AnatomySummary::of(&anatomy(&[]));
        assert_eq!((none.requests(), none.typical), (0, None));
    }

    #[test]
    fn the_parts_of_several_clients_are_those_of_one_that_sent_all() {
        let requests = [([1_000, 20_000, 9_000], 700), ([2_000, 30_000, 8_000], 700)];
        let mut whole = anatomy(&requests);
        (whole.without_stamps, whole.clock_set) = (2, 3);
        let halves = requests.map(|own| AnatomySummary::of(&anatomy(&[own])));
        let mut other = halves[1].clone();
        (other.without_stamps, other.clock_set) = (2, 3);
        let sum = AnatomySummary::sum([&halves[0], &other].into_iter());
        assert_eq!(sum, Some(AnatomySummary::of(&whole)));
        assert_eq!(AnatomySummary::sum([].into_iter()), None);
    }

    #[test]
    fn parts_that_do_not_add_up_are_found() {
        let right = AnatomySummary::of(&anatomy(&[([1_000, 20_000, 9_000], 10)]));
        assert_eq!(right.check(), Ok(()));
        let mut missing = right.clone();
        missing.parts.remove(&Part::Wake);
        assert!(missing.check().unwrap_err().contains("wake"));
        for (sum, is_right) in [(19_000_u64, false), (20_000, true), (21_000, false)] {
            let mut changed = right.clone();
            let group = changed.by_total.get_mut(&group_of(30_000)).unwrap();
            group.sums[Part::Away] = 10 * sum;
            assert_eq!(changed.check().is_ok(), is_right, "{sum}");
        }
    }

    #[test]
    fn a_request_has_each_part_of_the_time_away_or_none() {
        let whole = [1_000, 20_000, 9_000];
        let all = [
            None,
            Some(Served::For(4_000)),
            Some(Served::Between(5_000, 9_000)),
        ];
        let all = all.map(|served| (fixtures::parts(whole, served), 10));
        let right = AnatomySummary::of(&with(&all));
        assert_eq!(right.check(), Ok(()));
        assert_eq!(right.requests(), 30);
        let means = right.typical.clone().unwrap();
        assert_eq!(means.means.len(), Part::ALL.len());
        assert!((means.total() - 30_000.0).abs() < 1e-6);
        for part in Part::ALL {
            let mut missing = right.clone();
            missing.parts.remove(&part);
            assert!(missing.check().unwrap_err().contains(part.name()));
        }
        let undivided = AnatomySummary::of(&with(&all[..1]));
        let parts: Vec<Part> = undivided.parts.into_keys().collect();
        assert_eq!(parts, [Part::Send, Part::Away, Part::Wake]);
    }
}
