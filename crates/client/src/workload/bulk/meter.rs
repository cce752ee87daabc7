//! What moves in a run, and when the first byte of an answer came.

use std::cell::Cell;

use crate::clock::{Clock, Monotonic};

/// Shared by the streams of one run, which all run on one thread.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Monotonic,
    moved: Cell<u64>,
    first_answer: Cell<Option<u64>>,
}

impl Meter {
    /// Nothing has moved.
    pub fn new(clock: Monotonic) -> Self {
        Self { clock, moved: Cell::new(0), first_answer: Cell::new(None) }
    }

    /// Now, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// So many bytes came or went.
    pub fn count(&self, bytes: usize) {
        self.moved.set(self.moved.get() + bytes as u64);
    }

    /// Bytes that came or went.
    pub fn moved(&self) -> u64 {
        self.moved.get()
    }

    /// Bytes of an answer came.
    pub fn answered(&self) {
        if self.first_answer.get().is_none() {
            self.first_answer.set(Some(self.now()));
        }
    }

    /// When the first byte of an answer came, in nanoseconds.
    pub fn first_answer(&self) -> Option<u64> {
        self.first_answer.get()
    }
}
