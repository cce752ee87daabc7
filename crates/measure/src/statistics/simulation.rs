//! Random numbers for tests by simulation.

use rand_chacha::{ChaCha8Rng, rand_core::Rng};

/// Returns a nearly normal number of mean 0 and variance 1: the sum of twelve uniform ones, less 6.
pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    let uniform = (0..12).map(|_| f64::from(random.next_u32()) / 2f64.powi(32));
    uniform.sum::<f64>() - 6.0
}
