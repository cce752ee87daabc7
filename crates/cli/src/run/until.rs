//! Trials until an interval is narrow enough.

use std::{fmt, str::FromStr};

use netping_measure::statistics::side::Side;
use netping_results::{
    metric::{self, Metric},
    run::Step,
};

/// Minimum number of trials.
pub const FEWEST: u32 = 3;

/// A width that an interval over the trials is to have, such as `p99 +-5%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    metric: &'static Metric,
    /// Half the interval's width, as a share of the value.
    half_width: f64,
}

impl Until {
    /// Returns the number of looks at the interval when there are at most so many trials: each may
    /// find a narrow one by chance, and so all intervals are widened for this number.
    pub fn looks(most: u32) -> usize {
        most.saturating_sub(FEWEST) as usize + 1
    }

    /// Returns true if the value of every target is known well enough. Each has its trials so far,
    /// of at most `most`.
    pub fn is_met(&self, targets: &[Vec<Step>], most: u32) -> bool {
        targets.iter().all(|steps| {
            let side = self.metric.side(steps);
            side.is_some_and(|side| self.is_narrow(side, Self::looks(most)))
        })
    }

    fn is_narrow(&self, side: Side, looks: usize) -> bool {
        let half_width = side.half_width(looks);
        side.n >= f64::from(FEWEST)
            && half_width.is_some_and(|half| half <= self.half_width * side.value)
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} +-{}%", self.metric.name, self.half_width * 100.0)
    }
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, width) = text
            .split_once("+-")
            .or_else(|| text.split_once('±'))
            .ok_or("no width; write it like 'p99 +-5%'")?;
        // Each name is of one of these metrics.
        let metric = metric::named(name.trim(), metric::TRIALS.iter().copied())?[0];
        let percent = width.trim().strip_suffix('%').map(str::parse::<f64>);
        match percent {
            Some(Ok(percent)) if percent > 0.0 && percent < 100.0 => Ok(Self {
                metric,
                half_width: percent / 100.0,
            }),
            _ => Err(format!(
                "'{}' is not a share between 0% and 100%",
                width.trim()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    #[test]
    fn a_width_has_a_metric_and_a_share() {
        let until: Until = "p99 +-5%".parse().unwrap();
        assert_eq!((until.metric.name, until.half_width), ("p99", 0.05));
        assert_eq!("p99±5%".parse::<Until>().unwrap(), until);
        assert_eq!(until.to_string(), "p99 +-5%");
        for wrong in ["p99", "p98 +-5%", "p99 +-5", "p99 +-0%", "p99 +-x%"] {
            assert!(wrong.parse::<Until>().is_err(), "{wrong}");
        }
    }

    /// The interval at which trials end holds the true value in at least 95 % of 2,000 simulated
    /// measurements, though it was looked at after every trial.
    #[test]
    fn looking_often_does_not_make_the_interval_wrong() {
        const MOST: u32 = 20;
        let until: Until = "rate +-5%".parse().unwrap();
        let looks = Until::looks(MOST);
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let (mut held, mut early) = (0, 0);
        for _ in 0..2000 {
            let mut rates = Vec::new();
            let side = loop {
                let noise: f64 = StandardNormal.sample(&mut random);
                rates.push(100.0 + 5.0 * noise);
                let Some(side) = Side::of_mean(&rates) else {
                    continue;
                };
                if until.is_narrow(side, looks) || rates.len() == MOST as usize {
                    break side;
                }
            };
            early += u32::from(rates.len() < MOST as usize);
            held += u32::from((side.value - 100.0).abs() <= side.half_width(looks).unwrap());
        }
        assert!(held >= 1900, "{held} of 2000");
        assert!(early >= 1500, "{early} of 2000");
    }
}
