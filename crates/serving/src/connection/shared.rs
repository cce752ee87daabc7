//! The errors, limits and log that all connections of a server share.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use prometheus_client::metrics::{counter::Counter, family::Family};

use super::waits::Periods;
use crate::{clock, request_limit::RequestLimit};

/// Least time between two log messages about refused or failed connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Errors by their kind, which is the metric's only label.
type ErrorCounters = Family<[(&'static str, String); 1], Counter>;

/// The errors of a server, and the limits of its connections.
#[derive(Debug)]
pub struct Shared {
    pub(crate) errors: ErrorCounters,
    /// Most that a connection may hold, in bytes.
    pub(crate) most_held: u64,
    /// Time that a request may take to come.
    pub request: RequestLimit,
    pub(super) periods: Periods,
    last_log: Mutex<Option<Instant>>,
}

impl Shared {
    /// Returns the shared state of a server whose connections have these limits.
    pub(crate) fn new(most_held: u64, request: RequestLimit) -> Self {
        Self {
            errors: Family::default(),
            most_held,
            request,
            periods: Periods::default(),
            last_log: Mutex::new(None),
        }
    }

    /// Counts an error of this kind, a word in `snake_case`.
    pub fn count(&self, kind: &str) {
        let labels = [("kind", kind.to_owned())];
        self.errors.get_or_create(&labels).inc();
    }

    /// Counts a request that a deadline has ended, by its kind: the name of the flag in `snake_case`.
    pub fn count_deadline(&self, kind: &str) {
        self.count(kind);
        self.log_deadline(kind);
    }

    pub(crate) fn log_deadline(&self, kind: &str) {
        self.log_rarely(|| {
            let flag = kind.replace('_', "-");
            tracing::warn!("closing connections for which --{flag} has passed");
        });
    }

    /// Calls `log` unless something was logged this way less than a second ago.
    pub(crate) fn log_rarely(&self, log: impl FnOnce()) {
        let Ok(mut last) = self.last_log.lock() else {
            return;
        };
        let now = clock::now();
        if last.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL) {
            *last = Some(now);
            log();
        }
    }

    #[cfg(test)]
    pub(super) fn counted(&self, kind: &str) -> u64 {
        let labels = [("kind", kind.to_owned())];
        self.errors.get_or_create(&labels).get()
    }
}

impl Default for Shared {
    /// Returns the shared state of a server without limits.
    fn default() -> Self {
        Self::new(u64::MAX, RequestLimit::new(Duration::ZERO))
    }
}
