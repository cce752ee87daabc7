//! Random numbers for tests by simulation.

use std::f64::consts::TAU;

use rand_chacha::{ChaCha8Rng, rand_core::Rng};

/// Returns a number between 0 and 1, neither of them included.
pub fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (f64::from(random.next_u32()) + 0.5) / 2f64.powi(32)
}

/// Returns an exponentially distributed number of mean 1.
pub fn exponential(random: &mut ChaCha8Rng) -> f64 {
    -uniform(random).ln()
}

/// Returns a normal number of mean 0 and variance 1, by Box and Muller's method.
pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    let angle = TAU * uniform(random);
    (2.0 * exponential(random)).sqrt() * angle.cos()
}
