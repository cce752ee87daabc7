//! When requests are due.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Exp1};

/// How requests come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// A caller sends when its last reply is there.
    Closed,
    /// Requests are due at equal distances, so many per second.
    Constant(f64),
    /// Requests are due at random, independently of each other, so many per second on average: the gaps between them
    /// are exponentially distributed.
    Poisson {
        /// Requests per second.
        rate: f64,
        /// Where the randomness begins; the same seed gives the same times.
        seed: u64,
    },
}

impl Arrival {
    /// The planned rate, in requests per second; `None` in a closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant(rate) | Self::Poisson { rate, .. } => Some(rate),
        }
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Constant(_) => "constant",
            Self::Poisson { .. } => "poisson",
        }
    }

    /// The times for one of `workers` workers, which together have the whole rate; `None` in a closed loop.
    pub fn schedule(self, worker: usize, workers: usize) -> Option<Schedule> {
        let rate = self.rate()?;
        let gap = workers as f64 * 1e9 / rate;
        Some(match self {
            Self::Poisson { seed, .. } => {
                // One stream of the generator for each worker: they are independent, and their sum is Poisson again.
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(worker as u64);
                let mut schedule = Schedule {
                    gap,
                    next: 0.0,
                    random: Some(random),
                };
                schedule.advance();
                schedule
            }
            // Workers take turns, so that together they are as even as one.
            Self::Closed | Self::Constant(_) => Schedule {
                gap,
                next: gap * worker as f64 / workers as f64,
                random: None,
            },
        })
    }
}

/// The times at which requests are due, in nanoseconds since the schedule's beginning, ascending and without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The mean gap. Sums of it stay exact to a nanosecond for more than a month.
    gap: f64,
    next: f64,
    random: Option<ChaCha8Rng>,
}

impl Schedule {
    /// The next time, without taking it.
    pub fn peek(&self) -> u64 {
        self.next as u64
    }

    /// Goes on to the time after.
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
            let mut schedule = arrival.schedule(worker, workers).unwrap();
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

        /// The gaps' distribution against the exponential one: the Kolmogorov-Smirnov distance of n samples exceeds
        /// 1.95 / sqrt(n) by chance once in a thousand times. The seeds are fixed, so this is no lottery.
        #[test]
        fn poisson_gaps_are_exponential(seed in 0_u64..24, workers in 1_usize..4) {
            let rate = 5000.0;
            let times = times(Arrival::Poisson { rate, seed }, workers, 6000);
            // The workers' last times differ: their sum is Poisson only up to the first of them.
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
    fn a_seed_is_a_promise() {
        let poisson = |seed| times(Arrival::Poisson { rate: 10.0, seed }, 2, 100);
        assert_eq!(poisson(1), poisson(1));
        assert_ne!(poisson(1), poisson(2));
    }
}
