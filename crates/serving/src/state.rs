//! The counters of a running server, which metrics, reaper and chassis share.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use netping_system::process::own_resident_bytes;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use crate::{
    clock,
    connection::{Connections, MAX_MEMORY},
};

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
    /// Memory of the process above which no connection is admitted, in bytes.
    max_memory: Option<u64>,
    /// Cores that requests can be served on.
    pub cores: usize,
    last_log: Mutex<Option<Instant>>,
}

impl State {
    pub fn new(max_connections: usize, max_memory: Option<u64>, cores: usize) -> Self {
        Self {
            connections: Arc::default(),
            errors: Family::default(),
            max_connections,
            max_memory,
            cores,
            last_log: Mutex::new(None),
        }
    }

    pub fn count_error(&self, kind: &str) {
        let kind = kind.to_owned();
        self.errors.get_or_create(&ErrorLabels { kind }).inc();
    }

    /// Admits a connection with `admit`, unless too many are open or the process holds too much memory;
    /// then it counts and logs that.
    pub fn admit<T>(&self, admit: impl FnOnce(&Arc<Connections>, usize) -> Option<T>) -> Option<T> {
        if self.connections.is_full() {
            self.count_error(MAX_MEMORY);
            self.log_rarely(|| tracing::warn!("--max-memory is reached: refusing new connections"));
            return None;
        }
        let open = self.max_connections;
        let admitted = admit(&self.connections, open);
        if admitted.is_none() {
            self.count_error("max_connections");
            self.log_rarely(|| tracing::warn!("{open} connections are open: refusing new ones"));
        }
        admitted
    }

    /// Notes whether the process holds more memory than it may.
    pub fn look_at_memory(&self) {
        let is_full = || Some(own_resident_bytes()? > self.max_memory?);
        self.connections.set_full(is_full().unwrap_or(false));
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
