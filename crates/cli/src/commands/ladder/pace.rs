//! The number of rounds, by the time that they take.

use std::time::Duration;

/// The rounds of a ladder: the fewest, more while the budget lasts, and disturbed ones once more while half
/// as much again lasts.
#[derive(Debug)]
pub struct Pace {
    fewest: u32,
    budget: Duration,
    /// The rounds that are kept, and their time.
    kept: u32,
    spent: Duration,
    /// The time of the rounds that are measured again.
    spent_again: Duration,
    longest: Duration,
}

impl Pace {
    /// Returns the pace of at least this many rounds, and of more in this time.
    pub fn new(fewest: u32, budget: Duration) -> Self {
        Self {
            fewest,
            budget,
            kept: 0,
            spent: Duration::ZERO,
            spent_again: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// Returns the number of the next round, from 1 on.
    pub fn next(&self) -> u32 {
        self.kept + 1
    }

    /// Returns true once there are enough rounds, and another would not end in time.
    pub fn is_over(&self) -> bool {
        self.kept >= self.fewest && self.spent + self.longest > self.budget
    }

    /// Returns the time that is expected until the end; `None` before it is known how long a round takes.
    pub fn left(&self) -> Option<Duration> {
        let least = self.longest * self.fewest.saturating_sub(self.kept);
        let left = self.budget.saturating_sub(self.spent).max(least);
        Some(left).filter(|left| !left.is_zero())
    }

    /// Counts a round that took this long and is kept.
    pub fn keep(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        self.kept += 1;
        self.spent += took;
    }

    /// Returns true if a round that took this long can be measured again, and then counts it as such.
    pub fn can_repeat(&mut self, took: Duration) -> bool {
        self.longest = self.longest.max(took);
        let whole = self.budget.max(self.longest * self.fewest);
        let can_repeat = self.spent_again + took <= whole / 2;
        if can_repeat {
            self.spent_again += took;
        }
        can_repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_secs(4);

    /// Returns the numbers of rounds that are kept and that are measured again, where each takes 4 s and
    /// some are disturbed.
    fn rounds(fewest: u32, budget: u64, is_disturbed: impl Fn(u32) -> bool) -> [u32; 2] {
        let mut pace = Pace::new(fewest, Duration::from_secs(budget));
        let (mut measured, mut again) = (0, 0);
        while !pace.is_over() {
            measured += 1;
            if is_disturbed(measured) && pace.can_repeat(ROUND) {
                again += 1;
            } else {
                pace.keep(ROUND);
            }
        }
        [measured - again, again]
    }

    #[test]
    fn there_are_the_fewest_rounds_and_more_in_the_budget() {
        assert_eq!(rounds(3, 0, |_| false), [3, 0]);
        assert_eq!(rounds(3, 19, |_| false), [4, 0]);
        assert_eq!(rounds(3, 20, |_| false), [5, 0]);
        assert_eq!(rounds(10, 20, |_| false), [10, 0]);
    }

    #[test]
    fn disturbed_rounds_are_measured_again_for_half_the_time() {
        assert_eq!(rounds(3, 40, |round| round < 4), [10, 3]);
        assert_eq!(rounds(3, 40, |_| true), [10, 5]);
        assert_eq!(rounds(3, 47, |_| true), [11, 5]);
        assert_eq!(rounds(3, 48, |_| true), [12, 6]);
        // Of the fewest rounds, too.
        assert_eq!(rounds(3, 0, |_| true), [3, 1]);
        assert_eq!(rounds(10, 20, |_| true), [10, 5]);
    }

    #[test]
    fn the_time_left_is_that_of_the_budget_or_of_the_fewest_rounds() {
        let mut pace = Pace::new(3, Duration::ZERO);
        assert_eq!(pace.left(), None);
        pace.keep(ROUND);
        assert_eq!((pace.next(), pace.left()), (2, Some(2 * ROUND)));
        let mut pace = Pace::new(3, Duration::from_secs(50));
        pace.keep(ROUND);
        assert!(pace.can_repeat(2 * ROUND));
        assert_eq!(pace.left(), Some(Duration::from_secs(46)));
    }
}
