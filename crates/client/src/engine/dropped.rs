//! Requests of an open loop that were due while its backlog was full.

use netping_measure::histogram::{Histogram, record_n};

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

    /// Adds the ages at the end of a window of those that were due before it.
    pub fn add_ages(&self, end: u64, ages: &mut Histogram) {
        let due = self
            .0
            .iter()
            .map(|(slot, count)| (slot * RESOLUTION, count));
        for (intended, count) in due.take_while(|(intended, _)| *intended < end) {
            record_n(ages, end.saturating_sub(intended + RESOLUTION), *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::{counts::Counts, histogram::histogram};

    use super::*;

    #[test]
    fn ages_are_those_at_the_end_that_the_window_had() {
        let mut dropped = Dropped::default();
        for milliseconds in [1000, 1000, 1500, 1999, 2000, 2001] {
            dropped.add(milliseconds * 1_000_000);
        }
        let mut ages = histogram();
        dropped.add_ages(2_000_000_000, &mut ages);
        let ages = Counts::from(&ages);
        assert_eq!(ages.len(), 4);
        let [least, most] = [0.0, 1.0].map(|share| ages.quantile(share).unwrap() / 1_000_000);
        assert_eq!([least, most], [0, 999]);
    }
}
