//! A test for response times that change though the load is steady.

use crate::{
    course::Slot,
    statistics::{
        change_point::{Change, stretch},
        outliers::median,
    },
};

/// Maximum and minimum number of blocks of a series.
const MOST_BLOCKS: usize = 40;
const FEWEST_BLOCKS: usize = 20;

/// Minimum mean number of requests in a block.
const REQUESTS: u64 = 10;

/// A response time is another one if it differs by more than this share, and by more nanoseconds than
/// these.
const SHARE: f64 = 0.25;
const NANOSECONDS: f64 = 100_000.0;

/// The value beyond which the statistic counts as a change, by simulation of queues (see the tests).
const CRITICAL: f64 = 3.0;

/// The longest distance at which the correlation of blocks is looked at.
const LAGS: usize = 2;

/// A correlation estimated from n blocks, between which two levels were fitted, is too small by about
/// this number over n.
const BIAS: f64 = 4.0;

/// The largest correlation: one of 1 has no long run.
const MOST_CORRELATED: f64 = 0.95;

/// A stretch of a window in which requests took longer, or shorter, than in the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// Its first slot.
    pub from: usize,
    /// The slot after its last one.
    pub to: usize,
    /// The median of its blocks' mean response times, in nanoseconds.
    pub inside: f64,
    /// That of the rest.
    pub outside: f64,
}

/// Returns the stretch of an open loop's window whose response times differ most from the rest, if they
/// differ by over 25 % and 100 us, and chance explains that in about 1 % of steady queues at most.
///
/// Its series is that of the logarithms of the mean response times of the requests that were due in
/// blocks of 100 ms or more. The statistic is that of [`change`](super::change_point::change). Response
/// times of a queue are correlated, over times that may be as long as a slope of interest. So the
/// deviation that it is divided by is that of an autoregressive series (Andrews and Monahan, "An improved
/// heteroskedasticity and autocorrelation consistent covariance matrix estimator", 1992), whose noise is
/// that of second differences, in which a slope has no part.
pub fn slowdown(slots: &[Slot]) -> Option<Slowdown> {
    let (length, times) = blocks(slots)?;
    let series: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let n = series.len() as f64;
    let (range, change) = stretch(&series)?;
    if change.is_short(series.len())
        || range <= CRITICAL * long_run_deviation(&series, &change) * n.sqrt()
    {
        return None;
    }
    let Change { from, to, .. } = change;
    // Slots that are left over belong to the last block.
    let end = |block: usize| {
        if block < times.len() {
            block * length
        } else {
            slots.len()
        }
    };
    let found = Slowdown {
        from: from * length,
        to: end(to),
        inside: median(times[from..to].iter().copied()),
        outside: median(times[..from].iter().chain(&times[to..]).copied()),
    };
    let difference = (found.inside - found.outside).abs();
    let least = (SHARE * found.inside.min(found.outside)).max(NANOSECONDS);
    (difference > least).then_some(found)
}

/// Returns the number of slots in a block, and the mean response time of the requests that were due in
/// each block, in nanoseconds; `None` where there are too few of them.
fn blocks(slots: &[Slot]) -> Option<(usize, Vec<f64>)> {
    let mean = |slots: &[Slot]| {
        let due: u64 = slots.iter().map(|slot| slot.due).sum();
        let response: u64 = slots.iter().map(|slot| slot.response).sum();
        (due > 0).then(|| (response as f64 / due as f64).max(1.0))
    };
    // A block in which nothing was due is like the one before.
    let mut last = mean(slots)?;
    let due: u64 = slots.iter().map(|slot| slot.due).sum();
    let for_requests = (REQUESTS * slots.len() as u64).div_ceil(due) as usize;
    let length = for_requests.max(slots.len().div_ceil(MOST_BLOCKS));
    let mut times = Vec::new();
    for block in slots.chunks_exact(length) {
        last = mean(block).unwrap_or(last);
        times.push(last);
    }
    (times.len() >= FEWEST_BLOCKS).then_some((length, times))
}

/// Returns the standard deviation that sums of a series grow with that varies around two levels, or
/// changes slowly between them.
fn long_run_deviation(series: &[f64], change: &Change) -> f64 {
    let n = series.len() as f64;
    let correlation = correlation(&change.rest(series)) + BIAS / n;
    let correlation = correlation.min(MOST_CORRELATED);
    let is_near = |at: usize| at.abs_diff(change.from) <= 2 || at.abs_diff(change.to) <= 2;
    let second: Vec<f64> = (1..series.len() - 1)
        .filter(|at| !is_near(*at))
        .map(|at| series[at - 1] - 2.0 * series[at] + series[at + 1])
        .collect();
    let squares: f64 = second.iter().map(|value| value * value).sum();
    // Of an autoregressive series of variance v and correlation r, second differences have a variance of
    // 2 v (1 - r) (3 - r), and the long-run variance is v (1 + r) / (1 - r).
    let variance =
        squares / second.len() as f64 / (2.0 * (1.0 - correlation) * (3.0 - correlation));
    (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Returns the correlation of neighbours that the correlations at several distances suggest; at least 0.
fn correlation(rest: &[f64]) -> f64 {
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let at = |lag: usize| {
        let products = rest.iter().zip(&rest[lag..]).map(|(a, b)| a * b);
        (products.sum::<f64>() / squares)
            .max(0.0)
            .powf(1.0 / lag as f64)
    };
    (1..=LAGS).map(at).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::{
        statistics::{
            queue::response_times,
            simulation::{exponential, normal},
        },
        window::SLOT,
    };

    const MS: f64 = 1e6;

    /// Returns the slots of a window of this many seconds with requests at this rate, whose response times
    /// vary by a factor of e to the power of `noise`; `level` has those in milliseconds, by their due
    /// time as a share of the window.
    fn window(
        random: &mut ChaCha8Rng,
        (seconds, rate, noise): (u64, u64, f64),
        level: impl Fn(f64) -> f64,
    ) -> Vec<Slot> {
        let mut slots = vec![Slot::default(); seconds as usize * 10];
        let requests = seconds * rate;
        for number in 0..requests {
            let slot = &mut slots[(number * seconds * 10 / requests) as usize];
            let response = level(number as f64 / requests as f64) * (noise * normal(random)).exp();
            slot.due += 1;
            slot.response += (response * MS) as u64;
        }
        slots
    }

    /// Returns the slots of a queue of `servers` that are busy for a share `load` of the time, after a
    /// warm-up of 5 s, with exponential arrivals and services of this mean.
    fn queue(
        random: &mut ChaCha8Rng,
        seconds: u64,
        (servers, load, service): (usize, f64, f64),
    ) -> Vec<Slot> {
        const WARM_UP: u64 = 5_000_000_000;
        let end = (WARM_UP + seconds * 1_000_000_000) as f64;
        let mut now = 0.0;
        let mut requests = Vec::new();
        while now < end {
            requests.push((now as u64, (service * exponential(random)) as u64));
            now += service / (load * servers as f64) * exponential(random);
        }
        let mut slots = vec![Slot::default(); seconds as usize * 10];
        for ((arrival, _), response) in requests.iter().zip(response_times(&requests, servers)) {
            if let Some(since) = arrival.checked_sub(WARM_UP) {
                let slot = &mut slots[(since / SLOT) as usize];
                slot.due += 1;
                slot.response += response;
            }
        }
        slots
    }

    #[test]
    fn steady_queues_seldom_show_a_change() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for seconds in [5, 10, 30] {
            for (servers, load) in [(1, 0.3), (1, 0.7), (8, 0.7)] {
                for milliseconds in [5.0, 20.0, 50.0] {
                    let kind = (servers, load, milliseconds * MS);
                    let alarms = (0..300)
                        .filter(|_| slowdown(&queue(&mut random, seconds, kind)).is_some())
                        .count();
                    assert!(alarms <= 3, "{seconds} s of {kind:?}: {alarms} of 300");
                }
            }
        }
    }

    #[test]
    fn independent_times_seldom_show_a_change() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for seconds in [5, 10, 30] {
            for (rate, noise) in [(50, 1.0), (100, 0.1), (1000, 1.5)] {
                let mut steady = || window(&mut random, (seconds, rate, noise), |_| 20.0);
                let alarms = (0..500).filter(|_| slowdown(&steady()).is_some()).count();
                assert!(alarms <= 5, "{seconds} s at {rate}/s: {alarms} of 500");
            }
        }
    }

    #[test]
    fn a_server_that_slows_is_found_where_it_does() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for load in [
            (5, 50, 0.05),
            (5, 1000, 0.5),
            (10, 100, 0.2),
            (30, 100, 0.3),
        ] {
            for at in [0.3, 0.5, 0.8] {
                let level = |share: f64| if share < at { 20.0 } else { 40.0 };
                let slots = window(&mut random, load, level);
                let found = slowdown(&slots).unwrap();
                let changed = if found.from == 0 {
                    found.to
                } else {
                    found.from
                };
                let expected = at * slots.len() as f64;
                let levels = [found.inside / MS, found.outside / MS].map(f64::round);
                assert!(
                    (changed as f64 - expected).abs() <= 5.0,
                    "{load:?}: {found:?}"
                );
                let ratio = levels[0].max(levels[1]) / levels[0].min(levels[1]);
                assert!((ratio - 2.0).abs() < 0.15, "{load:?}: {found:?}");
            }
        }
    }

    #[test]
    fn a_server_that_warms_up_over_3_s_is_found() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        for load in [
            (5, 50, 0.05),
            (5, 1000, 0.2),
            (10, 100, 0.1),
            (10, 1000, 0.6),
            (30, 100, 0.1),
        ] {
            for slow in [40.0, 60.0] {
                let end = 3.0 / load.0 as f64;
                let level = |share: f64| 20.0 + (slow - 20.0) * (1.0 - share / end).max(0.0);
                let found = slowdown(&window(&mut random, load, level)).unwrap();
                let is_slow = found.inside > found.outside;
                assert_eq!(is_slow, found.from == 0, "{load:?}: {found:?}");
            }
        }
    }

    #[test]
    fn a_small_change_and_a_short_one_are_none() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut is_found = |before: f64, after: f64, from: f64, to: f64| {
            let level = |share: f64| {
                if (from..to).contains(&share) {
                    after
                } else {
                    before
                }
            };
            slowdown(&window(&mut random, (10, 1000, 0.1), level)).is_some()
        };
        assert!(is_found(20.0, 25.5, 0.5, 1.0) && !is_found(20.0, 24.5, 0.5, 1.0));
        assert!(is_found(0.1, 0.204, 0.5, 1.0) && !is_found(0.1, 0.196, 0.5, 1.0));
        assert!(is_found(20.0, 80.0, 0.3, 0.36) && !is_found(20.0, 80.0, 0.3, 0.33));
        // Nine requests in a block of 100 ms, or 19 blocks, are too few.
        let mut of = |load| {
            slowdown(&window(&mut random, load, |share| {
                20.0 + 40.0 * share.round()
            }))
        };
        assert!(of((2, 100, 0.01)).is_some() && of((2, 90, 0.01)).is_none());
        assert!(of((1, 1000, 0.01)).is_none() && slowdown(&[]).is_none());
        assert!(slowdown(&[Slot::default(); 50]).is_none());
    }
}
