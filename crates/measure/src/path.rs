//! The account that the kernel's TCP, or the QUIC of the client, gives of a step's connections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Declares what is told of a connection, each with its name in files, whether it is counted or has a value at any
/// time, and its documentation.
macro_rules! facts {
    ($($(#[$doc:meta])* $fact:ident: $kind:ident;)*) => {
        /// One fact of a connection. The unit is the last word of its name in files.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum PathFact {
            $($(#[$doc])* $fact,)*
        }

        impl PathFact {
            fn kind(self) -> Kind {
                match self { $(Self::$fact => Kind::$kind,)* }
            }
        }
    };
}

/// The kind of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has a value at any time.
    Level,
    /// It is counted from the connection's opening on.
    Count,
}

facts! {
    /// The smoothed round-trip time at the window's end.
    SmoothedRttNs: Level;
    /// The least round-trip time: over TCP that of the last five minutes, over QUIC that since the opening.
    LeastRttNs: Level;
    /// TCP: the time without an acknowledgement after which data is sent again, at the window's end.
    RetransmissionTimeoutNs: Level;
    /// The congestion window at the window's end.
    CongestionWindowBytes: Level;
    /// The greatest packet of the path: over TCP of IP, over QUIC of UDP without its head.
    MtuBytes: Level;
    /// TCP segments or QUIC's datagrams that the client sent.
    SentPackets: Count;
    /// TCP segments or QUIC's datagrams that it received.
    ReceivedPackets: Count;
    /// TCP: segments with data that have arrived at the server.
    DeliveredPackets: Count;
    /// TCP: those of them that the path had marked as congested (ECN).
    EcnMarkedPackets: Count;
    /// TCP: segments that were sent again.
    RetransmittedPackets: Count;
    /// TCP: their bytes.
    RetransmittedBytes: Count;
    /// TCP: timeouts that passed. Of a lone small segment, most are sent again by a probe, which is as late but not
    /// counted here.
    Timeouts: Count;
    /// QUIC: packets of the client that were lost.
    LostPackets: Count;
    /// QUIC: their bytes.
    LostBytes: Count;
    /// QUIC: congestion events.
    CongestionEvents: Count;
    /// QUIC: times that large packets were found not to arrive any more.
    BlackHoles: Count;
    /// TCP: the time for which data of the client was out.
    BusyNs: Count;
    /// TCP: the part of it in which the server's receive window held back more.
    ReceiveWindowLimitedNs: Count;
    /// TCP: the part of it in which the client's send buffer was full.
    SendBufferLimitedNs: Count;
}

/// The account of one connection at one time: counts from its opening on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathReading(BTreeMap<PathFact, u64>);

impl PathReading {
    /// Takes the facts that are known.
    pub fn of(facts: impl IntoIterator<Item = (PathFact, Option<u64>)>) -> Self {
        let known = facts
            .into_iter()
            .filter_map(|(fact, value)| Some((fact, value?)));
        Self(known.collect())
    }

    /// Returns the facts of the time since `start`; without it, since the connection's opening.
    fn since(&self, start: Option<&Self>) -> BTreeMap<PathFact, u64> {
        let change = |(&fact, &now): (&PathFact, &u64)| {
            let Some(start) = start.filter(|_| fact.kind() == Kind::Count) else {
                return Some((fact, now));
            };
            let before = *start.0.get(&fact)?;
            // The kernel's counts of 32 bits begin again at 0.
            let change = now
                .checked_sub(before)
                .or_else(|| (now + (1 << 32)).checked_sub(before));
            Some((fact, change?))
        };
        self.0.iter().filter_map(change).collect()
    }
}

/// The values of some connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// Their sum.
    pub sum: u64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

impl Spread {
    /// Returns the spread of one value.
    fn one(value: u64) -> Self {
        Self {
            sum: value,
            min: value,
            max: value,
        }
    }

    /// Adds the values of others.
    fn add(self, other: Self) -> Self {
        Self {
            sum: self.sum.saturating_add(other.sum),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// The account of a step's connections in one second: of those that were open at the window's start, and still are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathSecond {
    /// Packets that the client sent again over TCP, or lost over QUIC.
    pub lost_packets: u64,
    /// The mean of the smoothed round-trip times at its end; absent before the first, and for several clients.
    pub smoothed_rtt_ns: Option<u64>,
}

impl PathSecond {
    /// Returns the account of the connections of `end` that were there at `start`, too; `None` without any, and where
    /// losses are not known.
    pub fn between(
        start: &BTreeMap<u64, PathReading>,
        end: &BTreeMap<u64, PathReading>,
    ) -> Option<Self> {
        let both = end.iter().filter(|(own, _)| start.contains_key(own));
        let both = both.map(|(own, reading)| (*own, reading.clone()));
        let account = PathAccount::between(start, &both.collect())?;
        let rtt = account.mean(PathFact::SmoothedRttNs);
        Some(Self {
            lost_packets: account.lost()?.sum,
            smoothed_rtt_ns: rtt.map(|rtt| rtt.round() as u64),
        })
    }

    /// Adds that of another client.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            lost_packets: self.lost_packets.saturating_add(other.lost_packets),
            smoothed_rtt_ns: None,
        }
    }
}

/// The account of a step's connections over its window. Connections that were closed in the window are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathAccount {
    /// The connections that it is of: those that were open at the window's end.
    pub connections: u64,
    /// Those of them that were opened in the window.
    pub opened: u64,
    /// Connections that were open at the window's start and not at its end: nothing is known of them.
    pub closed: u64,
    /// Each fact that is known of all of these connections: of counts, the change in the window.
    pub facts: BTreeMap<PathFact, Spread>,
}

impl PathAccount {
    /// Returns the account of connections that are told by numbers, of which these were read at a window's start
    /// and end; `None` without any.
    pub fn between(
        start: &BTreeMap<u64, PathReading>,
        end: &BTreeMap<u64, PathReading>,
    ) -> Option<Self> {
        let closed = start.keys().filter(|number| !end.contains_key(number));
        let nothing = Self {
            closed: closed.count() as u64,
            ..Self::default()
        };
        let one = |(number, reading): (&u64, &PathReading)| {
            let before = start.get(number);
            let facts = reading.since(before).into_iter();
            Self {
                connections: 1,
                opened: u64::from(before.is_none()),
                closed: 0,
                facts: facts
                    .map(|(fact, value)| (fact, Spread::one(value)))
                    .collect(),
            }
        };
        let parts = end.iter().map(one).chain([nothing]);
        Self::sum(parts).filter(|own| own.connections + own.closed > 0)
    }

    /// Adds up accounts of different connections; `None` without any. Facts that one of them lacks are left out.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut sum, other| {
            if sum.connections == 0 {
                sum.facts = other.facts;
            } else if other.connections > 0 {
                let both = sum
                    .facts
                    .iter()
                    .filter_map(|(fact, own)| Some((*fact, own.add(*other.facts.get(fact)?))));
                sum.facts = both.collect();
            }
            sum.connections += other.connections;
            sum.opened += other.opened;
            sum.closed += other.closed;
            sum
        })
    }

    /// Returns the sum of a fact over all connections.
    pub fn total(&self, fact: PathFact) -> Option<u64> {
        self.facts.get(&fact).map(|own| own.sum)
    }

    /// Returns the mean of a fact over all connections.
    pub fn mean(&self, fact: PathFact) -> Option<f64> {
        let own = self.facts.get(&fact)?;
        (self.connections > 0).then(|| own.sum as f64 / self.connections as f64)
    }

    /// Returns the number of packets that were lost, as far as the client knows: those that it sent again over TCP,
    /// and those that were lost over QUIC.
    pub fn lost(&self) -> Option<Spread> {
        let lost = self.facts.get(&PathFact::RetransmittedPackets);
        lost.or_else(|| self.facts.get(&PathFact::LostPackets))
            .copied()
    }

    /// Returns the share of the time with data on its way in which this held more back; `None` where it is not
    /// known.
    pub fn share_of_busy(&self, limit: PathFact) -> Option<f64> {
        let busy = self.total(PathFact::BusyNs).filter(|busy| *busy > 0)?;
        Some(self.total(limit)? as f64 / busy as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(rtt: u64, sent: u64) -> PathReading {
        PathReading::of([
            (PathFact::SmoothedRttNs, Some(rtt)),
            (PathFact::SentPackets, Some(sent)),
            (PathFact::DeliveredPackets, None),
        ])
    }

    fn spread(sum: u64, min: u64, max: u64) -> Spread {
        Spread { sum, min, max }
    }

    fn fact(account: &PathAccount, fact: PathFact) -> Option<Spread> {
        account.facts.get(&fact).copied()
    }

    #[test]
    fn counts_are_changes_and_levels_are_those_of_the_end() {
        let start = [
            (1, reading(900, 100)),
            (2, reading(800, 40)),
            (3, reading(1, 7)),
        ];
        // The third was closed, the fourth was opened.
        let end = [
            (1, reading(500, 110)),
            (2, reading(300, 70)),
            (4, reading(400, 5)),
        ];
        let own = PathAccount::between(&start.into(), &end.into()).unwrap();
        assert_eq!((own.connections, own.opened, own.closed), (3, 1, 1));
        assert_eq!(
            fact(&own, PathFact::SmoothedRttNs),
            Some(spread(1200, 300, 500))
        );
        assert_eq!(fact(&own, PathFact::SentPackets), Some(spread(45, 5, 30)));
        // What the kernel does not tell is unknown, and not 0.
        assert_eq!(fact(&own, PathFact::DeliveredPackets), None);
        assert_eq!(own.mean(PathFact::SmoothedRttNs), Some(400.0));
        assert_eq!(own.total(PathFact::SentPackets), Some(45));
    }

    #[test]
    fn without_connections_there_is_no_account() {
        let none = BTreeMap::new();
        assert_eq!(PathAccount::between(&none, &none), None);
        let closed = PathAccount::between(&[(1, reading(1, 1))].into(), &none).unwrap();
        assert_eq!((closed.connections, closed.closed), (0, 1));
        assert!(closed.facts.is_empty());
    }

    #[test]
    fn a_count_of_32_bits_begins_again() {
        let near = u64::from(u32::MAX) - 1;
        let own = PathAccount::between(
            &[(1, reading(1, near))].into(),
            &[(1, reading(1, 3))].into(),
        );
        assert_eq!(own.unwrap().total(PathFact::SentPackets), Some(5));
    }

    #[test]
    fn a_fact_that_one_connection_lacks_is_not_known_of_all() {
        let lacking = PathReading::of([(PathFact::SmoothedRttNs, Some(5))]);
        let end = [(1, reading(1, 9)), (2, lacking.clone())];
        let own = PathAccount::between(&BTreeMap::new(), &end.into()).unwrap();
        assert_eq!(fact(&own, PathFact::SentPackets), None);
        assert_eq!(fact(&own, PathFact::SmoothedRttNs), Some(spread(6, 1, 5)));
        // Nor is a change whose beginning is not known.
        let own = PathAccount::between(&[(1, lacking)].into(), &[(1, reading(1, 9))].into());
        assert_eq!(own.unwrap().total(PathFact::SentPackets), None);
    }

    #[test]
    fn sums_are_exact_in_any_order() {
        let of = |numbers: &[u64]| {
            let end = numbers
                .iter()
                .map(|&number| (number, reading(number, number)));
            PathAccount::between(&BTreeMap::new(), &end.collect()).unwrap()
        };
        let closed = PathAccount {
            closed: 2,
            ..PathAccount::default()
        };
        let parts = [of(&[1, 5]), closed, of(&[3])];
        let expected = PathAccount {
            closed: 2,
            ..of(&[1, 3, 5])
        };
        assert_eq!(PathAccount::sum(parts.clone()), Some(expected.clone()));
        assert_eq!(PathAccount::sum(parts.into_iter().rev()), Some(expected));
        assert_eq!(PathAccount::sum([]), None);
    }

    #[test]
    fn a_second_is_that_of_connections_that_were_there_at_both_its_ends() {
        let at = |all: &[(u64, u64, u64)]| -> BTreeMap<u64, PathReading> {
            let reading = |rtt, lost| {
                PathReading::of([
                    (PathFact::SmoothedRttNs, Some(rtt)),
                    (PathFact::RetransmittedPackets, Some(lost)),
                ])
            };
            let all = all.iter();
            all.map(|&(own, rtt, lost)| (own, reading(rtt, lost)))
                .collect()
        };
        // The third was closed, and the fourth was opened with losses of its own.
        let start = at(&[(1, 500, 10), (2, 500, 20), (3, 500, 30)]);
        let end = at(&[(1, 300, 14), (2, 401, 21), (4, 900, 50)]);
        let second = PathSecond::between(&start, &end).unwrap();
        let expected = PathSecond {
            lost_packets: 5,
            smoothed_rtt_ns: Some(351),
        };
        assert_eq!(second, expected);
        let both = second.and(second);
        assert_eq!((both.lost_packets, both.smoothed_rtt_ns), (10, None));
        assert_eq!(PathSecond::between(&start, &at(&[(4, 900, 50)])), None);
        let unknown = BTreeMap::from([(1, reading(1, 1))]);
        assert_eq!(PathSecond::between(&unknown, &unknown), None);
    }

    #[test]
    fn losses_are_told_of_either_protocol() {
        let own = |fact| {
            let end = BTreeMap::from([(1, PathReading::of([(fact, Some(3))]))]);
            PathAccount::between(&BTreeMap::new(), &end).unwrap().lost()
        };
        assert_eq!(own(PathFact::RetransmittedPackets), Some(spread(3, 3, 3)));
        assert_eq!(own(PathFact::LostPackets), Some(spread(3, 3, 3)));
        assert_eq!(own(PathFact::SentPackets), None);
    }

    #[test]
    fn limits_are_shares_of_the_time_with_data_out() {
        let end = |busy| {
            let facts = [
                (PathFact::BusyNs, Some(busy)),
                (PathFact::ReceiveWindowLimitedNs, Some(30)),
            ];
            let end = BTreeMap::from([(1, PathReading::of(facts))]);
            PathAccount::between(&BTreeMap::new(), &end).unwrap()
        };
        let limit = PathFact::ReceiveWindowLimitedNs;
        assert_eq!(end(40).share_of_busy(limit), Some(0.75));
        assert_eq!(end(0).share_of_busy(limit), None);
        assert_eq!(end(40).share_of_busy(PathFact::SendBufferLimitedNs), None);
    }
}
