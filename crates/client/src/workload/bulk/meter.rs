//! Progress of a run, and the time of its first answer.

use std::cell::Cell;

use crate::clock::{Clock, Monotonic};

/// Progress of the streams of one run, or of one opening, which all run on one thread.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Monotonic,
    moved: Cell<u64>,
    /// The reason to report if nothing moves from now on.
    awaited: Cell<Option<&'static str>>,
    first_answer: Cell<Option<u64>>,
}

impl Meter {
    /// Returns a meter of no progress.
    pub fn new(clock: Monotonic) -> Self {
        Self {
            clock,
            moved: Cell::new(0),
            awaited: Cell::new(None),
            first_answer: Cell::new(None),
        }
    }

    /// Returns the current time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Counts bytes that came or went.
    pub fn count(&self, bytes: usize) {
        self.moved.set(self.moved.get() + bytes as u64);
    }

    /// Counts an opened connection or stream, which is progress too.
    pub fn opened(&self) {
        self.count(1);
    }

    /// Sets the reason to report if nothing moves from now on.
    pub fn wait(&self, lack: &'static str) {
        self.awaited.set(Some(lack));
    }

    /// Returns that reason.
    pub fn lack(&self) -> Option<&'static str> {
        self.awaited.get()
    }

    /// Returns the progress so far.
    pub fn moved(&self) -> u64 {
        self.moved.get()
    }

    /// Notes that bytes of an answer came.
    pub fn answered(&self) {
        if self.first_answer.get().is_none() {
            self.first_answer.set(Some(self.now()));
        }
    }

    /// Returns the time of the first byte of an answer, in nanoseconds.
    pub fn first_answer(&self) -> Option<u64> {
        self.first_answer.get()
    }
}
