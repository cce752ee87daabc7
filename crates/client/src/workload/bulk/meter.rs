//! What moves in a run, and when the first byte of an answer came.

use std::cell::Cell;

use crate::clock::{Clock, Monotonic};

/// Shared by the streams of one run, or of one opening, which all run on one thread.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Monotonic,
    moved: Cell<u64>,
    /// What is waited for, where its lack has a cause of its own.
    awaited: Cell<Option<&'static str>>,
    first_answer: Cell<Option<u64>>,
}

impl Meter {
    /// Nothing has moved.
    pub fn new(clock: Monotonic) -> Self {
        Self {
            clock,
            moved: Cell::new(0),
            awaited: Cell::new(None),
            first_answer: Cell::new(None),
        }
    }

    /// Now, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// So many bytes came or went.
    pub fn count(&self, bytes: usize) {
        self.moved.set(self.moved.get() + bytes as u64);
    }

    /// A connection or a stream was opened, which is a movement too.
    pub fn opened(&self) {
        self.count(1);
    }

    /// From now on, `lack` is why nothing moves, should that be so.
    pub fn wait(&self, lack: &'static str) {
        self.awaited.set(Some(lack));
    }

    /// What was said last of why nothing moves.
    pub fn lack(&self) -> Option<&'static str> {
        self.awaited.get()
    }

    /// Bytes that came or went, and what was opened.
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
