//! Requests of an open loop that were due while its backlog was full.

use netping_measure::{
    counts::Counts,
    histogram::{histogram, record, record_n},
    window::Window,
};

/// Requests that are due within this time, in nanoseconds, count as due at its end.
const RESOLUTION: u64 = 1_000_000;

/// Numbers of requests by the times at which they were due, which come in their order. Their ages are known when the
/// window is over: it may end earlier than was planned.
#[derive(Debug, Default)]
pub(super) struct Dropped(Vec<(u64, u64)>);

impl Dropped {
    /// Adds a request; none that is added later is due before it.
    pub fn add(&mut self, intended: u64) {
        let slot = intended / RESOLUTION;
        match self.0.last_mut() {
            Some((last, count)) if *last == slot => *count += 1,
            _ => self.0.push((slot, 1)),
        }
    }

    /// Returns the ages at the end of `window` of those that were due before it, and of the ones in `left` that were
    /// due in it.
    pub fn ages(&self, window: Window, left: impl Iterator<Item = u64>) -> Counts {
        let mut ages = histogram();
        let due = self.0.iter();
        let due = due.map(|(slot, count)| (slot * RESOLUTION, count));
        for (intended, count) in due.take_while(|(intended, _)| *intended < window.end) {
            let age = window.end.saturating_sub(intended + RESOLUTION);
            record_n(&mut ages, age, *count);
        }
        for intended in left.filter(|intended| window.contains(*intended)) {
            record(&mut ages, window.end - intended);
        }
        Counts::from(&ages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_at_the_end_that_the_window_had() {
        let mut dropped = Dropped::default();
        for milliseconds in [1000, 1000, 1500, 1999, 2000, 2001] {
            dropped.add(milliseconds * 1_000_000);
        }
        let window = Window {
            start: 1_000_000_000,
            end: 2_000_000_000,
        };
        let ages = dropped.ages(window, [].into_iter());
        assert_eq!(ages.len(), 4);
        let [least, most] = [0.0, 1.0].map(|share| ages.quantile(share).unwrap() / 1_000_000);
        assert_eq!([least, most], [0, 999]);
    }
}
