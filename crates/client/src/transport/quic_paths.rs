//! The account that QUIC gives of its connections.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use netping_measure::path::{PathFact, PathReading};
use quinn::{Connection, ConnectionStats};

/// After so many connections, those that are gone are forgotten.
const LOOK: u64 = 1024;

/// The connections of a transport and of its clones, which it does not keep open.
#[derive(Debug, Clone, Default)]
pub struct QuicPaths(Arc<Mutex<Opened>>);

#[derive(Debug, Default)]
struct Opened {
    /// The number of connections so far.
    count: u64,
    /// Those that may be open, by their numbers.
    connections: BTreeMap<u64, Weak<Connection>>,
}

impl QuicPaths {
    /// Adds a connection.
    pub(super) fn add(&self, connection: &Arc<Connection>) {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.count += 1;
        if opened.count.is_multiple_of(LOOK) {
            opened.connections.retain(|_, own| own.strong_count() > 0);
        }
        let number = opened.count;
        opened
            .connections
            .insert(number, Arc::downgrade(connection));
    }

    /// Reads the account of each connection that is open, by its number.
    pub(crate) fn read(&self) -> BTreeMap<u64, PathReading> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = opened.connections.iter();
        let open = open.filter_map(|(number, own)| Some((*number, own.upgrade()?)));
        open.map(|(number, own)| (number, reading(&own.stats())))
            .collect()
    }
}

fn reading(stats: &ConnectionStats) -> PathReading {
    let path = &stats.path;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).ok();
    PathReading::of([
        (PathFact::SmoothedRttNs, nanos(path.rtt)),
        (PathFact::LeastRttNs, nanos(path.min_rtt)),
        (PathFact::CongestionWindowBytes, Some(path.cwnd)),
        (PathFact::MtuBytes, Some(path.current_mtu.into())),
        (PathFact::SentPackets, Some(stats.udp_tx.datagrams)),
        (PathFact::ReceivedPackets, Some(stats.udp_rx.datagrams)),
        (PathFact::LostPackets, Some(path.lost_packets)),
        (PathFact::LostBytes, Some(path.lost_bytes)),
        (PathFact::CongestionEvents, Some(path.congestion_events)),
        (PathFact::BlackHoles, Some(path.black_holes_detected)),
    ])
}
