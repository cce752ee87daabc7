//! The number of rounds, by the time that they take.

use std::time::Duration;

/// The rounds of a ladder: the fewest, and more while the budget lasts.
#[derive(Debug)]
pub struct Pace {
    fewest: u32,
    budget: Duration,
    /// The rounds so far, and their time.
    measured: u32,
    spent: Duration,
    longest: Duration,
}

impl Pace {
    /// Returns the pace of at least this many rounds, and of more in this time.
    pub fn new(fewest: u32, budget: Duration) -> Self {
        Self {
            fewest,
            budget,
            measured: 0,
            spent: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// Returns the number of the next round, from 1 on.
    pub fn next(&self) -> u32 {
        self.measured + 1
    }

    /// Returns true once there are enough rounds, and another would not end in time.
    pub fn is_over(&self) -> bool {
        self.measured >= self.fewest && self.spent + self.longest > self.budget
    }

    /// Returns the time that is expected until the end; `None` before it is known how long a round takes.
    pub fn left(&self) -> Option<Duration> {
        let least = self.longest * self.fewest.saturating_sub(self.measured);
        let left = self.budget.saturating_sub(self.spent).max(least);
        Some(left).filter(|left| !left.is_zero())
    }

    /// Counts a round that took this long.
    pub fn count(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
        self.measured += 1;
        self.spent += took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_secs(4);

    /// Returns the number of rounds of 4 s each.
    fn rounds(fewest: u32, budget: u64) -> u32 {
        let mut pace = Pace::new(fewest, Duration::from_secs(budget));
        while !pace.is_over() {
            pace.count(ROUND);
        }
        pace.measured
    }

    #[test]
    fn there_are_the_fewest_rounds_and_more_in_the_budget() {
        assert_eq!(rounds(3, 0), 3);
        assert_eq!(rounds(3, 19), 4);
        assert_eq!(rounds(3, 20), 5);
        assert_eq!(rounds(10, 20), 10);
    }

    #[test]
    fn the_time_left_is_that_of_the_budget_or_of_the_fewest_rounds() {
        let mut pace = Pace::new(3, Duration::ZERO);
        assert_eq!(pace.left(), None);
        pace.count(ROUND);
        assert_eq!((pace.next(), pace.left()), (2, Some(2 * ROUND)));
        let mut pace = Pace::new(3, Duration::from_secs(50));
        pace.count(ROUND);
        assert_eq!(pace.left(), Some(Duration::from_secs(46)));
    }
}
