//! The account of a step's connections over its window, by the kernel's TCP or by QUIC.

use std::collections::{BTreeMap, BTreeSet};

use netping_measure::{
    fairness::ConnectionSums,
    interval::IntervalSummary,
    path::{PathAccount, PathFact, PathReading, PathSecond},
    window::INTERVAL,
};
use netping_system::connections::{self, TcpConnection, TcpInfo};

use crate::{
    engine::workers::Party,
    plan::{Destination, Plan},
};

/// With more connections the kernel is not asked: it takes 2 to 10 us of CPU time for each of them.
const MOST_CONNECTIONS: usize = 4096;

/// With more, it is not asked about each by its name, which would then take longer than a look through its table, nor
/// every second: the CPU time would show in the client's.
const MOST_BY_NAME: usize = 256;

/// The account of the connections of plans that are measured together, from their opening on.
#[derive(Debug, Default)]
pub struct PathReadings {
    /// TCP connections by their server's port.
    tcp: BTreeMap<u16, Vec<TcpConnection>>,
    /// The QUIC connections of each plan.
    quic: Vec<BTreeMap<u64, PathReading>>,
}

impl PathReadings {
    /// Reads the account of all connections of these plans.
    pub fn read<'a>(plans: impl Iterator<Item = (&'a Plan, &'a Party)> + Clone) -> Self {
        let connections = plans.clone().map(|(plan, _)| plan.load.connections);
        let ports: BTreeSet<u16> = match connections.sum() {
            ..=MOST_CONNECTIONS => plans
                .clone()
                .filter_map(|(plan, _)| tcp_port(plan))
                .collect(),
            _ => BTreeSet::new(),
        };
        Self {
            tcp: ports.into_iter().filter_map(read_port).collect(),
            quic: plans.map(|(_, party)| party.quic_paths()).collect(),
        }
    }

    /// Reads the account of all connections of these plans again, once requests are sent. Where all that are planned were
    /// open, and still are, the kernel does not have to look for them.
    pub fn again<'a>(&self, plans: impl Iterator<Item = (&'a Plan, &'a Party)> + Clone) -> Self {
        let planned = plans.clone().filter(|(plan, _)| tcp_port(plan).is_some());
        let planned: usize = planned.map(|(plan, _)| plan.load.connections).sum();
        let open: usize = self.tcp.values().map(Vec::len).sum();
        let by_name = || -> Option<BTreeMap<u16, Vec<TcpConnection>>> {
            let of_port = |(port, before): (&u16, &Vec<TcpConnection>)| {
                let now = connections::again(before).ok()?;
                (now.len() == before.len()).then_some((*port, now))
            };
            self.tcp.iter().map(of_port).collect()
        };
        match (open == planned && open <= MOST_BY_NAME).then(by_name) {
            Some(Some(tcp)) => Self {
                tcp,
                quic: plans.map(|(_, party)| party.quic_paths()).collect(),
            },
            _ => Self::read(plans),
        }
    }

    /// Returns the account of the connections of one plan up to `end`; `number` is its place among all plans. By the
    /// ports of its connections, they are told from those of another plan with the same server.
    pub fn account(
        &self,
        end: &Self,
        plans: &[&Plan],
        number: usize,
        own: &[ConnectionSums],
    ) -> Option<PathAccount> {
        let Some(port) = tcp_port(plans[number]) else {
            return PathAccount::between(self.quic.get(number)?, end.quic.get(number)?);
        };
        let same = plans.iter().filter(|other| tcp_port(other) == Some(port));
        let is_alone = same.count() == 1;
        let ports: BTreeSet<u16> = own.iter().filter_map(|own| own.local_port).collect();
        let of = |all: &Self| -> Option<BTreeMap<u64, PathReading>> {
            let all = all.tcp.get(&port)?.iter();
            let own = all.filter(|own| is_alone || ports.contains(&own.local.port()));
            Some(own.map(|own| (own.cookie, reading(&own.info))).collect())
        };
        PathAccount::between(&of(self)?, &of(end)?)
    }
}

/// The account of each second of the window, of a target that is measured alone. The kernel is asked about each
/// connection by its name: to have it look for them in its table would hold up requests.
#[derive(Debug, Default)]
pub struct PathSeconds {
    /// The accounts at the end of the last second.
    last: BTreeMap<u64, PathReading>,
    /// TCP connections that are followed: those of the window's start.
    tcp: Vec<TcpConnection>,
    /// The seconds whose account is known, by their numbers from 0 on.
    seconds: BTreeMap<u64, PathSecond>,
    /// The number of seconds that are over.
    over: u64,
}

impl PathSeconds {
    /// Begins at the window's start, where these were the accounts of all plans' connections.
    pub fn start(readings: &PathReadings) -> Self {
        let [quic] = &readings.quic[..] else {
            return Self::default();
        };
        let tcp: Vec<TcpConnection> = readings.tcp.values().flatten().cloned().collect();
        if tcp.len().max(quic.len()) > MOST_BY_NAME {
            return Self::default();
        }
        let mut last = by_cookie(&tcp);
        last.extend(quic.clone());
        Self {
            last,
            tcp,
            ..Self::default()
        }
    }

    /// Returns the end of the current second, in nanoseconds from the window's start on.
    pub fn next(&self) -> u64 {
        (self.over + 1).saturating_mul(INTERVAL)
    }

    /// Reads the account if another second is over, where so many nanoseconds of the window are.
    pub fn read(&mut self, elapsed: u64, party: &Party) {
        let over = elapsed / INTERVAL;
        if over == self.over {
            return;
        }
        self.over = over;
        if self.last.is_empty() {
            return;
        }
        let mut now = by_cookie(&connections::again(&self.tcp).unwrap_or_default());
        now.extend(party.quic_paths());
        let own = PathSecond::between(&self.last, &now);
        self.seconds.extend(own.map(|own| (over - 1, own)));
        self.last = now;
    }

    /// Completes the window's seconds.
    pub fn complete(&self, seconds: &mut [IntervalSummary]) {
        for second in seconds.iter_mut().filter(|second| second.length_ns > 0) {
            second.path = self.seconds.get(&(second.start_ns / INTERVAL)).copied();
        }
    }
}

fn by_cookie(connections: &[TcpConnection]) -> BTreeMap<u64, PathReading> {
    let all = connections.iter();
    all.map(|own| (own.cookie, reading(&own.info))).collect()
}

fn read_port(port: u16) -> Option<(u16, Vec<TcpConnection>)> {
    Some((port, connections::to_port(port).ok()?))
}

/// Returns the account of the TCP connections to a target's server; `None` where the kernel does not tell.
pub fn tcp_readings(target: &Destination) -> Option<BTreeMap<u64, PathReading>> {
    if target.unix_socket.is_some() {
        return None;
    }
    Some(by_cookie(&connections::to_port(target.url.port).ok()?))
}

/// Returns the port to which a plan opens TCP connections; `None` where it opens others.
fn tcp_port(plan: &Plan) -> Option<u16> {
    let is_tcp = plan.target.unix_socket.is_none() && plan.load.kind.is_over_tcp();
    is_tcp.then_some(plan.target.url.port)
}

fn reading(info: &TcpInfo) -> PathReading {
    let nanos = |time: Option<u64>| time.map(|microseconds| microseconds.saturating_mul(1000));
    let window = info.congestion_window.zip(info.segment_bytes);
    // Before the first, there is none.
    let rtt = info.rtt_us.filter(|rtt| *rtt > 0);
    let least = info.least_rtt_us.filter(|rtt| *rtt < u32::MAX.into());
    PathReading::of([
        (PathFact::SmoothedRttNs, nanos(rtt)),
        (PathFact::LeastRttNs, nanos(least)),
        (PathFact::RetransmissionTimeoutNs, nanos(info.timeout_us)),
        (
            PathFact::CongestionWindowBytes,
            window.map(|(segments, bytes)| segments * bytes),
        ),
        (PathFact::MtuBytes, info.mtu_bytes),
        (PathFact::SentPackets, info.segments_out),
        (PathFact::ReceivedPackets, info.segments_in),
        (PathFact::DeliveredPackets, info.delivered),
        (PathFact::EcnMarkedPackets, info.ecn_marked),
        (PathFact::RetransmittedPackets, info.retransmitted),
        (PathFact::RetransmittedBytes, info.retransmitted_bytes),
        (PathFact::Timeouts, info.timeouts),
        (PathFact::BusyNs, nanos(info.busy_us)),
        (
            PathFact::ReceiveWindowLimitedNs,
            nanos(info.receive_window_us),
        ),
        (PathFact::SendBufferLimitedNs, nanos(info.send_buffer_us)),
    ])
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use netping_protocol::secure::Connector;

    use super::*;
    use crate::{plan::Trust, probe::metrics::ServerSource, transport::Kind};

    fn plan(url: &str, kind: Kind) -> Plan {
        let clear = (Connector::Plain, Trust::default());
        let url = url.parse().unwrap();
        Plan::new(Destination::new(url, ServerSource::Nowhere, clear), kind)
    }

    fn connection(local_port: u16, segments_out: u64) -> TcpConnection {
        TcpConnection {
            cookie: local_port.into(),
            local: (Ipv4Addr::LOCALHOST, local_port).into(),
            remote: (Ipv4Addr::LOCALHOST, 8004).into(),
            interface: 0,
            info: TcpInfo {
                segments_out: Some(segments_out),
                congestion_window: Some(10),
                segment_bytes: Some(1448),
                rtt_us: Some(0),
                least_rtt_us: Some(u32::MAX.into()),
                ..TcpInfo::default()
            },
        }
    }

    fn readings(port: u16, tcp: &[TcpConnection]) -> PathReadings {
        PathReadings {
            tcp: [(port, tcp.to_vec())].into(),
            quic: Vec::new(),
        }
    }

    #[test]
    fn plans_of_one_server_are_told_apart_by_the_ports_of_their_connections() {
        let start = readings(8004, &[connection(1, 10), connection(2, 20)]);
        let end = readings(8004, &[connection(1, 11), connection(2, 25)]);
        let (line, frame) = (
            plan("tcp://h:8004", Kind::Line),
            plan("tcp://h:8004", Kind::Frame),
        );
        let own = |local_port| ConnectionSums {
            local_port: Some(local_port),
            ..ConnectionSums::default()
        };
        let sent = |plans: &[&Plan], number, own: &[ConnectionSums]| {
            let account = start.account(&end, plans, number, own)?;
            account.total(PathFact::SentPackets)
        };
        assert_eq!(sent(&[&line], 0, &[]), Some(6));
        assert_eq!(sent(&[&line, &frame], 0, &[own(1)]), Some(1));
        assert_eq!(sent(&[&line, &frame], 1, &[own(2)]), Some(5));
        assert_eq!(sent(&[&line, &frame], 1, &[]), None);
        let other = plan("tcp://h:8005", Kind::Line);
        assert_eq!(sent(&[&line, &other], 0, &[]), Some(6));
        assert_eq!(sent(&[&line, &other], 1, &[]), None);
    }

    #[test]
    fn values_that_the_kernel_does_not_have_yet_are_unknown() {
        let own = reading(&connection(1, 7).info);
        let account = PathAccount::between(&BTreeMap::new(), &[(1, own)].into()).unwrap();
        let known: Vec<PathFact> = account.facts.keys().copied().collect();
        assert_eq!(
            known,
            [PathFact::CongestionWindowBytes, PathFact::SentPackets]
        );
        assert_eq!(account.total(PathFact::CongestionWindowBytes), Some(14_480));
    }

    #[test]
    fn quic_and_unix_sockets_have_no_tcp_connections() {
        assert_eq!(tcp_port(&plan("quic://h:1", Kind::Quic)), None);
        assert_eq!(tcp_port(&plan("https://h:1", Kind::Http3)), None);
        assert_eq!(tcp_port(&plan("https://h:1", Kind::Http2)), Some(1));
        let mut unix = plan("tcp://h:1", Kind::Line);
        unix.target.unix_socket = Some("/s".into());
        assert_eq!(tcp_port(&unix), None);
    }
}
