//! Trials until an interval is narrow enough.

use std::{fmt, str::FromStr};

use netping_results::{
    estimate::estimate,
    metric::{self, Metric},
    run::Measurement,
};

use super::share::share_in_percent;

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
    /// Returns the number of looks at the interval with at most `most` trials: each may find a narrow
    /// one by chance, and so intervals hold at all of them.
    pub fn looks(most: u32) -> usize {
        most.saturating_sub(FEWEST) as usize + 1
    }

    /// Returns true if the value of a measurement is known well enough, at one of its run's looks: a lower bound is not.
    pub fn is_met(&self, measurement: &Measurement<'_>) -> bool {
        let estimate = estimate(self.metric, measurement);
        estimate.filter(|own| !own.is_bound).is_some_and(|own| {
            let half_width = own.half_width().filter(|_| own.trials >= FEWEST as usize);
            half_width.is_some_and(|half| half <= self.half_width)
        })
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
        let half_width = share_in_percent(width.trim())?;
        Ok(Self { metric, half_width })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use netping_measure::times::Time;
    use netping_results::{
        fixtures,
        run::{Run, Step},
    };
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    static STEP: LazyLock<Step> = LazyLock::new(|| fixtures::step(1, |_| vec![1000; 10]));

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

    #[test]
    fn a_lower_bound_is_not_known_well() {
        let until: Until = "p99 +-5%".parse().unwrap();
        let is_met = |is_bound: bool| {
            let step = |trial| {
                let mut step = fixtures::step(1, |_| vec![1000; 1000]);
                step.trial = trial;
                let response = &mut step.summary.times[Time::Response];
                response.at_least = is_bound.then(|| "p99".to_owned()).into_iter().collect();
                step
            };
            let run = Run {
                looks: Until::looks(20),
                ..fixtures::run((1..=5).map(step).collect())
            };
            until.is_met(&run.measurements()[0])
        };
        assert!(is_met(false) && !is_met(true));
    }

    /// The interval at which trials end holds the true value in at least 95 % of 2,000 simulated
    /// measurements, though it was looked at after every trial.
    #[test]
    fn looking_often_does_not_make_the_interval_wrong() {
        const MOST: u32 = 20;
        let until: Until = "rate +-5%".parse().unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let (mut held, mut early) = (0, 0);
        for _ in 0..2000 {
            let mut run = Run {
                looks: Until::looks(MOST),
                ..fixtures::run(Vec::new())
            };
            let estimate = loop {
                let noise: f64 = StandardNormal.sample(&mut random);
                let mut step = STEP.clone();
                step.trial = run.steps.len() as u32 + 1;
                step.summary.rate = 100.0 * (0.05 * noise).exp();
                run.steps.push(step);
                let own = &run.measurements()[0];
                if until.is_met(own) || run.steps.len() == MOST as usize {
                    break estimate(&metric::RATE, own).unwrap();
                }
            };
            early += u32::from(run.steps.len() < MOST as usize);
            let [low, high] = estimate.interval.unwrap();
            held += u32::from((low..=high).contains(&100.0));
        }
        assert!(held >= 1900, "{held} of 2000");
        assert!(early >= 1500, "{early} of 2000");
    }
}
