//! The time until the 99th percentile of each second is again what it was before a burst.

use super::moments::{Moments, t_quantile};

/// The limit of what is usual is at least this many times the mean: the seconds before a burst may be more alike than a
/// machine stays in the minutes after them.
const DRIFT: f64 = 1.1;

/// Stretches of an open loop with another rate, in whole seconds. Each begins half-way through a cycle, the first of
/// which begins with the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// The length of a burst, in seconds.
    pub burst: u64,
    /// The length of a cycle, in seconds.
    pub length: u64,
}

/// The recoveries from all bursts of a window, and what was usual before the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Recoveries {
    /// The geometric mean of the seconds before the first burst, in nanoseconds.
    pub before: f64,
    /// The value that another such second exceeds once in 40 times, in nanoseconds: the upper end of a 95 % prediction
    /// interval, by Student's t on logarithms (Hahn and Meeker, "Statistical Intervals", section 4.2). At least the
    /// highest of them, which was usual, and a tenth above their mean, since a machine drifts by that much.
    pub limit: f64,
    /// One for each burst that was followed by two whole seconds.
    pub each: Vec<Recovery>,
}

/// The recovery from one burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Seconds from its end to the first of two seconds whose 99th percentile is within the limit; `None` if there were no
    /// such before the next burst, or the window's end.
    pub after: Option<u64>,
    /// Seconds from its end to the next burst, or to the window's end.
    pub watched: u64,
    /// The highest 99th percentile of its seconds and of those after it, in nanoseconds; `None` if they have none.
    pub highest: Option<u64>,
}

impl Recovery {
    /// Returns the time that it took, in seconds, or at least took.
    pub fn seconds(&self) -> u64 {
        self.after.unwrap_or(self.watched)
    }
}

impl Recoveries {
    /// Looks at the 99th percentiles of a window's seconds, in nanoseconds, which seconds have none of that are not to
    /// count as good; `None` if no burst was over, or fewer than two seconds before the first tell what is usual.
    pub fn of(p99: &[Option<u64>], cycle: Cycle) -> Option<Self> {
        let [burst, length] = [cycle.burst, cycle.length].map(|seconds| seconds as usize);
        let quiet = length.div_ceil(2);
        let before = p99.get(..quiet)?.iter().flatten();
        let most = before.clone().max().map(|time| *time as f64)?;
        let before: Vec<f64> = before.map(|time| (*time as f64).ln()).collect();
        let moments = Moments::of(&before)?;
        let spread = (moments.variance? * (1.0 + 1.0 / moments.n)).sqrt();
        let limit = (moments.mean + spread * t_quantile(moments.n - 1.0)?).exp();
        let mean = moments.mean.exp();
        let limit = limit.max(most).max(mean * DRIFT);
        let is_back = |second: &Option<u64>| second.is_some_and(|time| time as f64 <= limit);
        let mut each = Vec::new();
        for start in (quiet..p99.len()).step_by(length) {
            let end = (start + length).min(p99.len());
            let Some(after) = p99.get(start + burst..end).filter(|all| all.len() >= 2) else {
                break;
            };
            let mut pairs = after.windows(2);
            let back = pairs.position(|pair| pair.iter().all(is_back));
            each.push(Recovery {
                after: back.map(|seconds| seconds as u64),
                watched: after.len() as u64,
                highest: p99[start..end].iter().flatten().max().copied(),
            });
        }
        (!each.is_empty()).then_some(Self {
            before: mean,
            limit,
            each,
        })
    }

    /// Returns true if a recovery was not seen.
    pub fn is_missing(&self) -> bool {
        self.each.iter().any(|own| own.after.is_none())
    }

    /// Returns the longest time of a recovery, in seconds; of one that was not seen, that for which it was looked for.
    pub fn longest(&self) -> u64 {
        self.each.iter().map(Recovery::seconds).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::statistics::simulation::normal;

    const CYCLE: Cycle = Cycle {
        burst: 2,
        length: 20,
    };

    /// Returns 99th percentiles that vary by a tenth about 1 ms, but are 50 ms in these seconds.
    fn seconds(slow: &[[usize; 2]], count: usize, seed: u64) -> Vec<Option<u64>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let time = |second: usize| {
            let usual = 1e6 * (0.1 * normal(&mut random)).exp();
            let is_slow = slow.iter().any(|[from, to]| (*from..*to).contains(&second));
            Some(if is_slow { 50_000_000 } else { usual as u64 })
        };
        (0..count).map(time).collect()
    }

    fn after(slow: &[[usize; 2]], count: usize) -> Vec<Option<u64>> {
        let found = Recoveries::of(&seconds(slow, count, 1), CYCLE).unwrap();
        found.each.iter().map(|own| own.after).collect()
    }

    #[test]
    fn each_burst_has_the_time_from_its_end_until_seconds_are_as_before() {
        // From 10 s to 12 s, and from 30 s to 32 s.
        assert_eq!(after(&[[10, 12], [30, 35]], 40), [Some(0), Some(3)]);
        assert_eq!(after(&[[10, 30], [30, 32]], 40), [None, Some(0)]);
        // A single good second does not tell.
        assert_eq!(after(&[[10, 13], [14, 16]], 20), [Some(4)]);
        // A second without a reply is not good.
        let mut all = seconds(&[[10, 12]], 20, 1);
        all[12] = None;
        let found = Recoveries::of(&all, CYCLE).unwrap();
        assert_eq!(found.each[0].after, Some(1));
        assert_eq!((found.each[0].watched, found.longest()), (8, 1));
        assert_eq!(found.each[0].highest, Some(50_000_000));
        assert!(!found.is_missing());
        // The second burst is not over.
        assert_eq!(after(&[[10, 12]], 31), [Some(0)]);
        assert_eq!(Recoveries::of(&seconds(&[], 13, 1), CYCLE), None);
        assert!(Recoveries::of(&seconds(&[], 14, 1), CYCLE).is_some());
    }

    #[test]
    fn a_server_that_is_gone_after_a_burst_has_not_recovered() {
        let mut all = seconds(&[[10, 12]], 60, 1);
        all[12..].fill(None);
        let found = Recoveries::of(&all, CYCLE).unwrap();
        let highest: Vec<_> = found.each.iter().map(|own| own.highest).collect();
        assert_eq!(highest, [Some(50_000_000), None, None]);
        assert!(found.is_missing());
    }

    #[test]
    fn seconds_that_are_all_the_same_are_as_before() {
        for time in 5_000_000..5_000_500 {
            let found = Recoveries::of(&[Some(time); 20], CYCLE).unwrap();
            assert_eq!(found.each[0].after, Some(0), "{time}");
        }
    }

    #[test]
    fn a_tenth_above_the_seconds_before_is_as_before() {
        let after = |later| {
            let mut all = [Some(5_000_000); 20];
            all[12..].fill(Some(later));
            Recoveries::of(&all, CYCLE).unwrap().each[0].after
        };
        assert_eq!(after(5_490_000), Some(0));
        assert_eq!(after(5_510_000), None);
    }

    #[test]
    fn what_was_reached_before_is_within_the_limit() {
        // Of nine seconds of 1 ms and one of 3, the prediction interval ends at 2.5 ms.
        let mut all = [Some(1_000_000); 20];
        all[4] = Some(3_000_000);
        let found = Recoveries::of(&all, CYCLE).unwrap();
        assert!((found.limit - 3e6).abs() < 1e-6, "{}", found.limit);
    }

    #[test]
    fn seconds_like_those_before_are_within_the_limit_39_times_of_40() {
        let mut within = 0;
        for seed in 0..4000 {
            let all = seconds(&[], 20, seed);
            let found = Recoveries::of(&all, CYCLE).unwrap();
            within += u32::from(all[15].is_some_and(|time| time as f64 <= found.limit));
        }
        let share = f64::from(within) / 4000.0;
        assert!((0.968..0.982).contains(&share), "{share}");
    }
}
