//! The switch that stops a server.

use std::{io, time::Duration};

use netping_system::signals;
use tokio::sync::watch;

/// The time after the drain timeout by which the process has ended, whatever keeps it: connections that do not close, a
/// log that stands still, system calls that fail.
const END: Duration = Duration::from_millis(900);

/// Tells every part of a server to stop accepting and to finish requests in flight. Clones are the
/// same switch, which is off at first.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// Creates a switch that the first SIGTERM or SIGINT turns on. The second ends the process with exit code 1, and
    /// so does a drain that has not ended [`END`] after `drain_timeout`.
    ///
    /// # Errors
    /// Fails if the handlers cannot be installed.
    pub fn on_signals(drain_timeout: Duration) -> io::Result<Self> {
        let shutdown = Self::default();
        let switch = shutdown.clone();
        let limit = drain_timeout.checked_add(END);
        signals::on_stop(1, limit, move |signal| {
            tracing::info!(
                signal,
                "stopping: requests in flight may finish; a second signal ends at once"
            );
            switch.trigger();
        })?;
        Ok(shutdown)
    }

    /// Turns the switch on.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the switch is on.
    pub async fn triggered(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|on| *on).await;
    }
}
