//! The servers' limits and counters, as far as they have answered, and their processes on this host.

use std::{collections::BTreeMap, time::Duration};

use netping_client::{
    engine::Measured,
    plan::{Destination, Plan},
    probe::{metrics::ServerSource, reader::read_within},
};
use netping_protocol::scheme::Protocol;
use netping_system::{
    listener::{Transport, processes},
    process::is_running,
};

/// The time that a server has to tell its limit on connections, before a step begins.
const LIMIT_PATIENCE: Duration = Duration::from_millis(100);

/// The servers asked so far.
#[derive(Debug, Default)]
pub struct Servers {
    /// The limit on connections of each.
    limits: Vec<(ServerSource, Option<u64>)>,
    /// Guessed sources of counters that did not answer.
    silent: Vec<ServerSource>,
    /// The processes of each server on this host, by its protocol and port. All servers of a run are one side: a relay
    /// and the server behind it work for the same requests.
    processes: BTreeMap<(Transport, u16), Vec<u32>>,
}

impl Servers {
    /// Returns a server's limit on connections, if it tells one. It is asked once.
    pub fn limit(&mut self, source: &ServerSource) -> Option<u64> {
        let mut known = self.limits.iter();
        if let Some((_, limit)) = known.find(|(of, _)| of == source) {
            return *limit;
        }
        let reading = read_within(source, LIMIT_PATIENCE);
        let limit = reading.and_then(|reading| reading.max_connections());
        self.limits.push((source.clone(), limit));
        limit
    }

    /// Adds the server's processes to a target, and takes its source of counters away if that did not answer
    /// before.
    pub fn complete(&mut self, target: &mut Destination) {
        if self.silent.contains(&target.server) {
            target.server = ServerSource::Nowhere;
        }
        self.find(target);
        target.processes = self.processes_of(target);
    }

    /// Finds the processes of a server on this host, unless they are known and live.
    pub fn find(&mut self, target: &Destination) {
        let key = key(target);
        let known = self.processes.get(&key);
        let is_known = known.is_some_and(|pids| !pids.is_empty() && pids.iter().all(is_running));
        if !is_known && target.in_process.is_none() && target.is_own_host() {
            let (transport, port) = key;
            self.processes.insert(key, processes(port, transport));
        }
    }

    /// Returns the processes of all servers of the run, if this one is on this host: none if its own are
    /// not known.
    fn processes_of(&self, target: &Destination) -> Option<Vec<u32>> {
        let named = match &target.server {
            ServerSource::Processes(pids) => pids.as_slice(),
            _ => &[],
        };
        let found = self.processes.get(&key(target));
        // Another host may have a server on the same port.
        let found = found.filter(|_| target.in_process.is_none() && target.is_own_host());
        match found {
            None if named.is_empty() => None,
            Some(own) if own.is_empty() && named.is_empty() => Some(Vec::new()),
            _ => {
                let all = self.processes.values().flatten().chain(named);
                Some(all.copied().collect())
            }
        }
    }

    /// Notes whether the counters of a plan's server answered.
    pub fn note(&mut self, plan: &Plan, outcome: &Measured) {
        // A restarted server has counters, though not of one process.
        if outcome.server_note.is_some()
            && !outcome.server_restarted
            && let ServerSource::Url { asked: false, .. } = plan.target.server
        {
            self.silent.push(plan.target.server.clone());
        }
    }
}

/// Returns what a server on this host is found by.
fn key(target: &Destination) -> (Transport, u16) {
    let transport = match target.url.scheme.protocol() {
        Protocol::Quic => Transport::Udp,
        _ => Transport::Tcp,
    };
    (transport, target.url.port)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use netping_client::plan::Trust;
    use netping_protocol::secure::Connector;

    use super::*;

    fn target(url: &str) -> Destination {
        let clear = (Connector::Plain, Trust::default());
        Destination::new(url.parse().unwrap(), ServerSource::Nowhere, clear)
    }

    #[test]
    fn a_server_of_another_host_or_protocol_is_not_that_of_this_one_on_the_same_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut servers = Servers::default();
        let mut of = |url: String| {
            let mut target = target(&url);
            servers.complete(&mut target);
            target.processes
        };
        let own = Some(vec![std::process::id()]);
        assert_eq!(of(format!("tcp://127.0.0.1:{port}")), own);
        // An address for documentation, which no host has.
        assert_eq!(of(format!("tcp://192.0.2.1:{port}")), None);
        // All servers of a run are one side.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = other.local_addr().unwrap().port();
        let both = of(format!("tcp://127.0.0.1:{other}")).unwrap_or_default();
        assert!(both.contains(&std::process::id()), "{both:?}");
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", port)) {
            drop(socket);
            assert_eq!(of(format!("quic://127.0.0.1:{port}")), Some(Vec::new()));
        }
    }
}
