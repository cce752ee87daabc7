//! Error bars within one run: the variation to expect if it were repeated under the same
//! conditions.

use serde::{Deserialize, Serialize};

use crate::{counts::Counts, statistics::moments::Moments};

/// Minimum number of batches, and of seconds, from which variation is estimated.
const FEWEST: usize = 10;

/// The largest correlation of neighbouring batches that still counts as none.
const UNCORRELATED: f64 = 0.2;

/// The largest half of an interval of ranks, as a share of the distance to the nearer end.
const LARGEST: f64 = 0.5;

/// 95 % confidence intervals; absent where the run is too short for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Precision {
    /// Half the width of the rate's interval, in requests/s: batch means, by Student's t.
    #[serde(rename = "rate_half_width_per_s")]
    pub rate_half_width: Option<f64>,
    /// The number of batches that the rate's interval comes from.
    #[serde(default)]
    pub rate_batches: Option<u64>,
    /// The number of blocks that the intervals of quantiles come from.
    #[serde(rename = "interval_blocks", default)]
    pub blocks: Option<u64>,
}

impl Precision {
    /// Returns the precision, and the intervals of the median and the 99th percentile, from the
    /// rates in short stretches of equal length and the response times in each second.
    pub fn of(rates: &[f64], seconds: &[&Counts]) -> (Self, [Option<[u64; 2]>; 2]) {
        let (rate, batches) = batch_means(rates).unzip();
        let blocks = (seconds.len() >= FEWEST).then_some(seconds.len() as u64);
        let precision = Self {
            rate_half_width: rate,
            rate_batches: batches,
            blocks,
        };
        (
            precision,
            [0.5, 0.99].map(|q| quantile_interval(seconds, q)),
        )
    }
}

/// Returns half the width of the 95 % interval of a series' mean, and the number of batches that it
/// comes from.
///
/// Neighbouring values may be correlated, so that the mean varies more than independent values
/// would have it. The series is cut into batches that grow until their means are not correlated any
/// more (Law and Kelton, "Simulation Modeling and Analysis", chapter 9); what correlation is left,
/// with its bias of about 2 / n, widens the interval. `None` where fewer than ten such batches are
/// left: the series is too short to tell.
fn batch_means(series: &[f64]) -> Option<(f64, u64)> {
    let mut length = 1;
    loop {
        let count = series.len() / length;
        if count < FEWEST {
            return None;
        }
        let batches: Vec<f64> = series[series.len() - count * length..]
            .chunks_exact(length)
            .map(|batch| batch.iter().sum::<f64>() / length as f64)
            .collect();
        let correlation = (correlation(&batches) + 2.0 / count as f64).max(0.0);
        if correlation <= UNCORRELATED.max(2.0 / count as f64) {
            let widened = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
            let half = Moments::of(&batches)?.half_width(1)?;
            return Some((half * widened, count as u64));
        }
        // By a half, but one at least.
        length += length.div_ceil(2);
    }
}

/// Returns the correlation of neighbours in a series; 0 where it does not vary.
fn correlation(series: &[f64]) -> f64 {
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    let squares: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = series
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// Returns the interval of the quantile `q`, from 0 to 1, over all seconds (Woodruff, "Confidence
/// intervals for medians and other position measures", 1952).
///
/// The share of samples beyond the quantile varies from second to second; its standard error, with
/// the correlation of neighbouring seconds, gives an interval of ranks, whose ends are quantiles
/// again. `None` where that reaches too far into the tail: too few independent times lie there.
fn quantile_interval(seconds: &[&Counts], q: f64) -> Option<[u64; 2]> {
    let mut all = Counts::default();
    for second in seconds {
        all.add(second);
    }
    let value = all.quantile(q)?;
    let beyond = |counts: &Counts| -> u64 {
        let tail = counts.iter().filter(|(time, _)| *time > value);
        tail.map(|(_, count)| count).sum()
    };
    let share = beyond(&all) as f64 / all.len() as f64;
    let deviations: Vec<f64> = seconds
        .iter()
        .map(|second| beyond(second) as f64 - share * second.len() as f64)
        .collect();
    let (half, _) = batch_means(&deviations)?;
    let half = half * seconds.len() as f64 / all.len() as f64;
    let nearer = q.min(1.0 - q);
    if half > nearer * LARGEST {
        return None;
    }
    Some([all.quantile(q - half)?, all.quantile(q + half)?])
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;
    use crate::{
        histogram::{histogram, record},
        statistics::simulation::{exponential, normal},
    };

    /// A series of 300 with this correlation of neighbours, a mean of 100 and a deviation of 10.
    fn series(random: &mut ChaCha8Rng, correlation: f64) -> Vec<f64> {
        let mut last = normal(random);
        (0..300)
            .map(|_| {
                last = correlation * last + (1.0 - correlation.powi(2)).sqrt() * normal(random);
                100.0 + 10.0 * last
            })
            .collect()
    }

    /// Thirty seconds of response times, in microseconds, at a server that is busy for 80 % of the
    /// time: Poisson arrivals of 400/s, exponential service.
    fn queue_times(random: &mut ChaCha8Rng) -> Vec<Counts> {
        let (mut now, mut free) = (-2.0, -2.0_f64);
        let mut seconds = vec![histogram(); 30];
        while now < 30.0 {
            now += exponential(random) / 400.0;
            free = free.max(now) + exponential(random) / 500.0;
            if (0.0..30.0).contains(&now) {
                record(&mut seconds[now as usize], ((free - now) * 1e6) as u64);
            }
        }
        seconds.iter().map(Counts::from).collect()
    }

    /// Thirty seconds of 300 independent response times each, lognormal with a sigma of 1.5.
    fn lognormal_times(random: &mut ChaCha8Rng) -> Vec<Counts> {
        let mut seconds = vec![histogram(); 30];
        for second in &mut seconds {
            for _ in 0..300 {
                record(second, (1e6 * (1.5 * normal(random)).exp()) as u64);
            }
        }
        seconds.iter().map(Counts::from).collect()
    }

    /// The 95 % interval of a mean holds it in 92..98 % of simulated runs, however neighbours are
    /// correlated; at least 80 % of runs have one.
    #[test]
    fn the_rates_interval_covers_its_mean() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for correlation in [0.0, 0.3, 0.7] {
            let (mut shown, mut held) = (0, 0);
            for _ in 0..2000 {
                let series = series(&mut random, correlation);
                let mean = series.iter().sum::<f64>() / 300.0;
                if let Some((half, _)) = batch_means(&series) {
                    shown += 1;
                    held += usize::from((mean - 100.0).abs() <= half);
                }
            }
            let share = held as f64 / f64::from(shown);
            assert!(shown >= 1600, "{correlation}: {shown} of 2000");
            assert!((0.92..=0.98).contains(&share), "{correlation}: {share}");
        }
    }

    /// The same of quantiles: those of a queue at 80 % load, and of a long tail. Thirty seconds
    /// hold too few independent times beyond the queue's p99, which mostly has no interval. The
    /// true ones are known: 2.3026 and 4.6052 mean times of an M/M/1 queue of 10 ms mean
    /// (Kleinrock, "Queueing Systems", volume 1, section 3.2), and exp(0) and exp(1.5 * 2.3263).
    #[test]
    fn the_intervals_of_quantiles_cover_them() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let queue = [10_000.0 * 2f64.ln(), 10_000.0 * 100f64.ln()];
        let tail = [1e6, 1e6 * (1.5_f64 * 2.326_348).exp()];
        for (name, truth) in [("queue", queue), ("tail", tail)] {
            let (mut missed, mut shown) = ([0_u32; 2], [0_u32; 2]);
            for _ in 0..2000 {
                let seconds = match name {
                    "queue" => queue_times(&mut random),
                    _ => lognormal_times(&mut random),
                };
                let (_, intervals) = Precision::of(&[], &seconds.iter().collect::<Vec<_>>());
                for (at, interval) in intervals.into_iter().enumerate() {
                    if let Some([low, high]) = interval {
                        shown[at] += 1;
                        let holds = (low as f64..=high as f64).contains(&truth[at]);
                        missed[at] += u32::from(!holds);
                    }
                }
            }
            let few = |at: usize| f64::from(missed[at]) <= 0.08 * f64::from(shown[at]);
            // A queue's p50, and both quantiles of the long tail, mostly have one.
            assert!(shown[0] >= 1600 && (name == "queue" || shown[1] >= 1600));
            assert!(few(0) && few(1), "{name}: {missed:?} of {shown:?}");
        }
    }

    #[test]
    fn a_short_run_has_no_interval() {
        assert_eq!(
            Precision::of(&[1.0; 9], &[]),
            (Precision::default(), [None, None])
        );
        assert_eq!(batch_means(&[7.0; 30]), Some((0.0, 30)));
        // A trend is correlated at any length.
        let rising: Vec<f64> = (0..300).map(f64::from).collect();
        assert_eq!(batch_means(&rising), None);
    }
}
