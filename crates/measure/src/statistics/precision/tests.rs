use std::{collections::BTreeMap, fmt, ops::Range};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::*;
use crate::statistics::simulation::{exponential, normal, uniform};

/// A run's rates are simulated around this level, in requests/s.
const LEVEL: f64 = 1000.0;

/// The standard deviation of independent noise of a slot's rate.
const NOISE: f64 = 20.0;

/// Windows of 5, 10, 30 and 60 s, in slots. A window seldom begins with a slot.
const WINDOWS: [usize; 4] = [50, 99, 299, 599];

/// A kind of run whose mean rate is known.
#[derive(Debug, Clone, Copy)]
enum Rates {
    /// Independent slots.
    Independent,
    /// Few requests: each slot has this number on average, by Poisson's law.
    Few(f64),
    /// An autoregressive series with this correlation of neighbours.
    Correlated(f64),
    /// The same with independent noise of the same variance on top.
    CorrelatedBelowNoise(f64),
    /// Two levels, 20 % apart, that alternate after this number of seconds, from a random phase.
    Levels(f64),
    /// The same after times that are spread evenly from half of it to one and a half.
    UnevenLevels(f64),
    /// The same after exponentially distributed times.
    RandomLevels(f64),
    /// Pauses of 300 ms, from 2 to 6 s apart.
    Pauses,
    /// Pauses of 300 ms, with exponentially distributed times of this mean between them.
    RandomPauses(f64),
    /// A drift by this many standard deviations of a slot in the whole window.
    Drift(f64),
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Independent => write!(f, "independent"),
            Self::Few(mean) => write!(f, "independent, {mean} request in 100 ms"),
            Self::Correlated(by) => write!(f, "AR(1) of {by}"),
            Self::CorrelatedBelowNoise(by) => write!(f, "AR(1) of {by} below as much noise"),
            Self::Levels(seconds) => write!(f, "two levels, {seconds} s each"),
            Self::UnevenLevels(seconds) => {
                let [least, most] = [0.5, 1.5].map(|times| times * seconds);
                write!(f, "two levels, {least} to {most} s each")
            }
            Self::RandomLevels(seconds) => write!(f, "two levels, random, {seconds} s on average"),
            Self::Pauses => write!(f, "pauses of 300 ms, 2 to 6 s apart"),
            Self::RandomPauses(seconds) => {
                write!(f, "pauses of 300 ms, random, {seconds} s apart on average")
            }
            Self::Drift(by) => write!(f, "drift by {by} standard deviations"),
        }
    }
}

impl Rates {
    /// Returns the rates of `n` slots.
    fn slots(self, random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
        match self {
            Self::Independent => noise(random, n, 0.0),
            Self::Few(mean) => {
                let count = |random: &mut ChaCha8Rng| {
                    let mut sum = exponential(random);
                    let mut count = 0.0;
                    while sum < mean {
                        sum += exponential(random);
                        count += LEVEL / mean;
                    }
                    count
                };
                (0..n).map(|_| count(random)).collect()
            }
            Self::Correlated(by) => noise(random, n, by),
            Self::CorrelatedBelowNoise(by) => {
                let slow = noise(random, n, by);
                slow.iter()
                    .map(|rate| rate + NOISE * normal(random))
                    .collect()
            }
            Self::Levels(seconds) => levels(random, n, |_| seconds),
            Self::UnevenLevels(seconds) => {
                levels(random, n, |random| seconds * (0.5 + uniform(random)))
            }
            Self::RandomLevels(seconds) => {
                levels(random, n, |random| seconds * exponential(random))
            }
            Self::Pauses => pauses(random, n, |random| 2.0 + 4.0 * uniform(random)),
            Self::RandomPauses(seconds) => {
                pauses(random, n, |random| seconds * exponential(random))
            }
            Self::Drift(by) => {
                let flat = noise(random, n, 0.0);
                let slope = by * NOISE / n as f64;
                flat.iter()
                    .enumerate()
                    .map(|(at, rate)| rate + slope * (at as f64 + 0.5 - n as f64 / 2.0))
                    .collect()
            }
        }
    }

    /// Returns the mean rate of a long run, or of many like this one where the rate drifts.
    fn mean(self) -> f64 {
        match self {
            Self::Pauses => LEVEL * 4.0 / 4.3,
            Self::RandomPauses(seconds) => LEVEL * seconds / (seconds + 0.3),
            _ => LEVEL,
        }
    }
}

/// Rates of `n` slots, of which neighbours have this correlation.
fn noise(random: &mut ChaCha8Rng, n: usize, correlation: f64) -> Vec<f64> {
    let mut last = normal(random);
    (0..n)
        .map(|_| {
            last = correlation * last + (1.0 - correlation.powi(2)).sqrt() * normal(random);
            LEVEL + NOISE * last
        })
        .collect()
}

/// Returns the share of each of `n` slots that lies in the second of two states, which last for so
/// many seconds in turn.
fn states(
    random: &mut ChaCha8Rng,
    n: usize,
    mut lasts: impl FnMut(&mut ChaCha8Rng, bool) -> f64,
) -> Vec<f64> {
    let mut shares = vec![0.0; n];
    let mut at = -30.0 - 10.0 * uniform(random);
    let mut is_second = uniform(random) < 0.5;
    while at < n as f64 / 10.0 {
        let until = at + lasts(random, is_second);
        if is_second {
            let slots = (at * 10.0).max(0.0)..(until * 10.0).clamp(0.0, n as f64);
            for (slot, share) in shares.iter_mut().enumerate() {
                let from = slots.start.max(slot as f64);
                *share += (slots.end.min(slot as f64 + 1.0) - from).max(0.0);
            }
        }
        at = until;
        is_second = !is_second;
    }
    shares
}

fn levels(
    random: &mut ChaCha8Rng,
    n: usize,
    mut lasts: impl FnMut(&mut ChaCha8Rng) -> f64,
) -> Vec<f64> {
    let upper = states(random, n, |random, _| lasts(random));
    upper
        .iter()
        .map(|share| LEVEL * (0.9 + 0.2 * share) + NOISE * normal(random))
        .collect()
}

fn pauses(
    random: &mut ChaCha8Rng,
    n: usize,
    mut gap: impl FnMut(&mut ChaCha8Rng) -> f64,
) -> Vec<f64> {
    let paused = states(
        random,
        n,
        |random, is_pause| {
            if is_pause { 0.3 } else { gap(random) }
        },
    );
    paused
        .iter()
        .map(|share| (LEVEL + NOISE * normal(random)) * (1.0 - share))
        .collect()
}

/// The runs that had an interval, and in which it held the mean.
#[derive(Debug, Clone, Copy, Default)]
struct Coverage {
    runs: u32,
    shown: u32,
    held: u32,
}

impl Coverage {
    fn add(&mut self, interval: Option<bool>) {
        self.runs += 1;
        self.shown += u32::from(interval.is_some());
        self.held += u32::from(interval == Some(true));
    }

    fn shown(self) -> f64 {
        f64::from(self.shown) / f64::from(self.runs)
    }

    /// Returns true if it is shown in 3 % of runs at most, or may hold in 93 % of those that show it,
    /// to within two standard errors.
    fn is_honest(self) -> bool {
        let shown = f64::from(self.shown);
        let least = 0.93 * shown - 2.0 * (0.93 * 0.07 * shown).sqrt();
        self.shown() <= 0.03 || f64::from(self.held) >= least
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = 100.0 * f64::from(self.held) / f64::from(self.shown);
        match self.shown() * 100.0 {
            0.0 => write!(f, "-"),
            shown => write!(f, "{held:.1} of {shown:.1}"),
        }
    }
}

/// Simulates windows of so many slots.
fn coverage(rates: Rates, slots: usize, runs: u32) -> Coverage {
    let mut random = ChaCha8Rng::seed_from_u64(slots as u64);
    let mut coverage = Coverage::default();
    for _ in 0..runs {
        let series = rates.slots(&mut random, slots);
        let mean = Moments::of(&series).unwrap().mean;
        let half = Precision::of(&series, &[]).0.rate_half_width;
        coverage.add(half.map(|half| (mean - rates.mean()).abs() <= half));
    }
    coverage
}

/// Each window's share of runs with an interval, in per cent.
type Shown = [Range<u32>; 4];

const NEVER: Range<u32> = 0..1;
const SELDOM: Range<u32> = 0..4;
const MOSTLY: Range<u32> = 90..101;

/// A rate's interval holds where it is shown, and is shown where the window is long enough.
#[test]
fn the_rates_interval_covers_its_mean() {
    let cases: [(Rates, Shown); 10] = [
        (Rates::Independent, [NEVER, 95..101, 95..101, 95..101]),
        (Rates::Few(1.0), [NEVER, 95..101, 95..101, 95..101]),
        (Rates::Correlated(0.5), [NEVER, MOSTLY, 95..101, 95..101]),
        (Rates::Correlated(0.9), [NEVER, SELDOM, 30..50, MOSTLY]),
        (Rates::Correlated(0.99), [NEVER, SELDOM, SELDOM, SELDOM]),
        (Rates::UnevenLevels(1.0), [NEVER, NEVER, MOSTLY, MOSTLY]),
        (Rates::Levels(5.0), [NEVER, NEVER, NEVER, 80..101]),
        (Rates::Pauses, [NEVER, SELDOM, NEVER, NEVER]),
        (Rates::Drift(2.0), [NEVER, 10..25, NEVER, NEVER]),
        (Rates::Drift(6.0), [NEVER, NEVER, NEVER, NEVER]),
    ];
    for (rates, shown) in cases {
        for (slots, expected) in WINDOWS.into_iter().zip(shown) {
            let found = coverage(rates, slots, 400);
            let percent = (found.shown() * 100.0) as u32;
            assert!(
                expected.contains(&percent) && found.is_honest(),
                "{rates}, {slots} slots: {found}"
            );
        }
    }
}

/// Prints the first table of docs/methodology.md.
#[test]
#[ignore = "minutes of simulations"]
fn table_of_coverage_of_rates() {
    let rows = [
        Rates::Independent,
        Rates::Few(1.0),
        Rates::Correlated(0.5),
        Rates::Correlated(0.7),
        Rates::Correlated(0.9),
        Rates::Correlated(0.99),
        Rates::Levels(1.0),
        Rates::UnevenLevels(1.0),
        Rates::RandomLevels(1.0),
        Rates::Levels(5.0),
        Rates::UnevenLevels(5.0),
        Rates::RandomLevels(5.0),
        Rates::Pauses,
        Rates::RandomPauses(5.0),
        Rates::Drift(2.0),
        Rates::Drift(6.0),
        Rates::CorrelatedBelowNoise(0.9),
        Rates::CorrelatedBelowNoise(0.99),
    ];
    for rates in rows {
        let cells = WINDOWS.map(|slots| format!(" {} |", coverage(rates, slots, 4000)));
        println!("| {rates} |{}", cells.concat());
    }
}

/// Prints the second table of docs/methodology.md.
#[test]
#[ignore = "minutes of simulations"]
fn table_of_coverage_of_quantiles() {
    for times in Times::ALL {
        let cells = [30, 60, 120, 240].map(|seconds| {
            let [p50, p99] = coverage_of_quantiles(times, seconds, 800);
            format!(" {p50} | {p99} |")
        });
        println!("| {times} |{}", cells.concat());
    }
}

/// A kind of response times whose quantiles are known.
#[derive(Debug, Clone, Copy)]
enum Times {
    /// A queue with Poisson arrivals of 200/s and exponential service, busy for this share of time.
    Queue(f64),
    /// 300 independent ones each second, lognormal with a sigma of 1.5.
    LongTail,
    /// 300 each second, lognormal with a sigma of 0.3, at two levels, 30 % apart, that alternate
    /// after 2.5 to 7.5 s.
    Levels,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(load) => write!(f, "M/M/1, 200/s, {:.0} % busy", load * 100.0),
            Self::LongTail => write!(f, "independent, lognormal, sigma 1.5"),
            Self::Levels => write!(f, "two levels, 2.5 to 7.5 s each"),
        }
    }
}

impl Times {
    const ALL: [Self; 5] = [
        Self::LongTail,
        Self::Queue(0.5),
        Self::Queue(0.8),
        Self::Queue(0.95),
        Self::Levels,
    ];

    /// Returns the true median and 99th percentile, in nanoseconds.
    fn quantiles(self) -> [f64; 2] {
        match self {
            // Kleinrock, "Queueing Systems", volume 1, section 3.2.
            Self::Queue(load) => {
                let mean = 1e9 / (200.0 / load - 200.0);
                [2.0, 100.0].map(|inverse: f64| mean * inverse.ln())
            }
            Self::LongTail => [1e6, 1e6 * (1.5_f64 * 2.326_348).exp()],
            // The mixture's, solved numerically.
            Self::Levels => [1e6 * LEVELS[0], 1e6 * LEVELS[1]],
        }
    }

    /// Returns the times of so many seconds.
    fn seconds(self, random: &mut ChaCha8Rng, n: usize) -> Vec<Counts> {
        let mut seconds = vec![BTreeMap::<u64, u64>::new(); n];
        let mut add = |second: f64, time: f64| {
            // By steps of 0.4 %: fewer values are added up faster.
            let time = (250.0 * time.ln()).ceil() / 250.0;
            *seconds[second as usize]
                .entry(time.exp() as u64)
                .or_default() += 1;
        };
        match self {
            Self::Queue(load) => {
                let (mut now, mut free) = (-20.0, -20.0_f64);
                while now < n as f64 {
                    now += exponential(random) / 200.0;
                    free = free.max(now) + exponential(random) * load / 200.0;
                    if (0.0..n as f64).contains(&now) {
                        add(now, 1e9 * (free - now));
                    }
                }
            }
            Self::LongTail => {
                for number in 0..n * 300 {
                    add(number as f64 / 300.0, 1e6 * (1.5 * normal(random)).exp());
                }
            }
            Self::Levels => {
                let upper = states(random, n * 10, |random, _| 2.5 + 5.0 * uniform(random));
                for number in 0..n * 300 {
                    let is_upper = uniform(random) < upper[number / 30];
                    let level = if is_upper { 1.3e6 } else { 1e6 };
                    add(number as f64 / 300.0, level * (0.3 * normal(random)).exp());
                }
            }
        }
        seconds
            .into_iter()
            .map(|second| Counts::from(second.into_iter().collect::<Vec<_>>()))
            .collect()
    }
}

/// The median and the 99th percentile of two lognormal distributions in equal parts, with medians of
/// 1 and 1.3 and a sigma of 0.3.
const LEVELS: [f64; 2] = [1.140_175, 2.431_023];

/// The coverage of p50 and p99.
fn coverage_of_quantiles(times: Times, seconds: usize, runs: u32) -> [Coverage; 2] {
    let mut random = ChaCha8Rng::seed_from_u64(seconds as u64);
    let mut coverage = [Coverage::default(); 2];
    for _ in 0..runs {
        let seconds = times.seconds(&mut random, seconds);
        let (_, intervals) = Precision::of(&[], &seconds.iter().collect::<Vec<_>>());
        for (at, interval) in intervals.into_iter().enumerate() {
            let holds = |[low, high]: [u64; 2]| {
                // A time is rounded up by up to 0.4 %.
                (low as f64 * 0.996..=high as f64).contains(&times.quantiles()[at])
            };
            coverage[at].add(interval.map(holds));
        }
    }
    coverage
}

/// The same of quantiles: those of a long tail have one in a minute, the p99 of a busy queue has not.
#[test]
fn the_intervals_of_quantiles_cover_them() {
    let cases = [
        (Times::LongTail, [MOSTLY, MOSTLY]),
        (Times::Queue(0.8), [MOSTLY, SELDOM]),
        (Times::Levels, [NEVER, 0..10]),
    ];
    for (times, shown) in cases {
        let found = coverage_of_quantiles(times, 60, 100);
        for (found, expected) in found.into_iter().zip(shown) {
            let percent = (found.shown() * 100.0) as u32;
            assert!(
                expected.contains(&percent) && found.is_honest(),
                "{times}: {found}"
            );
        }
    }
}

#[test]
fn a_short_run_has_no_interval() {
    let noise = noise(&mut ChaCha8Rng::seed_from_u64(1), 120, 0.0);
    let of = |slots: usize| Precision::of(&noise[..slots], &[]).0.rate_half_width;
    assert!(of(98).is_none() && of(99).is_some());
    let of = |seconds: usize| Precision::of_rates(&noise[..seconds]).rate_half_width;
    assert!(of(59).is_none() && of(60).is_some());
    let flat = Precision::of_rates(&[7.0; 60]);
    assert_eq!(
        (flat.rate_half_width, flat.rate_batches),
        (Some(0.0), Some(57))
    );
    assert_eq!(
        Precision::of(&[1.0; 9], &[]),
        (Precision::default(), [None, None])
    );
}

/// The limits within which an interval is shown, seen in the series that have one: none lies beyond
/// a limit, and some lie within a twentieth of it.
#[test]
fn the_limits_are_where_they_are_said_to_be() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let near = |least: f64, limit: f64| (limit..limit * 1.05).contains(&least);
    let (mut times, mut of_quantiles, mut skewed) = (f64::MAX, f64::MAX, f64::MAX);
    let mut correlated = f64::MIN;
    for _ in 0..1500 {
        let series = noise(&mut random, 99, 0.6);
        let own = 99.0 / correlation_time(&series);
        if mean_interval(&series, CORRELATION_TIMES).is_some() {
            times = times.min(own);
            correlated = correlated.max(correlation(&batches(&series, 5)));
        }
        if mean_interval(&series, CORRELATION_TIMES_OF_QUANTILES).is_some() {
            of_quantiles = of_quantiles.min(own);
        }
        let series = Rates::Few(0.2).slots(&mut random, 99);
        if mean_interval(&series, CORRELATION_TIMES).is_some() {
            let own = 99.0 / correlation_time(&series);
            skewed = skewed.min(own / skewness(&series).powi(2));
        }
    }
    assert!(near(times, 16.0), "{times}");
    assert!(near(of_quantiles, 32.0), "{of_quantiles}");
    assert!(near(skewed, 25.0), "{skewed}");
    assert!((0.38..=0.4).contains(&correlated), "{correlated}");
}

/// Batches grow as 1, 2, 3, 5, 8, 12; there are ten of the longest at least, the last ones of the
/// series. Where correlation is long, these vary most.
#[test]
fn the_interval_is_students_of_the_batches_that_vary_most() {
    let series = Rates::CorrelatedBelowNoise(0.95).slots(&mut ChaCha8Rng::seed_from_u64(3), 120);
    for (n, length) in [(120, 12), (119, 8)] {
        let series = &series[..n];
        let means: Vec<f64> = series[n % length..]
            .chunks(length)
            .map(|batch| batch.iter().sum::<f64>() / length as f64)
            .collect();
        let expected = Moments::of(&means).unwrap().variance.unwrap()
            * length as f64
            * correlation_time(&means);
        let found = long_run_variance(series);
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
    let series = noise(&mut ChaCha8Rng::seed_from_u64(2), 99, 0.0);
    let (half, count) = mean_interval(&series, CORRELATION_TIMES).unwrap();
    let error = (long_run_variance(&series) / 99.0).sqrt();
    assert_eq!(count, (99.0 / correlation_time(&series)) as u64);
    let factor = t_quantile(count as f64 - 1.0).unwrap();
    assert!((half / error - factor).abs() < 1e-9, "{count}: {half}");
    // r is (0.5 + 1 / 60) / (1 - 3 / 60) for a correlation of 0.5.
    let series: Vec<f64> = noise(&mut ChaCha8Rng::seed_from_u64(1), 60, 0.5);
    let r = (correlation(&series) + 1.0 / 60.0) / 0.95;
    assert!((correlation_time(&series) - (1.0 + r) / (1.0 - r)).abs() < 1e-9);
    // Cubes of deviations from a mean of 0.25: skewness of one in four.
    let rare: Vec<f64> = (0..100_u32).map(|at| f64::from(at % 4 / 3)).collect();
    assert!((skewness(&rare) - 0.5 / 0.1875_f64.sqrt()).abs() < 1e-9);
    assert!(skewness(&[3.0; 9]).abs() < 1e-9);
}

/// An interval of ranks reaches half the way to the end of the tail at most.
#[test]
fn an_interval_of_ranks_stays_within_the_tail() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut widest = 0.0;
    for run in 0..600 {
        // Of 1,000 each second, 60 are slow in some seconds, each by another time.
        let share = f64::from(run % 20 + 10) / 60.0;
        let seconds: Vec<Counts> = (0..60_u64)
            .map(|second| {
                let slow = if uniform(&mut random) < share { 60 } else { 0 };
                let mut times = vec![(1000, 1000 - slow)];
                times.extend((0..slow).map(|number| (2000 + 60 * number + second, 1)));
                Counts::from(times)
            })
            .collect();
        let seconds: Vec<&Counts> = seconds.iter().collect();
        if let Some(([_, high], _)) = quantile_interval(&seconds, 0.99) {
            let beyond = |counts: &&Counts| counts.iter().filter(|(time, _)| *time > high).count();
            let beyond: usize = seconds.iter().map(beyond).sum();
            widest = f64::max(widest, 0.01 - beyond as f64 / 60_000.0);
        }
    }
    assert!((0.00475..=0.00502).contains(&widest), "{widest}");
}

#[test]
fn the_blocks_of_two_quantiles_are_the_fewer() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..5 {
        let seconds = Times::LongTail.seconds(&mut random, 60);
        let seconds: Vec<&Counts> = seconds.iter().collect();
        let own = [0.5, 0.99].map(|q| quantile_interval(&seconds, q).map(|(_, blocks)| blocks));
        let fewer = own.iter().flatten().min().copied();
        assert_eq!(Precision::of(&[], &seconds).0.blocks, fewer);
    }
}
