//! A table of open streams by their identifiers.

use std::collections::BTreeMap;

/// Places at first, and at most.
const FEWEST: usize = 64;
const MOST: usize = 1 << 16;

/// The slots of open streams, by identifier.
///
/// A peer takes identifiers one after the other, so that almost every stream has the place that its
/// identifier determines for itself.
#[derive(Debug)]
pub(crate) struct Places {
    /// Identifier and slot; 0: empty.
    table: Vec<(u32, u32)>,
    /// The streams whose place is taken by another, which has been open for long.
    displaced: BTreeMap<u32, u32>,
    /// Number of streams.
    count: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            table: vec![(0, 0); FEWEST],
            displaced: BTreeMap::new(),
            count: 0,
        }
    }
}

impl Places {
    /// Returns the number of streams.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the slot of a stream.
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        let (other, slot) = self.table[self.place(id)];
        // No stream has the 0 of an empty place.
        if other == id && id != 0 {
            return Some(slot);
        }
        self.displaced.get(&id).copied()
    }

    /// Adds a stream that is not there.
    pub(crate) fn insert(&mut self, id: u32, slot: u32) {
        self.count += 1;
        if self.count > self.table.len() / 2 && self.table.len() < MOST {
            self.grow();
        }
        self.put(id, slot);
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, id: u32) {
        let place = self.place(id);
        if self.table[place].0 == id {
            self.table[place] = (0, 0);
            self.count -= 1;
        } else if self.displaced.remove(&id).is_some() {
            self.count -= 1;
        }
    }

    fn put(&mut self, id: u32, slot: u32) {
        let place = self.place(id);
        if self.table[place].0 == 0 {
            self.table[place] = (id, slot);
        } else {
            self.displaced.insert(id, slot);
        }
    }

    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.table.len() - 1)
    }

    /// Doubles the places.
    fn grow(&mut self) {
        let more = vec![(0, 0); self.table.len() * 2];
        let places = std::mem::replace(&mut self.table, more);
        let displaced = std::mem::take(&mut self.displaced);
        let taken = places.into_iter().filter(|(id, _)| *id != 0);
        for (id, slot) in taken.chain(displaced) {
            self.put(id, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_however_long_the_others_last() {
        let mut places = Places::default();
        assert_eq!([0, 1].map(|id| places.find(id)), [None, None]);
        places.insert(1, 7);
        for id in (3..3000).step_by(2) {
            places.insert(id, id);
            assert_eq!([places.find(1), places.find(id)], [Some(7), Some(id)]);
            places.remove(id);
            assert_eq!(places.find(id), None);
        }
        // Room is made for as many as are open.
        for id in (3001..5001).step_by(2) {
            places.insert(id, id);
        }
        assert!(places.table.len() >= 2000);
        assert!(
            (3001..5001)
                .step_by(2)
                .all(|id| places.find(id) == Some(id))
        );
        assert_eq!((places.find(1), places.count()), (Some(7), 1001));
    }
}
