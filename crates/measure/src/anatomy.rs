//! The parts of a round trip, by the kernel's time stamps.

use enum_map::{Enum, EnumMap};
use serde::{Deserialize, Serialize};

use crate::{
    histogram::{Histogram, add, histogram, record},
    sample::Sample,
};

/// A part of a request's service time, in their order. The parts that a request has add up to it exactly.
///
/// Between the first and the last lies the time away. It is one part, unless the server tells its times: then it
/// is [`Out`](Self::Out), [`Server`](Self::Server) and [`Back`](Self::Back) where both ends have one clock, and
/// [`Network`](Self::Network) and [`Server`](Self::Server) where they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Enum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// From the start until the kernel hands the request's last byte to the network device.
    Send,
    /// From when the request was sent until the reply's last byte has come from the device: the network and the server.
    Away,
    /// That time without the server's own: what is in [`Out`](Self::Out) and [`Back`](Self::Back).
    Network,
    /// From when the request was sent until the server has read and decrypted it: the way there, and the wait for the
    /// server's thread.
    Out,
    /// From when the server has read the request until it has its reply.
    Server,
    /// From when the server has its reply until this has come from the device: encryption, the server's system call,
    /// and the way back.
    Back,
    /// From when the reply has come from the device to the end: until the client wakes up, reads the reply and verifies it.
    Wake,
}

impl Part {
    /// Every part.
    pub const ALL: [Self; 7] = [
        Self::Send,
        Self::Away,
        Self::Network,
        Self::Out,
        Self::Server,
        Self::Back,
        Self::Wake,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Away => "away",
            Self::Network => "network",
            Self::Out => "out",
            Self::Server => "server",
            Self::Back => "back",
            Self::Wake => "wake",
        }
    }
}

/// The parts that one request has, in nanoseconds.
pub type Parts = EnumMap<Part, Option<u64>>;

/// A server's account of a request.
#[derive(Debug, Clone, Copy)]
pub enum Served {
    /// The time from its receipt to its reply, in nanoseconds.
    For(u64),
    /// The times of both, on the clock of the sample.
    Between(u64, u64),
}

/// Returns the parts of a request that was handed to the device at `sent`, and whose reply came at `arrived`, both on
/// the clock of the sample. Returns `None` where they, and the server's times, do not lie within the request, in this
/// order: then one of them is not its own, or the server's clock is another.
pub fn parts(sample: Sample, sent: u64, arrived: u64, served: Option<Served>) -> Option<Parts> {
    let away = arrived.checked_sub(sent)?;
    let mut parts = EnumMap::default();
    parts[Part::Send] = Some(sent.checked_sub(sample.start)?);
    parts[Part::Wake] = Some(sample.end.checked_sub(arrived)?);
    match served {
        None => parts[Part::Away] = Some(away),
        Some(Served::For(time)) => {
            parts[Part::Network] = Some(away.checked_sub(time)?);
            parts[Part::Server] = Some(time);
        }
        Some(Served::Between(received, replied)) => {
            parts[Part::Out] = Some(received.checked_sub(sent)?);
            parts[Part::Server] = Some(replied.checked_sub(received)?);
            parts[Part::Back] = Some(arrived.checked_sub(replied)?);
        }
    }
    Some(parts)
}

/// The requests of similar service times: how many, and the sums of their parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "[u64; 8]", into = "[u64; 8]")]
#[cfg_attr(feature = "schema", schemars(with = "[u64; 8]"))]
pub struct Similar {
    /// Requests.
    pub requests: u64,
    /// The sum of each part, in nanoseconds.
    pub sums: EnumMap<Part, u64>,
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

impl From<[u64; 8]> for Similar {
    fn from([requests, sums @ ..]: [u64; 8]) -> Self {
        Self {
            requests,
            sums: EnumMap::from_array(sums),
        }
    }
}

impl From<Similar> for [u64; 8] {
    fn from(similar: Similar) -> Self {
        let [send, away, network, out, server, back, wake] = similar.sums.into_array();
        [
            similar.requests,
            send,
            away,
            network,
            out,
            server,
            back,
            wake,
        ]
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
            if let Some(time) = parts[part] {
                record(histogram, time);
            }
        }
        let sums = parts.map(|_, time| time.unwrap_or(0));
        let one = Similar { requests: 1, sums };
        self.group(group_of(sums.values().sum())).add(&one);
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
        fn the_parts_of_a_request_are_its_service_time(mut times: [u64; 6]) {
            times.sort_unstable();
            let [start, sent, received, replied, arrived, end] = times;
            let all = [
                None,
                Some(Served::For(replied - received)),
                Some(Served::Between(received, replied)),
            ];
            for served in all {
                let parts = parts(sample(start, end), sent, arrived, served).unwrap();
                prop_assert_eq!(parts[Part::Send], Some(sent - start));
                prop_assert_eq!(parts[Part::Server], served.map(|_| replied - received));
                prop_assert_eq!(parts[Part::Wake], Some(end - arrived));
                prop_assert_eq!(parts.values().flatten().sum::<u64>(), end - start);
            }
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
        let of = |sent, arrived| parts(sample(100, 200), sent, arrived, None);
        assert!(of(100, 200).is_some());
        for (sent, arrived) in [(99, 150), (150, 201), (150, 149)] {
            assert_eq!(of(sent, arrived), None, "{sent} {arrived}");
        }
        let served = |served| parts(sample(100, 200), 110, 190, Some(served));
        assert!(served(Served::For(80)).is_some());
        assert_eq!(served(Served::For(81)), None);
        assert!(served(Served::Between(110, 190)).is_some());
        for (received, replied) in [(109, 150), (150, 149), (150, 191)] {
            let own = served(Served::Between(received, replied));
            assert_eq!(own, None, "{received} {replied}");
        }
    }

    #[test]
    fn requests_are_kept_by_part_and_by_service_time() {
        let mut anatomy = Anatomy::default();
        let mut other = Anatomy::default();
        let of = |send, away, wake, served| {
            let (arrived, end) = (send + away, send + away + wake);
            parts(sample(0, end), send, arrived, served).unwrap()
        };
        anatomy.record(of(1, 2, 3, None));
        other.record(of(3, 1, 2, None));
        let served = Served::Between(6_000, 10_000);
        other.record(of(1_000, 20_000, 9_000, Some(served)));
        (other.without_stamps, other.clock_set) = (4, 5);
        anatomy.merge(&other);
        anatomy.merge(&other);
        let short: [u64; 8] = anatomy.by_total[6].into();
        assert_eq!(short, [3, 7, 4, 0, 0, 0, 0, 7]);
        let long: [u64; 8] = anatomy.by_total[group_of(30_000)].into();
        assert_eq!(long, [2, 2_000, 0, 0, 10_000, 8_000, 22_000, 18_000]);
        assert_eq!(Similar::from(long), anatomy.by_total[group_of(30_000)]);
        assert_eq!(anatomy.by_total.len(), group_of(30_000) + 1);
        assert_eq!((anatomy.without_stamps, anatomy.clock_set), (8, 10));
        let longest = Part::ALL.map(|part| anatomy.parts[part].max());
        assert_eq!(longest, [1_000, 2, 0, 5_003, 4_001, 11_007, 9_007]);
        let counts = Part::ALL.map(|part| anatomy.parts[part].len());
        assert_eq!(counts, [5, 3, 0, 2, 2, 2, 5]);
    }
}
