//! Drift: a level that wanders from trial to trial.

use super::moments::Moments;

/// Returns the variance that drift gives the difference of the means of two sets of trials, of which the second
/// was measured right after the first. Each set is in the order of its trials.
///
/// A trial is taken to be a level and noise, where the level takes a random step from trial to trial. Half the mean
/// square of successive differences then expects the noise's variance and half that of a step; the variance of all
/// n trials the noise's and (n + 1) / 6 times that of a step (von Neumann, "Distribution of the ratio of the mean
/// square successive difference to the variance", 1941). Their difference gives the steps, of both sets together.
/// Without drift, the result is 0 in about half of all cases; with fewer than three trials, always.
pub(super) fn between(first: &[f64], second: &[f64]) -> f64 {
    let sets = [first, second].into_iter().filter(|set| set.len() > 2);
    let (mut excess, mut weight) = (0.0, 0.0);
    for set in sets {
        let squares = set.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        let successive = squares.sum::<f64>() / (set.len() - 1) as f64 / 2.0;
        let variance = Moments::of(set).and_then(|own| own.variance);
        excess += variance.unwrap_or(0.0) - successive;
        weight += (set.len() - 2) as f64 / 6.0;
    }
    if weight == 0.0 {
        return 0.0;
    }
    (excess / weight).max(0.0) * (1.0 + within(first.len()) + within(second.len()))
}

/// Returns the variance of the mean of the levels of n trials about the level at one of their ends, in units of the
/// variance of a step.
fn within(n: usize) -> f64 {
    let n = n as f64;
    (n - 1.0) * (2.0 * n - 1.0) / (6.0 * n)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::normal;

    /// On average, the variance of the difference of two means is the noise's and what drift adds.
    #[test]
    fn the_drift_between_two_sets_is_known_from_that_within() {
        const NOISE: f64 = 0.5;
        let mut random = ChaCha8Rng::seed_from_u64(11);
        for (first, second) in [(5, 5), (20, 8), (10, 1)] {
            let (mut found, mut squares) = (0.0, 0.0);
            for _ in 0..4000 {
                let mut level = 0.0;
                let mut trial = || {
                    level += normal(&mut random);
                    level + NOISE * normal(&mut random)
                };
                let a: Vec<f64> = (0..first).map(|_| trial()).collect();
                let b: Vec<f64> = (0..second).map(|_| trial()).collect();
                let [one, other] = [&a, &b].map(|set| Moments::of(set).unwrap().mean);
                squares += (other - one).powi(2) / 4000.0;
                found += between(&a, &b) / 4000.0;
            }
            let noise = NOISE.powi(2) * (1.0 / f64::from(first) + 1.0 / f64::from(second));
            let expected = squares - noise;
            // That no estimate is below 0 makes them a little large.
            let ratio = found / expected;
            assert!(
                (0.9..1.35).contains(&ratio),
                "{first} {second}: {found} {expected}"
            );
        }
        assert!(between(&[1.0, 5.0], &[9.0]).abs() < f64::EPSILON);
    }
}
