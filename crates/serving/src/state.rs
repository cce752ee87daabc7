//! The counters of a running server, which metrics, reaper and chassis share.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use crate::{clock, connection::Connections};

/// Least time between two log messages about refused or failed connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabels {
    kind: String,
}

#[derive(Debug)]
pub struct State {
    pub connections: Arc<Connections>,
    pub errors: Family<ErrorLabels, Counter>,
    pub max_connections: usize,
    /// Cores that requests can be served on.
    pub cores: usize,
    last_log: Mutex<Option<Instant>>,
}

impl State {
    pub fn new(max_connections: usize, cores: usize) -> Self {
        Self {
            connections: Arc::default(),
            errors: Family::default(),
            max_connections,
            cores,
            last_log: Mutex::new(None),
        }
    }

    pub fn count_error(&self, kind: &str) {
        let kind = kind.to_owned();
        self.errors.get_or_create(&ErrorLabels { kind }).inc();
    }

    /// Counts and logs a connection that was refused because `max_connections` are open.
    pub fn note_admission<T>(&self, admitted: Option<T>) -> Option<T> {
        if admitted.is_none() {
            self.count_error("max_connections");
            let open = self.max_connections;
            self.log_rarely(|| tracing::warn!("{open} connections are open: refusing new ones"));
        }
        admitted
    }

    /// Calls `log` unless something was logged this way less than a second ago.
    pub fn log_rarely(&self, log: impl FnOnce()) {
        let Ok(mut last) = self.last_log.lock() else {
            return;
        };
        let now = clock::now();
        if last.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL) {
            *last = Some(now);
            log();
        }
    }
}
