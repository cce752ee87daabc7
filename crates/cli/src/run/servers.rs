//! The servers' limits and counters, as far as they have answered.

use std::time::Duration;

use netping_client::{
    engine::Measured,
    plan::Plan,
    probe::{metrics::ServerSource, reader::read_within},
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

    /// Returns the plan, without a source of counters that did not answer before.
    pub fn without_silent(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let source = &mut plan.target.server;
        if self.silent.contains(source) {
            *source = ServerSource::Nowhere;
        }
        plan
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
