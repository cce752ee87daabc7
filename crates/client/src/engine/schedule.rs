//! The times at which requests are due.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, Exp1};

use crate::{
    engine::share::Share,
    plan::{Arrival, Bursts, PartNumber, Together},
};

/// The times at which one worker's requests are due, in nanoseconds since the schedule's beginning,
/// ascending and without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The mean gap. Sums of it stay exact to a nanosecond for more than a month.
    gap: f64,
    next: f64,
    random: Option<ChaCha8Rng>,
    bursts: Option<Bursts>,
}

impl Schedule {
    /// Returns the schedule of one of `workers` workers, which have the rate of this `client` together; `None`
    /// in a closed loop. Clients that share a load take turns. Targets that are measured together have the whole
    /// rate each.
    pub fn new(
        arrival: Arrival,
        [worker, workers]: [usize; 2],
        client: PartNumber,
        together: Option<Together>,
    ) -> Option<Self> {
        let gap = workers as f64 * 1e9 / arrival.rate()?;
        let (targets, place) = together.map_or((1, 0), |own| (own.targets, own.place));
        // Every client may have another number of workers.
        let turn = worker * client.of + client.number - 1;
        let (part, parts) = (turn * targets + place, workers * client.of * targets);
        let Arrival::Poisson { seed, .. } = arrival else {
            // All take turns, so that together they are as even as one.
            return Some(Self {
                gap,
                next: gap * part as f64 / parts as f64,
                random: None,
                bursts: None,
            });
        };
        // One stream of the generator per part: they are independent, and their sum is Poisson
        // again.
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(part as u64);
        let mut schedule = Self {
            gap,
            next: 0.0,
            random: Some(random),
            bursts: None,
        };
        schedule.advance();
        Some(schedule)
    }

    /// Returns the same schedule with bursts.
    #[must_use]
    pub fn with_bursts(self, bursts: Option<Bursts>) -> Self {
        Self { bursts, ..self }
    }

    /// Returns the next time without taking it.
    pub fn peek(&self) -> u64 {
        let next = self.next;
        self.bursts.map_or(next, |bursts| bursts.due(next)) as u64
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

/// The times at which requests of one worker's connections are due, where each request belongs to a
/// connection beforehand. Every worker goes through the whole schedule, at some nanoseconds for each
/// request, and takes its own: times and connections are the same with any number of workers.
#[derive(Debug, Clone)]
pub struct FixedSchedule {
    /// The schedule of all requests.
    all: Schedule,
    /// Number of its next request, which belongs to this worker.
    number: u64,
    /// The connection of that request, as a number among this worker's.
    connection: usize,
    share: Share,
    /// Connections of all workers of all clients.
    connections: usize,
}

impl FixedSchedule {
    /// Returns the schedule of a worker that has this share of so many connections, at least one; `None`
    /// in a closed loop. Arrivals and connections are those of all clients that share a load.
    pub fn new(
        arrival: Arrival,
        share: Share,
        connections: usize,
        together: Option<Together>,
    ) -> Option<Self> {
        let mut schedule = Self {
            all: Schedule::new(arrival, [0, 1], PartNumber::default(), together)?,
            number: 0,
            connection: 0,
            share,
            connections,
        };
        schedule.find_own();
        Some(schedule)
    }

    /// Returns the same schedule with bursts.
    #[must_use]
    pub fn with_bursts(mut self, bursts: Option<Bursts>) -> Self {
        self.all.bursts = bursts;
        self
    }

    /// Returns the next time, and the connection that its request belongs to, without taking it.
    pub fn peek(&self) -> (u64, usize) {
        (self.all.peek(), self.connection)
    }

    /// Moves to the next request.
    pub fn advance(&mut self) {
        self.skip();
        self.find_own();
    }

    fn skip(&mut self) {
        self.all.advance();
        self.number += 1;
    }

    fn find_own(&mut self) {
        let Share {
            first_connection,
            connections,
            ..
        } = self.share;
        loop {
            let connection = connection_of(self.number, self.connections);
            let own = connection.wrapping_sub(first_connection);
            if own < connections {
                self.connection = own;
                return;
            }
            self.skip();
        }
    }
}

/// Returns the connection, of `connections`, that a request belongs to, as the hash of a key would
/// choose it. The hash is the number of that place in SplitMix64 with the seed 0 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
fn connection_of(request: u64, connections: usize) -> usize {
    let mut hash = request.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ((u128::from(hash) * connections as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(arrival: Arrival, workers: usize, count: usize) -> Vec<u64> {
        times_of(arrival, workers, count, None)
    }

    fn times_of(
        arrival: Arrival,
        workers: usize,
        count: usize,
        together: Option<Together>,
    ) -> Vec<u64> {
        times_of_client(arrival, workers, count, PartNumber::default(), together)
    }

    fn times_of_client(
        arrival: Arrival,
        workers: usize,
        count: usize,
        client: PartNumber,
        together: Option<Together>,
    ) -> Vec<u64> {
        let mut all = Vec::new();
        for worker in 0..workers {
            let mut schedule = Schedule::new(arrival, [worker, workers], client, together).unwrap();
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

    #[test]
    fn clients_take_turns_whatever_their_workers() {
        let (of, each) = (4, 2520);
        let all = |arrival: fn(f64) -> Arrival| {
            let of_client = |number| {
                let client = PartNumber { number, of };
                times_of_client(arrival(250.0), number, each, client, None)
            };
            let clients: Vec<_> = (1..=of).map(of_client).collect();
            let mut all = clients.concat();
            all.sort_unstable();
            (clients, all)
        };
        let (clients, constant) = all(Arrival::Constant);
        for (number, time) in constant.iter().enumerate() {
            // Sums of gaps are rounded down.
            let due = number as u64 * 1_000_000;
            assert!(time.abs_diff(due) <= 1, "{number}: {time}");
            assert!(clients[number % of].contains(time));
        }
        let (_, mut poisson) = all(|rate| Arrival::Poisson { rate, seed: 7 });
        poisson.dedup();
        assert_eq!(poisson.len(), of * each);
    }

    #[test]
    fn targets_that_are_measured_together_get_their_requests_in_turn() {
        let of = |arrival, place| {
            let together = Together {
                targets: 2,
                place,
                order_seed: 0,
            };
            times_of(arrival, 2, 100, Some(together))
        };
        let constant = [0, 1].map(|place| of(Arrival::Constant(500.0), place));
        let mut all = constant.concat();
        all.sort_unstable();
        assert_eq!(all, times(Arrival::Constant(1000.0), 4, 200));
        assert_eq!(constant[0][1] - constant[0][0], 2_000_000);
        let poisson = Arrival::Poisson {
            rate: 500.0,
            seed: 1,
        };
        let [one, other] = [0, 1].map(|place| of(poisson, place));
        assert!(one.iter().all(|time| !other.contains(time)));
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
    fn each_request_belongs_to_one_connection_of_one_worker() {
        for arrival in [
            Arrival::Constant(1000.0),
            Arrival::Poisson {
                rate: 1000.0,
                seed: 3,
            },
        ] {
            let shares = [(0, 3), (3, 2), (5, 2)].map(|(first_connection, connections)| Share {
                worker: 0,
                first_caller: 0,
                callers: 0,
                first_connection,
                connections,
            });
            let mut all = Vec::new();
            for share in shares {
                let mut own = FixedSchedule::new(arrival, share, 7, None).unwrap();
                while own.peek().0 < 20_000_000_000 {
                    let (time, connection) = own.peek();
                    all.push((time, share.first_connection + connection));
                    own.advance();
                }
            }
            all.sort_unstable();
            // They are those of a single worker, at its times.
            let mut whole = Schedule::new(arrival, [0, 1], PartNumber::default(), None).unwrap();
            for (time, _) in &all {
                assert_eq!(*time, whole.peek());
                whole.advance();
            }
            assert!(whole.peek() >= 20_000_000_000);
            // Each connection has a seventh of 20,000, of which the standard deviation is 49.
            for connection in 0..7 {
                let count = all.iter().filter(|(_, own)| *own == connection).count();
                assert!(count.abs_diff(all.len() / 7) < 200, "{connection}: {count}");
            }
        }
    }

    #[test]
    fn the_hash_is_that_of_split_mix() {
        // The generator's first two numbers with the seed 0 begin with these digits.
        let digits = [0, 1].map(|request| connection_of(request, 1 << 32));
        assert_eq!(digits, [0xe220_a839, 0x6e78_9e6a]);
    }

    #[test]
    fn the_same_seed_gives_the_same_times() {
        let poisson = |seed| times(Arrival::Poisson { rate: 10.0, seed }, 2, 100);
        assert_eq!(poisson(1), poisson(1));
        assert_ne!(poisson(1), poisson(2));
    }
}
