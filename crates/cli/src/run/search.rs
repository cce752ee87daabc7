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

/// Fresh windows that confirm the rate found, and those of them that must keep the condition. The
/// windows of the search itself do not count: the highest rate that was kept was also a lucky one.
const FRESH: usize = 10;
const CONFIRMING: usize = 9;

/// A rate that is not confirmed is lowered by this share.
const LOWERED: f64 = 0.03;

/// The most rates that are tried for confirmation.
const MOST_CONFIRMED: usize = 12;

/// Windows that must agree about a rate, once the search is between two rates: one hiccup decides
/// nothing.
const AGREEING: usize = 2;

/// A search by doubling, then by bisection, then a confirmation by fresh windows. Every step is a
/// whole window at one rate. Before it ends, the lowest rate that did not keep the condition is
/// tried again: when that was the doing of a bad moment, the search goes on above it.
#[derive(Debug, Clone)]
pub struct Search {
    first: f64,
    /// The highest rate that kept the condition.
    kept: Option<f64>,
    /// Rates that did not, falling: the lowest is the last.
    broken: Vec<f64>,
    /// The lowest of those was tried again.
    confirmed: bool,
    /// Windows at the current rate that kept the condition, and that did not.
    votes: (usize, usize),
    steps: usize,
    /// The confirmation of the rate found, once the search is over.
    fresh: Option<Fresh>,
}

/// The confirmation of a rate by fresh windows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fresh {
    rate: f64,
    kept: usize,
    broken: usize,
    /// Sum of the rates measured in the windows that kept the condition, in requests/s.
    sum: f64,
    /// Number of rates tried, this one included.
    rates: usize,
}

impl Fresh {
    fn at(rate: f64, rates: usize) -> Self {
        Self {
            rate,
            rates,
            ..Self::default()
        }
    }

    fn is_confirmed(self) -> bool {
        self.kept >= CONFIRMING
    }

    fn is_rejected(self) -> bool {
        self.broken > FRESH - CONFIRMING
    }
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
            fresh: None,
        }
    }

    /// Returns the next rate to try, which may be the last one again; `None` when the rate is found
    /// and confirmed.
    pub fn next(&self) -> Option<f64> {
        if let Some(rate) = self.seek() {
            return Some(rate);
        }
        let fresh = match self.fresh {
            None => Fresh::at(self.kept?, 1),
            Some(fresh) if fresh.is_confirmed() => return None,
            Some(fresh) if fresh.is_rejected() => {
                Fresh::at(fresh.rate * (1.0 - LOWERED), fresh.rates + 1)
            }
            Some(fresh) => fresh,
        };
        (fresh.rates <= MOST_CONFIRMED).then_some(fresh.rate)
    }

    /// Returns the next rate of the search itself; `None` once it lies between two rates.
    fn seek(&self) -> Option<f64> {
        if self.fresh.is_some() || self.steps >= MOST_STEPS {
            return None;
        }
        match (self.kept, self.broken.last()) {
            (None, None) => Some(self.first),
            (Some(kept), None) => Some(kept * 2.0),
            // Below one request a second there is nothing to find.
            (None, Some(broken)) => (*broken > 2.0).then_some(broken / 2.0),
            (Some(kept), Some(broken)) if broken / kept > 1.0 + CLOSE => {
                Some(f64::midpoint(kept, *broken))
            }
            (Some(_), Some(broken)) => (!self.confirmed).then_some(*broken),
        }
    }

    /// Notes the outcome at the rate that [`Search::next`] returned: the rate measured, in
    /// requests/s, or `None` if the condition failed.
    pub fn tried(&mut self, rate: f64, outcome: Option<f64>) {
        if self.seek().is_none() {
            self.confirm(rate, outcome);
            return;
        }
        self.steps += 1;
        if outcome.is_some() {
            self.votes.0 += 1;
        } else {
            self.votes.1 += 1;
        }
        // While it only doubles, a rate that is kept is passed by quickly: the bisection comes back
        // to its like.
        let enough = if self.broken.is_empty() { 1 } else { AGREEING };
        if outcome.is_some() && self.votes.0 >= enough {
            self.kept = Some(rate);
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

    /// Notes the outcome of a fresh window.
    fn confirm(&mut self, rate: f64, outcome: Option<f64>) {
        let rates = self.fresh.map_or(0, |fresh| fresh.rates);
        let same = self.fresh.filter(|fresh| !fresh.is_rejected());
        let mut fresh = same.unwrap_or_else(|| Fresh::at(rate, rates + 1));
        match outcome {
            Some(measured) => {
                fresh.kept += 1;
                fresh.sum += measured;
            }
            None => fresh.broken += 1,
        }
        if fresh.is_rejected() {
            self.broken.push(rate);
        }
        self.fresh = Some(fresh);
    }

    /// Returns true if a rate was found and confirmed.
    pub fn is_found(&self) -> bool {
        self.fresh.is_some_and(Fresh::is_confirmed)
    }

    /// Returns the result as a sentence.
    pub fn result(&self, condition: &Condition) -> String {
        let lowest = self.broken.last().map(|broken| thousands(*broken));
        let Some(fresh) = self.fresh else {
            let none = |rate| format!("{condition} was not kept, down to {rate} req/s");
            return lowest.map_or_else(
                || "the search ended before it found a rate".to_owned(),
                none,
            );
        };
        let rate = thousands(fresh.rate);
        let (kept, all) = (fresh.kept, fresh.kept + fresh.broken);
        let windows = format!("{kept} of {all} fresh windows");
        if !fresh.is_confirmed() {
            return format!(
                "no rate that keeps {condition} was confirmed: at {rate} req/s, it was kept in {windows}"
            );
        }
        let measured = thousands(fresh.sum / fresh.kept as f64);
        let highest = lowest.map(|rate| format!("not kept at {rate} req/s"));
        let highest = highest.unwrap_or_else(|| "kept at every rate tried".to_owned());
        format!(
            "the highest rate that keeps {condition}: {rate} req/s, in {windows} (measured: {measured} req/s); \
             {highest}"
        )
    }
}

/// Returns an error with what spoke against a step, if it did not keep the condition, had more
/// failures than allowed, or was behind its schedule; `None` if there are too few samples to decide.
pub fn is_kept(
    step: &Step,
    condition: &Condition,
    max_error_rate: f64,
) -> Option<Result<(), &'static str>> {
    let is_behind = |warning: &Warning| matches!(warning, Warning::BehindSchedule(_));
    let answer = condition.check(step);
    if matches!(answer, Answer::Fails(_)) {
        Some(Err("not met"))
    } else if step.warnings.iter().any(is_behind) {
        Some(Err("behind schedule"))
    } else if step.summary.failure_share() > max_error_rate {
        Some(Err("too many failed"))
    } else {
        matches!(answer, Answer::Holds(_)).then_some(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Searches against a server that keeps its condition up to `limit`, but for the steps that are
    /// `hiccups`.
    fn search(limit: f64, hiccups: &[usize]) -> (Search, usize) {
        let mut search = Search::new(0.0);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.tried(
                rate,
                (rate <= limit && !hiccups.contains(&steps)).then_some(rate),
            );
            steps += 1;
        }
        (search, steps)
    }

    fn bounds(search: &Search) -> (f64, f64) {
        (search.fresh.unwrap().rate, *search.broken.last().unwrap())
    }

    /// Returns the p99 of a window at a server that reaches the limit of 1 at 10,000 requests/s, with
    /// a noise of `sigma`: it is proportional to 1 / (1 - u), with a capacity of 12,000.
    fn p99(rate: f64, sigma: f64, random: &mut ChaCha8Rng) -> f64 {
        let noise: f64 = StandardNormal.sample(random);
        let free = (1.0 - rate / 12_000.0).max(1e-9);
        (1.0 - 10_000.0 / 12_000.0) / free * (sigma * noise).exp()
    }

    /// Searches against such a server.
    fn noisy(seed: u64, sigma: f64) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut search = Search::new(0.0);
        while let Some(rate) = search.next() {
            let is_kept = p99(rate, sigma, &mut random) < 1.0;
            search.tried(rate, is_kept.then_some(rate));
        }
        search.fresh.unwrap().rate
    }

    /// A fresh window at the rate found keeps the condition in at least 80 % of cases, though the
    /// rate is seldom below 0.9 of that at which p99 reaches the limit.
    #[test]
    fn a_lucky_window_decides_nothing() {
        for sigma in [0.1, 0.3] {
            let found: Vec<f64> = (0..200).map(|seed| noisy(seed, sigma)).collect();
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let kept = found
                .iter()
                .filter(|rate| p99(**rate, sigma, &mut random) < 1.0);
            let (kept, near) = (
                kept.count(),
                found
                    .iter()
                    .filter(|rate| (9000.0..10_200.0).contains(*rate)),
            );
            let near = near.count();
            assert!(
                kept >= 160 && near >= 160,
                "{sigma}: {kept} and {near} of 200"
            );
        }
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
            assert!(steps <= 50, "{limit}: {steps}");
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
            search.tried(rate, kept.then_some(rate));
            assert_eq!(search.next(), Some(next));
        }
        for (kept, next) in [(false, 3000.0), (true, 3000.0), (true, 3500.0)] {
            let rate = search.next().unwrap();
            search.tried(rate, kept.then_some(rate));
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
    fn the_result_says_how_often_it_was_confirmed() {
        let (mut search, _) = search(1250.0, &[]);
        let condition: Condition = "p99<1ms".parse().unwrap();
        let text = search.result(&condition);
        assert!(
            text.starts_with(
                "the highest rate that keeps p99<1ms: 1,250 req/s, in 9 of 9 fresh windows"
            ),
            "{text}"
        );
        search.fresh = Some(Fresh::at(900.0, 12));
        search.confirm(900.0, None);
        assert!(
            search
                .result(&condition)
                .starts_with("no rate that keeps p99<1ms was confirmed")
        );
    }

    #[test]
    fn what_never_or_always_holds_ends_too() {
        assert!(search(0.0, &[]).0.kept.is_none());
        assert!(search(f64::INFINITY, &[]).0.broken.is_empty());
    }
}
