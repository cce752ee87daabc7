//! Looks for the highest rate of an open loop that keeps a condition.

use netping_results::{
    condition::{Answer, Condition},
    format::thousands,
    run::Step,
    warning::Warning,
};

/// First rate of a search, in requests/s.
const FIRST: f64 = 1000.0;

/// The search ends when the rates that were kept and not kept are this close, as a share.
const CLOSE: f64 = 0.02;

/// The most steps of a search: enough for every rate that a machine can have.
const MOST_STEPS: usize = 40;

/// Windows that must agree about a rate, once the search is between two rates: one hiccup decides
/// nothing.
const AGREEING: usize = 2;

/// The result of a window in which the condition held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Requests/s.
    pub rate: f64,
    /// Half the width of its 95 % interval, in requests/s, where it is known.
    pub half_width: Option<f64>,
}

/// A search by doubling, then by bisection. Every step is a whole window at one rate. Before it
/// ends, the lowest rate that did not keep the condition is tried again: when that was the doing of
/// a bad moment, the search goes on above it.
#[derive(Debug, Clone)]
pub struct Search {
    first: f64,
    /// The highest rate that kept the condition, and what it gave.
    kept: Option<(f64, Measured)>,
    /// Rates that did not, falling: the lowest is the last.
    broken: Vec<f64>,
    /// The lowest of those was tried again.
    confirmed: bool,
    /// Windows at the current rate that kept the condition, and that did not.
    votes: (usize, usize),
    steps: usize,
}

impl Search {
    /// Returns a search without a step. It begins at `first` requests/s, or at its own rate if that
    /// is more.
    pub fn new(first: f64) -> Self {
        Self {
            first: first.max(FIRST),
            kept: None,
            broken: Vec::new(),
            confirmed: false,
            votes: (0, 0),
            steps: 0,
        }
    }

    /// Returns the next rate to try, which may be the last one again; `None` when the search is
    /// over.
    pub fn next(&self) -> Option<f64> {
        if self.steps >= MOST_STEPS {
            return None;
        }
        match (self.kept, self.broken.last()) {
            (None, None) => Some(self.first),
            (Some((kept, _)), None) => Some(kept * 2.0),
            // Below one request a second there is nothing to find.
            (None, Some(broken)) => (*broken > 2.0).then_some(broken / 2.0),
            (Some((kept, _)), Some(broken)) if broken / kept > 1.0 + CLOSE => {
                Some(f64::midpoint(kept, *broken))
            }
            (Some(_), Some(broken)) => (!self.confirmed).then_some(*broken),
        }
    }

    /// Notes the outcome at the rate that [`Search::next`] returned; `None` if the condition
    /// failed.
    pub fn tried(&mut self, rate: f64, outcome: Option<Measured>) {
        self.steps += 1;
        if outcome.is_some() {
            self.votes.0 += 1;
        } else {
            self.votes.1 += 1;
        }
        // While it only doubles, a rate that is kept is passed by quickly: the bisection comes back
        // to its like.
        let enough = if self.broken.is_empty() { 1 } else { AGREEING };
        if let Some(measured) = outcome.filter(|_| self.votes.0 >= enough) {
            self.kept = Some((rate, measured));
            self.broken.retain(|broken| *broken > rate);
            self.confirmed = false;
        } else if self.votes.1 >= AGREEING {
            self.confirmed = self.broken.last() == Some(&rate);
            if !self.confirmed {
                self.broken.push(rate);
            }
        } else {
            return;
        }
        self.votes = (0, 0);
    }

    /// Returns the result as a sentence.
    pub fn result(&self, condition: &Condition) -> String {
        let measured =
            self.kept.map_or_else(
                String::new,
                |(_, Measured { rate, half_width })| match half_width {
                    Some(half) => format!(
                        " (measured: {} +- {} req/s)",
                        thousands(rate),
                        thousands(half)
                    ),
                    None => format!(" (measured: {} req/s)", thousands(rate)),
                },
            );
        match (self.kept, self.broken.last()) {
            (Some((kept, _)), Some(broken)) => format!(
                "the highest rate that keeps {condition}: {} req/s{measured}; it lies between that and {} req/s, which did not keep it",
                thousands(kept),
                thousands(*broken)
            ),
            (Some((kept, _)), None) => {
                format!(
                    "{condition} was kept at every rate tried, up to {} req/s{measured}",
                    thousands(kept)
                )
            }
            (None, Some(broken)) => {
                format!(
                    "{condition} was not kept at any rate tried, down to {} req/s",
                    thousands(*broken)
                )
            }
            (None, None) => "nothing was tried".to_owned(),
        }
    }
}

/// Returns true if the condition held in a step, no more requests failed than allowed, and the
/// planned rate was reached; `None` if there are too few samples to decide.
pub fn is_kept(step: &Step, condition: &Condition, max_error_rate: f64) -> Option<bool> {
    let failed = step.summary.failure_share() > max_error_rate;
    if failed
        || step
            .warnings
            .iter()
            .any(|warning| matches!(warning, Warning::BehindSchedule { .. }))
    {
        return Some(false);
    }
    match condition.check(step) {
        Answer::Holds(_) => Some(true),
        Answer::Fails(_) => Some(false),
        Answer::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window that kept the condition at `rate`.
    fn window(rate: f64) -> Measured {
        Measured {
            rate,
            half_width: None,
        }
    }

    /// Searches against a server that keeps its condition up to `limit`, but for the steps that are
    /// `hiccups`.
    fn search(limit: f64, hiccups: &[usize]) -> (Search, usize) {
        let mut search = Search::new(0.0);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.tried(
                rate,
                (rate <= limit && !hiccups.contains(&steps)).then(|| window(rate)),
            );
            steps += 1;
        }
        (search, steps)
    }

    fn bounds(search: &Search) -> (f64, f64) {
        (search.kept.unwrap().0, *search.broken.last().unwrap())
    }

    #[test]
    fn the_limit_is_bracketed_closely_in_few_steps() {
        for limit in [3.0, 950.0, 1000.0, 9876.0, 1_234_567.0] {
            let (search, steps) = search(limit, &[]);
            let (kept, broken) = bounds(&search);
            assert!(
                kept <= limit && limit < broken && broken / kept <= 1.0 + CLOSE,
                "{limit}: {kept}..{broken}"
            );
            assert!(steps <= 38, "{limit}: {steps}");
        }
    }

    #[test]
    fn one_hiccup_decides_nothing() {
        let mut search = Search::new(0.0);
        for (kept, next) in [
            (true, 2000.0),
            (false, 2000.0),
            (true, 4000.0),
            (false, 4000.0),
            (false, 3000.0),
        ] {
            let rate = search.next().unwrap();
            search.tried(rate, kept.then(|| window(rate)));
            assert_eq!(search.next(), Some(next));
        }
        for (kept, next) in [(false, 3000.0), (true, 3000.0), (true, 3500.0)] {
            let rate = search.next().unwrap();
            search.tried(rate, kept.then(|| window(rate)));
            assert_eq!(search.next(), Some(next));
        }
    }

    #[test]
    fn a_bad_moment_is_noticed_when_its_rate_is_tried_again() {
        // The steps at 8,000 fail, though the server keeps up to 9,876.
        let (search, _) = search(9876.0, &[3, 4]);
        let (kept, broken) = bounds(&search);
        assert!(
            kept <= 9876.0 && 9876.0 < broken && broken / kept <= 1.0 + CLOSE,
            "{kept}..{broken}"
        );
    }

    #[test]
    fn what_was_measured_is_that_of_the_rate_found() {
        let mut search = Search::new(0.0);
        // 1,500 is kept once, and then broken twice.
        for (kept, rate) in [
            (true, 1000.0),
            (false, 2000.0),
            (false, 2000.0),
            (true, 1500.0),
            (false, 1500.0),
            (false, 1500.0),
            (true, 1250.0),
        ] {
            assert_eq!(search.next(), Some(rate));
            search.tried(rate, kept.then(|| window(rate)));
        }
        search.tried(
            1250.0,
            Some(Measured {
                rate: 1249.0,
                half_width: Some(2.0),
            }),
        );
        let condition: Condition = "p99<1ms".parse().unwrap();
        assert_eq!(
            search.result(&condition),
            "the highest rate that keeps p99<1ms: 1,250 req/s (measured: 1,249 +- 2 req/s); it lies between that and \
             1,500 req/s, which did not keep it"
        );
    }

    #[test]
    fn what_never_or_always_holds_ends_too() {
        assert!(search(0.0, &[]).0.kept.is_none());
        assert!(search(f64::INFINITY, &[]).0.broken.is_empty());
    }
}
