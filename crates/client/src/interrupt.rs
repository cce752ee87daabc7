//! Ctrl-C.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use netping_system::signals;

/// The user's request to end the run. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Returns a flag that the first SIGINT or SIGTERM sets; the second ends the process at once,
    /// with exit code 130.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let interrupt = Self::default();
        let flag = interrupt.clone();
        signals::on_stop(130, move |_| flag.set())?;
        Ok(interrupt)
    }

    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
