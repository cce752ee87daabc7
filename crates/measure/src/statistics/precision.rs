//! Error bars within one run: the variation to expect if it were repeated under the same
//! conditions.
//!
//! A run that is too short to know how its values depend on each other has none. What never happened
//! within the run is not in them.

use std::iter;

use serde::{Deserialize, Serialize};

use crate::{
    counts::Counts,
    statistics::{
        change_point::change,
        moments::{Moments, t_quantile},
    },
};

/// Minimum number of slots of 100 ms: those that lie wholly in ten seconds.
const FEWEST_SLOTS: usize = 99;

/// Minimum number of values of any series.
const FEWEST: usize = 60;

/// Minimum number of correlation times in a series of rates: fewer say too little about themselves.
const CORRELATION_TIMES: f64 = 16.0;

/// The same for the times of a quantile. Those of a busy queue are correlated over long times, too,
/// of which neighbours show little.
const CORRELATION_TIMES_OF_QUANTILES: f64 = 32.0;

/// Number of batches that a series is cut into to look for correlation over long times, and the
/// largest correlation of neighbours among them. Neighbours without any exceed it in 3 % of series.
const BATCHES: usize = 20;
const UNCORRELATED: f64 = 0.4;

/// Minimum number of independent values, as a multiple of the square of their skewness, at which a
/// mean is near enough to normal (Cochran, "Sampling Techniques", section 2.15).
const SKEWNESS: f64 = 25.0;

/// Minimum number of batches that a variance is taken from.
const FEWEST_BATCHES: usize = 10;

/// The largest half of an interval of ranks, as a share of the distance to the nearer end.
const LARGEST: f64 = 0.5;

/// 95 % confidence intervals; absent where the run is too short for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Precision {
    /// Half the width of the rate's interval, in requests/s, by Student's t.
    #[serde(rename = "rate_half_width_per_s")]
    pub rate_half_width: Option<f64>,
    /// The number of independent values that the rate's slots are worth.
    #[serde(default)]
    pub rate_batches: Option<u64>,
    /// The number of independent values that the seconds are worth, for the intervals of quantiles.
    #[serde(rename = "interval_blocks", default)]
    pub blocks: Option<u64>,
}

impl Precision {
    /// Returns the precision, and the intervals of the median and the 99th percentile, from the
    /// rates in each 100 ms and the response times in each second.
    pub fn of(slots: &[f64], seconds: &[&Counts]) -> (Self, [Option<[u64; 2]>; 2]) {
        let own = if slots.len() < FEWEST_SLOTS {
            Self::default()
        } else {
            Self::of_rates(slots)
        };
        let quantiles = [0.5, 0.99].map(|q| quantile_interval(seconds, q));
        let blocks = quantiles.iter().flatten().map(|(_, blocks)| *blocks).min();
        (
            Self { blocks, ..own },
            quantiles.map(|own| own.map(|(ends, _)| ends)),
        )
    }

    /// Returns the precision of the rate, from the rates in stretches of equal length.
    pub fn of_rates(rates: &[f64]) -> Self {
        let (rate_half_width, rate_batches) = mean_interval(rates, CORRELATION_TIMES).unzip();
        Self {
            rate_half_width,
            rate_batches,
            blocks: None,
        }
    }
}

/// Returns half the width of the 95 % interval of a series' mean, and the number of independent
/// values that the series is worth.
///
/// Neighbouring values may be correlated, so that the mean varies more than independent values
/// would have it. There is no interval where the series is too short to say how much more: where its
/// level changes or drifts, it has fewer than so many correlation times, batches of a twentieth of it
/// are still correlated, or a few rare values make its mean.
fn mean_interval(series: &[f64], correlation_times: f64) -> Option<(f64, u64)> {
    let n = series.len();
    if n < FEWEST || change(series).is_some() {
        return None;
    }
    let independent = n as f64 / correlation_time(series);
    let long = batches(series, (n + BATCHES / 2) / BATCHES);
    if independent < correlation_times
        || correlation(&long) > UNCORRELATED
        || independent < SKEWNESS * skewness(series).powi(2)
    {
        return None;
    }
    let error = (long_run_variance(series) / n as f64).sqrt();
    let count = independent.floor();
    Some((t_quantile(count - 1.0)? * error, count as u64))
}

/// Returns n times the variance of the mean of a long series of n values.
///
/// It is that of batch means, times their length and their correlation time (Law and Kelton,
/// "Simulation Modeling and Analysis", chapter 9): the largest over batches of growing length.
fn long_run_variance(series: &[f64]) -> f64 {
    // By a half, but one at least.
    iter::successors(Some(1_usize), |length| Some(length + length.div_ceil(2)))
        .take_while(|length| series.len() / length >= FEWEST_BATCHES)
        .filter_map(|length| {
            let batches = batches(series, length);
            let variance = Moments::of(&batches)?.variance?;
            Some(length as f64 * variance * correlation_time(&batches))
        })
        .fold(0.0, f64::max)
}

/// Returns the means of the last batches of this length.
fn batches(series: &[f64], length: usize) -> Vec<f64> {
    series[series.len() % length..]
        .chunks_exact(length)
        .map(|batch| batch.iter().sum::<f64>() / length as f64)
        .collect()
}

/// Returns the number of values that are worth one independent value: (1 + r) / (1 - r) in an
/// autoregressive series whose neighbours have a correlation of r.
///
/// That of n values is too small by (1 + 3 r) / n on average (Marriott and Pope, "Bias in the
/// estimation of autocorrelations", 1954).
fn correlation_time(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let r = ((correlation(series) + 1.0 / n) / (1.0 - 3.0 / n)).clamp(0.0, 0.999);
    (1.0 + r) / (1.0 - r)
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

/// Returns the skewness of a series; 0 where it does not vary.
fn skewness(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    let moment = |power| {
        let sum: f64 = series.iter().map(|value| (value - mean).powi(power)).sum();
        sum / n
    };
    let variance = moment(2);
    if variance > 0.0 {
        moment(3) / variance.powf(1.5)
    } else {
        0.0
    }
}

/// Returns the interval of the quantile `q`, from 0 to 1, over all seconds (Woodruff, "Confidence
/// intervals for medians and other position measures", 1952), and the number of independent values
/// that the seconds are worth.
///
/// The share of samples beyond the quantile varies from second to second; its standard error gives
/// an interval of ranks, whose ends are quantiles again. `None` where that reaches too far into the
/// tail: too few independent times lie there.
fn quantile_interval(seconds: &[&Counts], q: f64) -> Option<([u64; 2], u64)> {
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
    let (half, blocks) = mean_interval(&deviations, CORRELATION_TIMES_OF_QUANTILES)?;
    let half = half * seconds.len() as f64 / all.len() as f64;
    let nearer = q.min(1.0 - q);
    if half > nearer * LARGEST {
        return None;
    }
    Some(([all.quantile(q - half)?, all.quantile(q + half)?], blocks))
}

#[cfg(test)]
mod tests;
