//! Means that single disturbed values do not move.

use crate::statistics::estimate::{Moments, t_quantile_among};

/// One value in so many is left out at either end, and at least one.
const CUT: usize = 10;

/// The fewest values that have an interval: with fewer, none would be left out.
pub const FEWEST: usize = 6;

/// The mean of some values without the lowest and the highest tenth of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trimmed {
    /// That mean.
    pub mean: f64,
    /// Its standard error, from the variance of the values after those left out have been moved to
    /// the nearest that is not; absent with fewer than [`FEWEST`] values (Tukey and McLaughlin, "Less
    /// vulnerable confidence and significance procedures for location based on a single sample",
    /// 1963).
    error: Option<f64>,
    /// The degrees of freedom of that error: one fewer than Tukey and McLaughlin's, whose intervals
    /// are too narrow as one of many, far out in the tails.
    freedom: f64,
}

impl Trimmed {
    /// Returns the trimmed mean of `values`. Infinities stand for values that could not be told, but
    /// are beyond all others; `None` where there are more of them than are left out, or no value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let cut = if n < FEWEST { 0 } else { (n / CUT).max(1) };
        let kept = &sorted[cut..n - cut];
        let (low, high) = (*kept.first()?, *kept.last()?);
        if !(low.is_finite() && high.is_finite()) {
            return None;
        }
        let mean = Moments::of(kept)?.mean;
        let moved = [&vec![low; cut], kept, &vec![high; cut]].concat();
        let error = Moments::of(&moved)?
            .error()
            .filter(|_| n >= FEWEST)
            .map(|error| error * n as f64 / kept.len() as f64);
        Some(Self {
            mean,
            error,
            freedom: kept.len() as f64 - 2.0,
        })
    }

    /// Returns the interval of the mean as one of `intervals`, all of which hold their means with a
    /// probability of 95 %; `None` with fewer than [`FEWEST`] values.
    pub fn interval(self, intervals: usize) -> Option<[f64; 2]> {
        let half = self.error? * t_quantile_among(self.freedom, intervals)?;
        Some([self.mean - half, self.mean + half])
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::{normal, uniform};

    #[test]
    fn the_ends_are_left_out() {
        let trimmed = Trimmed::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 900.0]).unwrap();
        assert!((trimmed.mean - 3.5).abs() < 1e-9);
        // Moved: 2, 2, 3, 4, 5, 5, of variance 1.9; t(0.975, 2) = 4.3027.
        let half = 4.3027 * (1.9_f64 / 6.0).sqrt() * 6.0 / 4.0;
        let [low, high] = trimmed.interval(1).unwrap();
        assert!((low - (3.5 - half)).abs() < 1e-3 && (high - (3.5 + half)).abs() < 1e-3);
        // Too few to leave any out.
        let few = Trimmed::of(&[1.0, 2.0, 9.0]).unwrap();
        assert!((few.mean - 4.0).abs() < 1e-9);
        assert_eq!(few.interval(1), None);
        assert_eq!(Trimmed::of(&[]), None);
    }

    #[test]
    fn what_could_not_be_told_is_among_what_is_left_out_or_there_is_no_mean() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, f64::INFINITY];
        let known = [1.0, 2.0, 3.0, 4.0, 5.0, 900.0];
        assert_eq!(Trimmed::of(&values), Trimmed::of(&known));
        assert_eq!(
            Trimmed::of(&[1.0, 2.0, 3.0, 4.0, f64::INFINITY, f64::NAN]),
            None
        );
        assert_eq!(Trimmed::of(&[f64::NEG_INFINITY; 10]), None);
        assert_eq!(Trimmed::of(&[1.0, f64::INFINITY]), None);
    }

    /// Fifteen differences to one reference: every window varies by 5 %, every round by 20 %, and
    /// every fiftieth window is disturbed and has 40 % less. All intervals hold together in 95 % of
    /// ladders; with ten rounds, most differences of 20 % are shown.
    #[test]
    fn all_intervals_of_a_ladder_hold_though_windows_are_disturbed() {
        for (rounds, power) in [(6, 0.0), (10, 0.8), (20, 0.99)] {
            let (held, shown) = climb(rounds);
            assert!(held >= 0.95, "{rounds} rounds: {held}");
            assert!(shown >= power, "{rounds} rounds: {shown}");
        }
    }

    /// Returns the share of 2,000 ladders all of whose intervals hold, and the share of differences
    /// that are shown.
    fn climb(rounds: usize) -> (f64, f64) {
        const DIFFERENCES: usize = 15;
        let mut drift = ChaCha8Rng::seed_from_u64(9);
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let mut window = |round: f64, level: f64| {
            let disturbance: f64 = if uniform(&mut random) < 0.02 {
                0.6
            } else {
                1.0
            };
            round + (level * disturbance).ln() + 0.05 * normal(&mut random)
        };
        let (mut held, mut shown) = (0, 0);
        for _ in 0..2000 {
            let mut differences = vec![Vec::new(); DIFFERENCES];
            for _ in 0..rounds {
                let round = 0.2 * normal(&mut drift);
                let reference = window(round, 1.0);
                for own in &mut differences {
                    own.push(window(round, 0.8) - reference);
                }
            }
            let intervals: Vec<[f64; 2]> = differences
                .iter()
                .filter_map(|own| Trimmed::of(own)?.interval(DIFFERENCES))
                .collect();
            let holds = |[low, high]: &[f64; 2]| (*low..=*high).contains(&0.8_f64.ln());
            held += usize::from(intervals.len() == DIFFERENCES && intervals.iter().all(holds));
            shown += intervals.iter().filter(|[_, high]| *high < 0.0).count();
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        (share(held, 2000), share(shown, 2000 * DIFFERENCES))
    }
}
