//! The times at which requests are due.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Exp1};

use crate::plan::Arrival;

/// The times at which one worker's requests are due, in nanoseconds since the schedule's beginning,
/// ascending and without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The mean gap. Sums of it stay exact to a nanosecond for more than a month.
    gap: f64,
    next: f64,
    random: Option<ChaCha8Rng>,
}

impl Schedule {
    /// Returns the schedule of one of `workers` workers, which have the whole rate together; `None`
    /// in a closed loop.
    pub fn new(arrival: Arrival, worker: usize, workers: usize) -> Option<Self> {
        let gap = workers as f64 * 1e9 / arrival.rate()?;
        let Arrival::Poisson { seed, .. } = arrival else {
            // Workers take turns, so that together they are as even as one.
            return Some(Self {
                gap,
                next: gap * worker as f64 / workers as f64,
                random: None,
            });
        };
        // One stream of the generator per worker: they are independent, and their sum is Poisson
        // again.
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(worker as u64);
        let mut schedule = Self {
            gap,
            next: 0.0,
            random: Some(random),
        };
        schedule.advance();
        Some(schedule)
    }

    /// Returns the next time without taking it.
    pub fn peek(&self) -> u64 {
        self.next as u64
    }

    /// Moves to the next time.
    pub fn advance(&mut self) {
        let gap: f64 = self
            .random
            .as_mut()
            .map_or(1.0, |random| Exp1.sample(random));
        self.next += self.gap * gap;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(arrival: Arrival, workers: usize, count: usize) -> Vec<u64> {
        let mut all = Vec::new();
        for worker in 0..workers {
            let mut schedule = Schedule::new(arrival, worker, workers).unwrap();
            for _ in 0..count / workers {
                all.push(schedule.peek());
                schedule.advance();
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn constant_arrivals_are_even_over_all_workers() {
        let times = times(Arrival::Constant(1000.0), 4, 4000);
        assert!(
            times
                .iter()
                .enumerate()
                .all(|(number, &time)| time.abs_diff(number as u64 * 1_000_000) <= 1)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// The Kolmogorov-Smirnov distance of n samples to their distribution exceeds 1.95 /
        /// sqrt(n) by chance once in a thousand times. The seeds are fixed, so the test is
        /// deterministic.
        #[test]
        fn poisson_gaps_are_exponential(seed in 0_u64..24, workers in 1_usize..4) {
            let rate = 5000.0;
            let times = times(Arrival::Poisson { rate, seed }, workers, 6000);
            // The workers' last times differ: their sum is Poisson up to the earliest of them only.
            let times = &times[..5000];
            let mut gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9 * rate).collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps.iter().enumerate().map(|(rank, gap)| {
                let expected = 1.0 - (-gap).exp();
                (expected - rank as f64 / n).abs().max((expected - (rank + 1) as f64 / n).abs())
            }).fold(0.0, f64::max);
            prop_assert!(distance < 1.95 / n.sqrt(), "distance {distance}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times() {
        let poisson = |seed| times(Arrival::Poisson { rate: 10.0, seed }, 2, 100);
        assert_eq!(poisson(1), poisson(1));
        assert_ne!(poisson(1), poisson(2));
    }
}
