//! Plans of targets that are measured at the same time.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::Plan;

/// Several targets that are measured at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// Their number.
    pub targets: usize,
    /// The place of this one among those to which an open loop sends requests in turn, from 0 on.
    pub place: usize,
    /// Seed of the order in which the callers of a closed loop call them by turns.
    pub order_seed: u64,
}

/// Returns plans that differ in their targets alone as those of one step, on as many workers as suit all.
pub fn together(plans: &[Plan], order_seed: u64) -> Vec<Plan> {
    let workers = plans.iter().map(|plan| plan.execution.workers).min();
    let places = shuffled(plans.len(), &mut ChaCha8Rng::seed_from_u64(order_seed));
    let of = |(plan, place): (&Plan, usize)| {
        let mut plan = plan.clone();
        plan.execution.workers = workers.unwrap_or(1);
        plan.execution.together = Some(Together {
            targets: plans.len(),
            place,
            order_seed,
        });
        plan
    };
    plans.iter().zip(places).map(of).collect()
}

/// Puts these in a random order (Fisher and Yates).
pub fn shuffle<T>(all: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..all.len()).rev() {
        all.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// Returns the numbers below `count` in a random order.
pub fn shuffled(count: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    shuffle(&mut order, random);
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_comes_once_and_in_every_order() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut orders = BTreeSet::new();
        for _ in 0..100 {
            let order = shuffled(3, &mut random);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            orders.insert(order);
        }
        assert_eq!(orders.len(), 6);
    }
}
