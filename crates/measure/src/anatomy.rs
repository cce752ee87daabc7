//! The parts of a round trip, by the kernel's time stamps.

use enum_map::{Enum, EnumMap};
use serde::{Deserialize, Serialize};

use crate::{
    histogram::{Histogram, add, histogram, record},
    sample::Sample,
};

/// A part of a request's service time, in their order. The parts of a request add up to it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Enum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// From the start until the kernel hands the request's last byte to the network device.
    Send,
    /// From then until the reply's last byte has come from the device: the network and the server.
    Away,
    /// From then to the end: until the client wakes up, reads the reply and verifies it.
    Wake,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Send, Self::Away, Self::Wake];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Away => "away",
            Self::Wake => "wake",
        }
    }
}

/// The parts of one request, in nanoseconds.
pub type Parts = EnumMap<Part, u64>;

/// Returns the parts of a request that was handed to the device at `sent`, and whose reply came at `arrived`, both on
/// the clock of the sample. Returns `None` where they do not lie within the request, in this order: then one of the
/// stamps is not its own.
pub fn parts(sample: Sample, sent: u64, arrived: u64) -> Option<Parts> {
    Some(EnumMap::from_array([
        sent.checked_sub(sample.start)?,
        arrived.checked_sub(sent)?,
        sample.end.checked_sub(arrived)?,
    ]))
}

/// The requests of similar service times: how many, and the sums of their parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
#[cfg_attr(feature = "schema", schemars(with = "[u64; 4]"))]
pub struct Similar {
    /// Requests.
    pub requests: u64,
    /// The sum of each part, in nanoseconds.
    pub sums: Parts,
}

impl Similar {
    /// Adds others of the same service times.
    pub fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        for (part, sum) in &mut self.sums {
            *sum = sum.saturating_add(other.sums[part]);
        }
    }
}

impl From<[u64; 4]> for Similar {
    fn from([requests, send, away, wake]: [u64; 4]) -> Self {
        Self {
            requests,
            sums: EnumMap::from_array([send, away, wake]),
        }
    }
}

impl From<Similar> for [u64; 4] {
    fn from(similar: Similar) -> Self {
        let [send, away, wake] = similar.sums.into_array();
        [similar.requests, send, away, wake]
    }
}

/// Steps of an octave: those of similar service times differ by at most a 64th.
const STEPS: u64 = 64;

/// Returns the number of the group of similar service times that this one, in nanoseconds, belongs to.
pub fn group_of(total: u64) -> usize {
    let octave = total.max(STEPS).ilog2() - STEPS.ilog2();
    (u64::from(octave) * STEPS + (total >> octave)) as usize
}

/// Returns the least service time of a group, in nanoseconds.
pub fn group_start(group: usize) -> u64 {
    let group = group as u64;
    let octave = (group / STEPS).saturating_sub(1);
    (group - octave * STEPS)
        .checked_shl(octave as u32)
        .unwrap_or(u64::MAX)
}

/// The parts of the requests that count.
#[derive(Debug, Clone)]
pub struct Anatomy {
    /// The times of each part, in nanoseconds.
    pub parts: EnumMap<Part, Histogram>,
    /// The same by service time: those of each [group](group_of), from the shortest on.
    pub by_total: Vec<Similar>,
    /// Successful requests that count, but have no parts: a stamp is missing, or is of another request.
    pub without_stamps: u64,
    /// Successful requests that count, but have no parts: the time of day was set meanwhile.
    pub clock_set: u64,
}

impl Default for Anatomy {
    fn default() -> Self {
        Self {
            parts: EnumMap::from_fn(|_| histogram()),
            by_total: Vec::new(),
            without_stamps: 0,
            clock_set: 0,
        }
    }
}

impl Anatomy {
    /// Adds one request.
    pub fn record(&mut self, parts: Parts) {
        for (part, histogram) in &mut self.parts {
            record(histogram, parts[part]);
        }
        let one = Similar {
            requests: 1,
            sums: parts,
        };
        self.group(group_of(parts.values().sum())).add(&one);
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        for (part, histogram) in &mut self.parts {
            add(histogram, &other.parts[part]);
        }
        for (group, own) in other.by_total.iter().enumerate() {
            self.group(group).add(own);
        }
        self.without_stamps += other.without_stamps;
        self.clock_set += other.clock_set;
    }

    fn group(&mut self, group: usize) -> &mut Similar {
        if self.by_total.len() <= group {
            self.by_total.resize(group + 1, Similar::default());
        }
        &mut self.by_total[group]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(start: u64, end: u64) -> Sample {
        Sample {
            intended: 0,
            free: 0,
            start,
            end,
        }
    }

    proptest! {
        #[test]
        fn the_parts_of_a_request_are_its_service_time(mut times: [u64; 4]) {
            times.sort_unstable();
            let [start, sent, arrived, end] = times;
            let parts = parts(sample(start, end), sent, arrived).unwrap();
            prop_assert_eq!(parts.into_array(), [sent - start, arrived - sent, end - arrived]);
            prop_assert_eq!(parts.values().sum::<u64>(), end - start);
        }

        #[test]
        fn service_times_of_a_group_are_similar(total in 0_u64..1 << 60) {
            let group = group_of(total);
            let (least, next) = (group_start(group), group_start(group + 1));
            prop_assert!((least..next).contains(&total), "{group}: {least}..{next}");
            prop_assert!(next - least <= 1 + least / STEPS, "{group}: {least}..{next}");
        }
    }

    #[test]
    fn stamps_that_are_not_within_the_request_give_no_parts() {
        let of = |sent, arrived| parts(sample(100, 200), sent, arrived);
        assert!(of(100, 200).is_some());
        for (sent, arrived) in [(99, 150), (150, 201), (150, 149)] {
            assert_eq!(of(sent, arrived), None, "{sent} {arrived}");
        }
    }

    #[test]
    fn requests_are_kept_by_part_and_by_service_time() {
        let mut anatomy = Anatomy::default();
        let mut other = Anatomy::default();
        anatomy.record(EnumMap::from_array([1, 2, 3]));
        other.record(EnumMap::from_array([3, 1, 2]));
        other.record(EnumMap::from_array([1_000, 20_000, 9_000]));
        (other.without_stamps, other.clock_set) = (4, 5);
        anatomy.merge(&other);
        anatomy.merge(&other);
        assert_eq!(<[u64; 4]>::from(anatomy.by_total[6]), [3, 7, 4, 7]);
        let long: [u64; 4] = anatomy.by_total[group_of(30_000)].into();
        assert_eq!(long, [2, 2_000, 40_000, 18_000]);
        assert_eq!(Similar::from(long), anatomy.by_total[group_of(30_000)]);
        assert_eq!(anatomy.by_total.len(), group_of(30_000) + 1);
        assert_eq!((anatomy.without_stamps, anatomy.clock_set), (8, 10));
        let longest = Part::ALL.map(|part| anatomy.parts[part].max());
        assert_eq!(longest, [1_000, 20_015, 9_007]);
        assert!(anatomy.parts.values().all(|times| times.len() == 5));
    }
}
