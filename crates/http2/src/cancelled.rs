//! Streams that this end has reset.

use std::collections::BTreeSet;

/// Streams that this end has reset, and on which the peer may not know it yet: late frames on them are allowed.
#[derive(Debug)]
pub(crate) struct Cancelled {
    streams: BTreeSet<u32>,
    /// Those up to this one may be among them, and are forgotten.
    forgotten: u32,
    most: usize,
}

impl Cancelled {
    /// Returns none, of which this many will be told from other streams.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            streams: BTreeSet::new(),
            forgotten: 0,
            most,
        }
    }

    /// Adds a stream that the peer has not ended.
    pub(crate) fn insert(&mut self, id: u32) {
        self.streams.insert(id);
        if self.streams.len() > self.most
            && let Some(first) = self.streams.pop_first()
        {
            // It may be older than those that were forgotten before.
            self.forgotten = self.forgotten.max(first);
        }
    }

    /// Removes a stream that the peer has ended.
    pub(crate) fn remove(&mut self, id: u32) {
        self.streams.remove(&id);
    }

    /// Returns true for a stream that may be one of these.
    pub(crate) fn contains(&self, id: u32) -> bool {
        id <= self.forgotten || self.streams.contains(&id)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }
}
