//! Stray warnings: those that the trouble of a run does not explain.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The probability of one in a window: a virtual machine pauses, or changes its speed, without steal in `/proc/stat`.
const CHANCE: f64 = 0.03;

/// With that probability, the part of rows that have no more of these warnings than is allowed.
const ALLOWED: f64 = 0.99;

/// Returns in how many of these runs chance alone may raise a warning.
///
/// ```
/// # use netping_benches::strays::by_chance;
/// assert_eq!([1, 3, 12, 13], [5, 20, 200, 220].map(by_chance));
/// ```
///
/// # Panics
/// If `CHANCE` is not a probability.
#[must_use]
pub fn by_chance(runs: usize) -> usize {
    let count = Binomial::new(CHANCE, runs as u64).expect("a probability");
    count.inverse_cdf(ALLOWED) as usize
}
