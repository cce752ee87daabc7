//! A test for a change of level within a series.

use crate::statistics::moments::Moments;

/// Minimum number of observations.
const FEWEST: usize = 9;

/// The value beyond which the statistic counts as a change. The range of a Brownian bridge exceeds
/// 2.001 with a probability of 1 % (Kuiper, "Tests concerning random points on a circle", 1960);
/// this is more, because the deviation is estimated from correlated values.
const CRITICAL: f64 = 2.4;

/// A stretch of a series whose level differs from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The index of its first observation.
    pub from: usize,
    /// The index after its last one.
    pub to: usize,
    /// The mean within it.
    pub inside: f64,
    /// The mean of the rest.
    pub outside: f64,
}

/// Returns the stretch of `series` whose level differs most from the rest, if chance explains that
/// in about 1 % of steady series at most.
///
/// The statistic is the range of the cumulative sums of the deviations from the mean, as a multiple
/// of `s * sqrt(n)` (Inclan and Tiao, "Use of cumulative sums of squares for retrospective
/// detection of changes of variance", 1994, for levels instead of variances). `s` is the long-run
/// standard deviation of what the two levels leave over: the largest of batches of 1, 2, 4, ...
/// observations, so that correlation does not look like change.
pub fn change(series: &[f64]) -> Option<Change> {
    let n = series.len();
    if n < FEWEST {
        return None;
    }
    let (range, change) = stretch(series)?;
    let scale = long_run_deviation(&change.rest(series)) * (n as f64).sqrt();
    (range > CRITICAL * scale).then_some(change)
}

impl Change {
    /// The least share of a series that a level takes: what is shorter is a disturbance.
    const SHORTEST: f64 = 0.05;

    /// Returns true if one of its two levels is a short one in a series of `n` observations.
    pub fn is_short(&self, n: usize) -> bool {
        let share = (self.to - self.from) as f64 / n as f64;
        share.min(1.0 - share) < Self::SHORTEST
    }

    /// Returns what the two levels leave over of the series.
    pub(super) fn rest(&self, series: &[f64]) -> Vec<f64> {
        let mut rest = series.to_vec();
        for (at, value) in rest.iter_mut().enumerate() {
            let is_inside = (self.from..self.to).contains(&at);
            *value -= if is_inside { self.inside } else { self.outside };
        }
        rest
    }
}

/// Returns the range of the cumulative sums of the deviations from the mean, and the stretch between
/// their lowest and their highest point.
pub(super) fn stretch(series: &[f64]) -> Option<(f64, Change)> {
    let mean = Moments::of(series)?.mean;
    let (mut sum, mut lowest, mut highest) = (0.0, (0.0, 0), (0.0, 0));
    for (at, value) in series.iter().enumerate() {
        sum += value - mean;
        if sum < lowest.0 {
            lowest = (sum, at + 1);
        }
        if sum > highest.0 {
            highest = (sum, at + 1);
        }
    }
    let (from, to) = (lowest.1.min(highest.1), lowest.1.max(highest.1));
    let outside = [&series[..from], &series[to..]].concat();
    let change = Change {
        from,
        to,
        inside: Moments::of(&series[from..to])?.mean,
        outside: Moments::of(&outside)?.mean,
    };
    Some((highest.0 - lowest.0, change))
}

/// Returns the standard deviation that sums of the series grow with: the largest over batches of 1,
/// 2, 4, ... observations, of which there are eight at least.
fn long_run_deviation(series: &[f64]) -> f64 {
    let lengths = (0..).map(|power| 1_usize << power);
    lengths
        .take_while(|length| *length == 1 || series.len() / length >= 8)
        .filter_map(|length| {
            let batches: Vec<f64> = series
                .chunks_exact(length)
                .map(|batch| batch.iter().sum())
                .collect();
            Some(Moments::of(&batches)?.variance? / length as f64)
        })
        .fold(0.0, f64::max)
        .sqrt()
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::normal;

    /// A series with a correlation of `lag1` between neighbours around 100, deviating by 10.
    fn noise(random: &mut ChaCha8Rng, n: usize, lag1: f64) -> Vec<f64> {
        let mut last = 0.0;
        (0..n)
            .map(|_| {
                last = lag1 * last + (1.0 - lag1 * lag1).sqrt() * normal(random);
                100.0 + 10.0 * last
            })
            .collect()
    }

    #[test]
    fn steady_series_seldom_show_a_change() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for (lag1, most) in [(0.0, 10), (0.3, 20), (0.6, 40)] {
            let alarms = (0..1000)
                .filter(|_| change(&noise(&mut random, 100, lag1)).is_some())
                .count();
            assert!(alarms <= most, "{lag1}: {alarms} of 1000");
        }
        assert_eq!(change(&[7.0; 50]), None);
        assert_eq!(change(&[1.0; 8]), None);
    }

    #[test]
    fn a_dip_in_the_middle_is_found_and_so_is_a_step() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for (from, to) in [(40, 55), (70, 100), (0, 30)] {
            let mut series = noise(&mut random, 100, 0.2);
            series[from..to].iter_mut().for_each(|value| *value -= 40.0);
            let found = change(&series).unwrap();
            // The rest may be the stretch: a level has two sides.
            let dip = if found.inside < found.outside {
                (found.from, found.to)
            } else if found.from == 0 {
                (found.to, 100)
            } else {
                (0, found.from)
            };
            assert!(
                dip.0.abs_diff(from) <= 2 && dip.1.abs_diff(to) <= 2,
                "{found:?}"
            );
        }
    }
}
