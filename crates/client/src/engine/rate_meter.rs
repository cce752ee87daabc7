//! The rate of a running step, for observers and for the automatic warm-up.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Time between two looks at the rate, in nanoseconds: 100 ms.
const LOOK: u64 = 100_000_000;

/// A worker's count of replies and the sum of their response times, warm-up included. Only the
/// worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ReplyCounter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl ReplyCounter {
    /// Counts a reply that took this long since it was due.
    pub fn add(&self, nanoseconds: u64) {
        let [count, spent] = self.read();
        let spent = spent.wrapping_add(nanoseconds);
        self.nanoseconds.store(spent, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    /// Returns the number of replies.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the number of replies and the sum of their response times.
    fn read(&self) -> [u64; 2] {
        [&self.count, &self.nanoseconds].map(|sum| sum.load(Ordering::Relaxed))
    }
}

/// The replies between two looks.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Time between the looks, in seconds.
    pub elapsed: f64,
    /// Replies per second.
    pub rate: f64,
    /// Mean response time, in nanoseconds.
    pub mean: f64,
}

/// Looks at the counters of all workers.
#[derive(Debug)]
pub struct RateMeter {
    last: u64,
    sums: [u64; 2],
}

impl RateMeter {
    /// Begins at `now` on the run's clock.
    pub fn new(now: u64) -> Self {
        Self {
            last: now,
            sums: [0; 2],
        }
    }

    /// Returns the replies since the last look; `None` if it is too early to look again.
    pub fn look<'a>(
        &mut self,
        now: u64,
        counters: impl IntoIterator<Item = &'a Arc<ReplyCounter>>,
    ) -> Option<Look> {
        if now - self.last < LOOK {
            return None;
        }
        let elapsed = (now - self.last) as f64 / 1e9;
        let add = |[a, b]: [u64; 2], [c, d]: [u64; 2]| [a + c, b.wrapping_add(d)];
        let sums = counters.into_iter().map(|counter| counter.read());
        let sums = sums.fold([0; 2], add);
        let replies = sums[0] - self.sums[0];
        let spent = sums[1].wrapping_sub(self.sums[1]);
        (self.last, self.sums) = (now, sums);
        Some(Look {
            elapsed,
            rate: replies as f64 / elapsed,
            mean: spent as f64 / replies.max(1) as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_at_the_replies_since_the_last_one() {
        let counters = [Arc::default(), Arc::default()];
        let [one, other]: &[Arc<ReplyCounter>; 2] = &counters;
        let mut meter = RateMeter::new(0);
        one.add(10);
        other.add(30);
        assert!(meter.look(LOOK - 1, &counters).is_none());
        let look = meter.look(2 * LOOK, &counters).unwrap();
        assert_eq!((look.elapsed, look.rate, look.mean), (0.2, 10.0, 20.0));
        one.add(50);
        let look = meter.look(3 * LOOK, &counters).unwrap();
        assert_eq!((look.elapsed, look.rate, look.mean), (0.1, 10.0, 50.0));
    }
}
