//! Looks for the highest rate of an open loop that keeps a condition.

use netping_report::{Answer, Condition, Doubt, Step, format::thousands};

/// Where the search begins, in requests/s.
const FIRST: f64 = 1000.0;

/// The search ends when the rates that were kept and not kept are this close, as a share.
const CLOSE: f64 = 0.02;

/// The most steps of a search: enough for every rate that a machine can have.
const MOST_STEPS: usize = 40;

/// Windows that must agree about a rate, once the search is between two rates: one hiccup decides nothing.
const AGREEING: usize = 2;

/// A search by doubling, then by bisection. Every step is a whole window at one rate.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The highest rate that kept the condition.
    kept: Option<f64>,
    /// The lowest rate that did not.
    broken: Option<f64>,
    /// Windows at the current rate that kept the condition, and that did not.
    votes: (usize, usize),
    steps: usize,
}

impl Search {
    /// Nothing tried yet.
    pub fn new() -> Self {
        Self { kept: None, broken: None, votes: (0, 0), steps: 0 }
    }

    /// The next rate to try, which may be the last one again; `None` when the search is over.
    pub fn next(&self) -> Option<f64> {
        if self.steps >= MOST_STEPS {
            return None;
        }
        match (self.kept, self.broken) {
            (None, None) => Some(FIRST),
            (Some(kept), None) => Some(kept * 2.0),
            // Below one request a second there is nothing to find.
            (None, Some(broken)) => (broken > 2.0).then_some(broken / 2.0),
            (Some(kept), Some(broken)) => (broken / kept > 1.0 + CLOSE).then(|| f64::midpoint(kept, broken)),
        }
    }

    /// Notes how the rate that [`Search::next`] gave went.
    pub fn tried(&mut self, rate: f64, kept: bool) {
        self.steps += 1;
        self.votes = if kept { (self.votes.0 + 1, self.votes.1) } else { (self.votes.0, self.votes.1 + 1) };
        // While it only doubles, a rate that is kept is passed by quickly: the bisection comes back to its like.
        let enough = if self.broken.is_none() { 1 } else { AGREEING };
        match self.votes {
            (votes, _) if votes >= enough => self.kept = Some(rate),
            (_, AGREEING..) => self.broken = Some(rate),
            _ => return,
        }
        self.votes = (0, 0);
    }

    /// What was found, as a sentence. `measured` is what the highest rate kept gave, in requests/s with half its 95 %
    /// interval, where that is known.
    pub fn result(&self, condition: &Condition, measured: Option<(f64, Option<f64>)>) -> String {
        let measured = measured.map_or_else(String::new, |(rate, half)| match half {
            Some(half) => format!(" (measured: {} +- {} req/s)", thousands(rate), thousands(half)),
            None => format!(" (measured: {} req/s)", thousands(rate)),
        });
        match (self.kept, self.broken) {
            (Some(kept), Some(broken)) => format!(
                "the highest rate that keeps {condition}: {} req/s{measured}; it lies between that and {} req/s, which did not keep it",
                thousands(kept),
                thousands(broken)
            ),
            (Some(kept), None) => {
                format!("{condition} was kept at every rate tried, up to {} req/s{measured}", thousands(kept))
            }
            (None, Some(broken)) => {
                format!("{condition} was not kept at any rate tried, down to {} req/s", thousands(broken))
            }
            (None, None) => "nothing was tried".to_owned(),
        }
    }
}

/// Whether a step kept the condition: it holds, no more requests failed than allowed, and the rate was really there.
pub fn is_kept(step: &Step, condition: &Condition, max_error_rate: f64) -> bool {
    matches!(condition.check(&step.summary), Answer::Holds(_))
        && step.summary.accounting.error_rate() <= max_error_rate
        && !step.doubts.iter().any(|doubt| matches!(doubt, Doubt::BehindSchedule { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches against a server that keeps its condition up to `limit`.
    fn search(limit: f64) -> (Search, usize) {
        let mut search = Search::new();
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.tried(rate, rate <= limit);
            steps += 1;
        }
        (search, steps)
    }

    #[test]
    fn the_limit_is_bracketed_closely_in_few_steps() {
        for limit in [3.0, 950.0, 1000.0, 9876.0, 1_234_567.0] {
            let (search, steps) = search(limit);
            let (kept, broken) = (search.kept.unwrap(), search.broken.unwrap());
            assert!(kept <= limit && limit < broken && broken / kept <= 1.0 + CLOSE, "{limit}: {kept}..{broken}");
            assert!(steps <= 36, "{limit}: {steps}");
        }
    }

    #[test]
    fn one_hiccup_decides_nothing() {
        let mut search = Search::new();
        for (kept, next) in [(true, 2000.0), (false, 2000.0), (true, 4000.0), (false, 4000.0), (false, 3000.0)] {
            search.tried(search.next().unwrap(), kept);
            assert_eq!(search.next(), Some(next));
        }
        for (kept, next) in [(false, 3000.0), (true, 3000.0), (true, 3500.0)] {
            search.tried(search.next().unwrap(), kept);
            assert_eq!(search.next(), Some(next));
        }
    }

    #[test]
    fn what_never_or_always_holds_ends_too() {
        assert!(search(0.0).0.kept.is_none());
        assert!(search(f64::INFINITY).0.broken.is_none());
    }
}
