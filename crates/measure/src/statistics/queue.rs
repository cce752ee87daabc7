//! A queue that serves in the order of arrival, replayed from arrivals and service times.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Returns the response time of each request, given its arrival and its service time, in the order
/// of arrival: each is served by the first of `servers` that is free (G/G/c, by the recursion of
/// Kiefer and Wolfowitz, "On the theory of queues with many servers", 1955).
pub fn response_times(requests: &[(u64, u64)], servers: usize) -> Vec<u64> {
    let mut free: BinaryHeap<Reverse<u64>> = vec![Reverse(0); servers.max(1)].into();
    requests
        .iter()
        .map(|&(arrival, service)| {
            let earliest = free.pop().map_or(0, |Reverse(time)| time);
            let end = arrival.max(earliest) + service;
            free.push(Reverse(end));
            end - arrival
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::exponential;

    #[test]
    fn a_request_waits_for_the_first_free_server() {
        let requests = [(0, 10), (1, 10), (2, 10), (30, 5)];
        assert_eq!(response_times(&requests, 1), [10, 19, 28, 5]);
        assert_eq!(response_times(&requests, 2), [10, 10, 18, 5]);
    }

    /// The mean response time, in services, of four million requests at a load of `load`; arrivals
    /// are Poisson.
    fn simulated(servers: usize, load: f64, is_exponential: bool) -> f64 {
        const SERVICE: f64 = 1e6;
        let mut random = ChaCha8Rng::seed_from_u64(servers as u64);
        let mut exponential = || exponential(&mut random);
        let mut now = 0.0;
        let requests: Vec<(u64, u64)> = (0..4_000_000)
            .map(|_| {
                now += exponential() * SERVICE / (load * servers as f64);
                let service = if is_exponential { exponential() } else { 1.0 };
                (now as u64, (service * SERVICE) as u64)
            })
            .collect();
        let times = response_times(&requests, servers);
        times.iter().sum::<u64>() as f64 / times.len() as f64 / SERVICE
    }

    /// The mean wait in an M/M/c queue, in services (Erlang's C formula).
    fn erlang(servers: usize, load: f64) -> f64 {
        let offered = load * servers as f64;
        // Erlang's B by its recursion.
        let blocked = (1..=servers).fold(1.0, |b, n| offered * b / (n as f64 + offered * b));
        let waits = blocked / (1.0 - load * (1.0 - blocked));
        waits / (servers as f64 * (1.0 - load))
    }

    /// Means agree with queueing theory within 2 %: M/D/1 by Pollaczek and Khinchine, M/M/8 by
    /// Erlang, M/D/8 by the approximation of Cosmetatos ("Some approximate equilibrium results for
    /// the multi-server queue (M/G/r)", 1976).
    #[test]
    fn replayed_queues_have_the_times_of_queueing_theory() {
        for load in [0.5, 0.8, 0.9] {
            let single = 1.0 + load / (2.0 * (1.0 - load));
            let many = 8.0_f64;
            let cosmetatos = 0.5
                * (1.0
                    + (1.0 - load) * (many - 1.0) * ((4.0 + 5.0 * many).sqrt() - 2.0)
                        / (16.0 * load * many));
            let cases = [
                ("M/D/1", simulated(1, load, false), single),
                ("M/M/8", simulated(8, load, true), 1.0 + erlang(8, load)),
                (
                    "M/D/8",
                    simulated(8, load, false),
                    1.0 + cosmetatos * erlang(8, load),
                ),
            ];
            for (name, simulated, theory) in cases {
                assert!(
                    (simulated / theory - 1.0).abs() < 0.02,
                    "{name} at {load}: {simulated:.4} instead of {theory:.4}"
                );
            }
        }
    }
}
