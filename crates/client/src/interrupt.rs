//! The end of a run at the user's wish.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The user's request to end the run. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
