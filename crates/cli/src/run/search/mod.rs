//! Looks for the highest rate of an open loop that keeps a condition.

mod outcome;

pub use self::outcome::{Outcome, disturbances};

use std::{collections::BTreeSet, time::Duration};

use netping_results::{
    condition::Condition,
    format::{plural, thousands},
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

/// A rate of which so many windows in a row are disturbed cannot be measured.
const IN_A_ROW: usize = 3;

/// Warnings by which the client needed more CPU time than it has.
const FULL: [&str; 2] = ["CLIENT_BOUND", "CLIENT_THROTTLED"];

/// The most disturbed windows of a search.
const MOST_DISTURBED: usize = 40;

/// Returns the lowest rate with enough samples in a window of this length to decide on a condition; a tenth more,
/// since random arrivals vary.
pub fn least_rate(window: Duration, condition: &Condition) -> f64 {
    condition.samples() as f64 / window.as_secs_f64() * 1.1
}

/// A search by doubling, then by bisection, then a confirmation by fresh windows. Every step is a
/// whole window at one rate. Before it ends, the lowest rate that did not keep the condition is
/// tried again: when that was the doing of a bad moment, the search goes on above it.
///
/// A disturbed window says nothing about the server and is measured again. A rate that cannot be measured
/// bounds the search like one that the server did not keep, but is not held against the server.
#[derive(Debug, Clone)]
pub struct Search {
    first: f64,
    /// The highest rate that kept the condition.
    kept: Option<f64>,
    /// Upper bounds, falling: the lowest is the last.
    bounds: Vec<Bound>,
    /// The lowest of those was tried again.
    confirmed: bool,
    /// Windows at the current rate that kept the condition, and that did not.
    votes: (usize, usize),
    steps: usize,
    /// The last windows, all at one rate, that were disturbed.
    in_a_row: usize,
    disturbed: usize,
    /// The names of the warnings about these.
    disturbances: BTreeSet<&'static str>,
    /// The confirmation of the rate found, once the search is over.
    fresh: Option<Fresh>,
    /// A window that was undecided ended it.
    is_undecided: bool,
}

/// A rate that is too high.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    rate: f64,
    /// The server did not keep the condition; otherwise, the rate could not be measured.
    is_of_server: bool,
}

/// The confirmation of a rate by fresh windows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Fresh {
    rate: f64,
    kept: usize,
    broken: usize,
    /// It could not be measured.
    is_lost: bool,
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
        self.is_lost || self.broken > FRESH - CONFIRMING
    }
}

/// The end of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The highest rate was found and confirmed.
    Found,
    /// There is none.
    NotFound,
    /// The rates above could not be measured: this machine is the limit, not the server.
    Machine,
}

impl Search {
    /// Returns a search without a step. It begins at `first` requests/s, or at its own rate if that
    /// is more.
    pub fn new(first: f64) -> Self {
        Self {
            first: first.max(FIRST),
            kept: None,
            bounds: Vec::new(),
            confirmed: false,
            votes: (0, 0),
            steps: 0,
            in_a_row: 0,
            disturbed: 0,
            disturbances: BTreeSet::new(),
            fresh: None,
            is_undecided: false,
        }
    }

    /// Returns the next rate to try, which may be the last one again; `None` when the rate is found
    /// and confirmed, or the search cannot go on.
    pub fn next(&self) -> Option<f64> {
        if self.is_undecided || self.disturbed >= MOST_DISTURBED {
            return None;
        }
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
        match (self.kept, self.bounds.last()) {
            (None, None) => Some(self.first),
            (Some(kept), None) => Some(kept * 2.0),
            // Below one request a second there is nothing to find, and other programs do not go away at a
            // lower rate.
            (None, Some(bound)) => {
                (bound.is_of_server && bound.rate > 2.0).then_some(bound.rate / 2.0)
            }
            (Some(kept), Some(bound)) if bound.rate / kept > 1.0 + CLOSE => {
                Some(f64::midpoint(kept, bound.rate))
            }
            (Some(_), Some(bound)) => (!self.confirmed).then_some(bound.rate),
        }
    }

    /// Notes the outcome at the rate that [`Search::next`] returned. Returns true if the window is measured
    /// again, and does not count.
    pub fn tried(&mut self, rate: f64, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Disturbed(names) => return self.lose(rate, names),
            Outcome::Kept(measured) => self.judge(rate, Some(*measured)),
            Outcome::Broken(_) => self.judge(rate, None),
            Outcome::Undecided => self.is_undecided = true,
            Outcome::Interrupted => {}
        }
        self.in_a_row = 0;
        false
    }

    /// Notes a disturbed window. Returns true if it is measured again.
    fn lose(&mut self, rate: f64, names: &[&'static str]) -> bool {
        self.disturbances.extend(names);
        self.disturbed += 1;
        self.in_a_row += 1;
        if self.in_a_row < IN_A_ROW && self.disturbed < MOST_DISTURBED {
            return true;
        }
        self.in_a_row = 0;
        let bound = Bound {
            rate,
            is_of_server: false,
        };
        if self.seek().is_some() {
            self.bound(bound);
        } else {
            self.fresh = Some(Fresh {
                is_lost: true,
                ..self.fresh_at(rate)
            });
            self.bounds.push(bound);
        }
        false
    }

    /// Notes a window that says something about the server: the rate measured, in requests/s, or `None` if
    /// the condition failed.
    fn judge(&mut self, rate: f64, measured: Option<f64>) {
        if self.seek().is_none() {
            self.confirm(rate, measured);
            return;
        }
        self.steps += 1;
        if measured.is_some() {
            self.votes.0 += 1;
        } else {
            self.votes.1 += 1;
        }
        // While it only doubles, a rate that is kept is passed by quickly: the bisection comes back
        // to its like.
        let enough = if self.bounds.is_empty() { 1 } else { AGREEING };
        if measured.is_some() && self.votes.0 >= enough {
            self.kept = Some(rate);
            self.bounds.retain(|bound| bound.rate > rate);
            self.confirmed = false;
            self.votes = (0, 0);
        } else if self.votes.1 >= AGREEING {
            self.bound(Bound {
                rate,
                is_of_server: true,
            });
        }
    }

    /// Notes a rate that is too high, or was tried again and still is.
    fn bound(&mut self, bound: Bound) {
        let last = self.bounds.last_mut();
        let known = last.filter(|last| last.rate.to_bits() == bound.rate.to_bits());
        self.confirmed = known.is_some();
        match known {
            Some(known) => known.is_of_server |= bound.is_of_server,
            None => self.bounds.push(bound),
        }
        self.votes = (0, 0);
    }

    /// Notes the outcome of a fresh window.
    fn confirm(&mut self, rate: f64, measured: Option<f64>) {
        let mut fresh = self.fresh_at(rate);
        match measured {
            Some(measured) => {
                fresh.kept += 1;
                fresh.sum += measured;
            }
            None => fresh.broken += 1,
        }
        if fresh.is_rejected() {
            self.bounds.push(Bound {
                rate,
                is_of_server: true,
            });
        }
        self.fresh = Some(fresh);
    }

    /// Returns the confirmation of a rate as it stands.
    fn fresh_at(&self, rate: f64) -> Fresh {
        let rates = self.fresh.map_or(0, |fresh| fresh.rates);
        let same = self.fresh.filter(|fresh| !fresh.is_rejected());
        same.unwrap_or_else(|| Fresh::at(rate, rates + 1))
    }

    /// Returns its end.
    pub fn end(&self) -> End {
        let lowest = self.bounds.last();
        if self.is_undecided {
            End::NotFound
        } else if lowest.is_some_and(|bound| !bound.is_of_server) {
            End::Machine
        } else if self.found().is_some() {
            End::Found
        } else {
            End::NotFound
        }
    }

    /// Returns the rate that was found and confirmed, in requests/s, if there is one.
    pub fn found(&self) -> Option<f64> {
        let fresh = self.fresh.filter(|fresh| fresh.is_confirmed());
        fresh.map(|fresh| fresh.rate)
    }

    /// Returns the result as a sentence.
    pub fn result(&self, condition: &Condition) -> String {
        if self.is_undecided {
            return match condition.samples() {
                1 => format!("{condition} cannot be decided: no window has a value of it"),
                samples => format!(
                    "{condition} takes {} samples in a window: measure longer (-d)",
                    thousands(samples as f64)
                ),
            };
        }
        let mut sentences = vec![self.tell(condition)];
        if let (End::Machine, Some(bound)) = (self.end(), self.bounds.last()) {
            let rate = thousands(bound.rate);
            sentences.push(format!(
                "{rate} req/s could not be measured, which says nothing about the server: {}",
                self.cause()
            ));
        }
        if self.disturbed > 0 {
            let windows = plural(self.disturbed as u64, "disturbed window");
            let names: Vec<&str> = self.disturbances.iter().copied().collect();
            let names = names.join(", ");
            sentences.push(format!("{windows} did not count ({names})"));
        }
        sentences.join("; ")
    }

    /// Says what kept rates from being measured, and what to do about it.
    fn cause(&self) -> String {
        if self.disturbances.iter().any(|name| FULL.contains(name)) {
            return "the client used all the CPU time that it has; give it more cores, or a larger machine".to_owned();
        }
        let names: Vec<&str> = self.disturbances.iter().copied().collect();
        format!(
            "the client or the server waited for CPUs that other programs had; end these and search again, or accept it \
             with --allow {}",
            names.join(",")
        )
    }

    /// Says which rate was found.
    fn tell(&self, condition: &Condition) -> String {
        let Some(fresh) = self.fresh else {
            let broken = self.bounds.iter().rfind(|bound| bound.is_of_server);
            return match (self.kept, broken) {
                (Some(kept), _) => {
                    let kept = thousands(kept);
                    format!("{condition} was kept at {kept} req/s, which is not confirmed")
                }
                (None, Some(bound)) => {
                    let rate = thousands(bound.rate);
                    format!("{condition} was not kept, down to {rate} req/s")
                }
                (None, None) => "the search ended before it found a rate".to_owned(),
            };
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
        let found = format!("{rate} req/s, in {windows} (measured: {measured} req/s)");
        match self.bounds.last() {
            None => format!(
                "the highest rate that keeps {condition}: {found}; kept at every rate tried"
            ),
            Some(bound) if bound.is_of_server => format!(
                "the highest rate that keeps {condition}: {found}; not kept at {} req/s",
                thousands(bound.rate)
            ),
            Some(_) => format!("{condition} is kept at {found}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Searches with windows that `measure` makes up from their rate and their number; returns the number
    /// of windows too.
    fn simulated(mut measure: impl FnMut(f64, usize) -> Outcome) -> (Search, usize) {
        let mut search = Search::new(0.0);
        let mut windows = 0;
        while let Some(rate) = search.next() {
            search.tried(rate, &measure(rate, windows));
            windows += 1;
        }
        (search, windows)
    }

    fn outcome(rate: f64, is_kept: bool) -> Outcome {
        if is_kept {
            Outcome::Kept(rate)
        } else {
            Outcome::Broken("not met")
        }
    }

    fn disturbed() -> Outcome {
        Outcome::Disturbed(vec!["CLIENT_STARVED"])
    }

    /// Searches against a server that keeps its condition up to `limit`, but for the steps that are
    /// `hiccups`.
    fn search(limit: f64, hiccups: &[usize]) -> (Search, usize) {
        simulated(|rate, window| outcome(rate, rate <= limit && !hiccups.contains(&window)))
    }

    fn bounds(search: &Search) -> (f64, f64) {
        let lowest = search.bounds.last().unwrap();
        (search.fresh.unwrap().rate, lowest.rate)
    }

    /// Returns true if the search ended between rates that are close, around this one.
    fn is_bracketed(search: &Search, limit: f64) -> bool {
        let (kept, bound) = bounds(search);
        kept <= limit && limit < bound && bound / kept <= 1.0 + CLOSE
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
        let (search, _) = simulated(|rate, _| outcome(rate, p99(rate, sigma, &mut random) < 1.0));
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
            assert!(
                is_bracketed(&search, limit),
                "{limit}: {:?}",
                bounds(&search)
            );
            assert_eq!(search.end(), End::Found);
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
            search.tried(rate, &outcome(rate, kept));
            assert_eq!(search.next(), Some(next));
        }
        for (kept, next) in [(false, 3000.0), (true, 3000.0), (true, 3500.0)] {
            let rate = search.next().unwrap();
            search.tried(rate, &outcome(rate, kept));
            assert_eq!(search.next(), Some(next));
        }
    }

    #[test]
    fn a_bad_moment_is_noticed_when_its_rate_is_tried_again() {
        // The steps at 8,000 fail, though the server keeps up to 9,876.
        let (search, _) = search(9876.0, &[3, 4]);
        assert!(is_bracketed(&search, 9876.0), "{:?}", bounds(&search));
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
        assert_eq!(search.end(), End::NotFound);
        assert!(
            search
                .result(&condition)
                .starts_with("no rate that keeps p99<1ms was confirmed")
        );
    }

    #[test]
    fn what_never_or_always_holds_ends_too() {
        assert!(search(0.0, &[]).0.kept.is_none());
        assert!(search(f64::INFINITY, &[]).0.bounds.is_empty());
    }

    #[test]
    fn a_disturbed_window_is_measured_again_and_not_held_against_the_server() {
        // Never three in a row.
        let (sound, fewest) = search(9876.0, &[]);
        let (search, windows) = simulated(|rate, window| match window % 4 {
            0 | 1 => disturbed(),
            _ => outcome(rate, rate <= 9876.0),
        });
        assert_eq!(bounds(&search), bounds(&sound));
        assert_eq!(search.end(), End::Found);
        assert_eq!(windows - search.disturbed, fewest);
        let text = search.result(&"p99<1ms".parse().unwrap());
        let told = format!(
            "; {} disturbed windows did not count (CLIENT_STARVED)",
            search.disturbed
        );
        assert!(
            text.ends_with(&told) && text.contains("; not kept at"),
            "{text}"
        );
    }

    #[test]
    fn a_disturbance_that_passes_is_forgotten() {
        for from in 0..40 {
            // As long as two rates take.
            let disturbance = from..from + 2 * IN_A_ROW;
            let (search, _) = simulated(|rate, window| {
                if window > 0 && disturbance.contains(&window) {
                    disturbed()
                } else {
                    outcome(rate, rate <= 9876.0)
                }
            });
            let kept = search.fresh.unwrap().rate;
            assert!(
                kept > 9876.0 * (1.0 - 3.0 * LOWERED) && kept <= 9876.0,
                "{from}: {kept}"
            );
        }
    }

    #[test]
    fn where_the_client_is_the_limit_the_end_says_so_and_how_far_it_got() {
        let (search, windows) = simulated(|rate, _| {
            if rate > 5000.0 {
                disturbed()
            } else {
                outcome(rate, rate <= 9876.0)
            }
        });
        assert!(is_bracketed(&search, 5000.0), "{:?}", bounds(&search));
        assert_eq!(search.end(), End::Machine);
        assert!(windows <= 60, "{windows}");
        let text = search.result(&"p99<1ms".parse().unwrap());
        let (kept, bound) = bounds(&search);
        let kept = format!(
            "p99<1ms is kept at {} req/s, in 9 of 9 fresh",
            thousands(kept)
        );
        assert!(text.starts_with(&kept), "{text}");
        let limit = format!(
            "; {} req/s could not be measured, which says nothing about the server: the client or the server waited for CPUs",
            thousands(bound)
        );
        assert!(text.contains(&limit), "{text}");
    }

    #[test]
    fn the_rate_found_is_lowered_where_its_fresh_windows_are_disturbed() {
        let (sound, windows) = search(9876.0, &[]);
        let (found, _) = bounds(&sound);
        let seeking = windows - CONFIRMING;
        let (search, _) = simulated(|rate, window| {
            if window >= seeking && rate >= found {
                disturbed()
            } else {
                outcome(rate, rate <= 9876.0)
            }
        });
        assert_eq!(search.found(), Some(found * (1.0 - LOWERED)));
        assert_eq!((bounds(&search).1, search.end()), (found, End::Machine));
    }

    #[test]
    fn a_rate_that_the_server_did_not_keep_stays_its_limit() {
        let (sound, windows) = search(9876.0, &[]);
        // The last windows before the fresh ones try it again.
        let again = windows - CONFIRMING - AGREEING;
        let (search, _) = simulated(|rate, window| {
            if (again..again + IN_A_ROW).contains(&window) {
                disturbed()
            } else {
                outcome(rate, rate <= 9876.0)
            }
        });
        assert_eq!(bounds(&search), bounds(&sound));
        assert_eq!((search.disturbed, search.end()), (IN_A_ROW, End::Found));
    }

    #[test]
    fn without_an_undisturbed_window_the_search_ends_at_once() {
        let (search, windows) = simulated(|_, _| disturbed());
        assert_eq!((windows, search.end()), (IN_A_ROW, End::Machine));
        let text = search.result(&"p99<1ms".parse().unwrap());
        assert_eq!(
            text,
            "the search ended before it found a rate; 1,000 req/s could not be measured, which says nothing about the \
             server: the client or the server waited for CPUs that other programs had; end these and search again, or \
             accept it with --allow CLIENT_STARVED; 3 disturbed windows did not count (CLIENT_STARVED)"
        );
        // Or once there are none any more.
        let (search, windows) = simulated(|rate, window| {
            if window < 10 {
                outcome(rate, true)
            } else {
                disturbed()
            }
        });
        assert_eq!((windows, search.end()), (10 + MOST_DISTURBED, End::Machine));
    }
}
