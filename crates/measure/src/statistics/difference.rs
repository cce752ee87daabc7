//! Differences between two targets.

use serde::{Deserialize, Serialize};

use crate::statistics::{side::Side, welch::Welch};

/// The outcome of comparing two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// The values do not show a difference, which does not prove that there is none.
    NoDifference,
}

/// The difference of two targets, relative to the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The second value less the first, as a share of the first.
    pub relative: f64,
    /// The interval of `relative`: with a probability of 95 %, those of all comparisons made
    /// together hold their differences. It is made on logarithms, and alone decides.
    pub interval: [f64; 2],
    /// The smallest difference that such measurements show with a probability of 80 %.
    pub detectable: f64,
    /// The smallest margin within which the two values are shown to be the same: two one-sided
    /// tests on logarithms, at 5 % for all comparisons together (Schuirmann, "A comparison of the
    /// two one-sided tests procedure and the power approach for assessing the equivalence of average
    /// bioavailability", 1987). A share; 0.05 stands for ratios from 1 / 1.05 to 1.05.
    pub equivalence: f64,
    /// The probability of a difference at least as large by chance alone, times the number of
    /// comparisons made together (Bonferroni), at most 1.
    pub p_value: f64,
    /// The first and the second value, in their own unit.
    pub values: [f64; 2],
    /// Half the width of the 95 % confidence interval of the second less the first, in that unit.
    pub half_width: f64,
}

impl Difference {
    /// Compares two values by Welch's t-test of their logarithms, as one of `comparisons` made
    /// together. `None` where one of them is 0.
    pub fn between(first: Side, second: Side, comparisons: usize) -> Option<Self> {
        let welch = Welch::compare(first, second)?;
        let ratio = welch.ratio?;
        Some(Self {
            relative: ratio.log.exp_m1(),
            interval: ratio.interval(comparisons)?,
            detectable: ratio.detectable(comparisons)?,
            equivalence: ratio.equivalence(comparisons)?,
            p_value: ratio.p_value(comparisons)?,
            values: [welch.first, welch.second],
            half_width: welch.half_width,
        })
    }

    /// Compares the means of two sets of values. `None` with fewer than two values on either side,
    /// or where a mean is 0.
    pub fn of_means(first: &[f64], second: &[f64], comparisons: usize) -> Option<Self> {
        Self::between(Side::of_mean(first)?, Side::of_mean(second)?, comparisons)
    }

    /// Returns the verdict on the second target.
    pub fn finding(self, more_is_better: bool) -> Finding {
        let [low, high] = self.interval;
        match (low > 0.0, high < 0.0) {
            (false, false) => Finding::NoDifference,
            (more, _) if more == more_is_better => Finding::Better,
            _ => Finding::Worse,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::{
        counts::Counts,
        statistics::{estimate::Estimate, simulation::normal},
    };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn a_mean_has_students_interval() {
        // t(0.975, 4) = 2.7764, and the standard error is 0.7071.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(near(estimate.mean, 3.0) && near(estimate.half_width.unwrap(), 1.9632));
        assert_eq!(Estimate::of(&[1.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    /// The values of a textbook example of Welch's test: t = -2.46, 24.99 degrees of freedom, p =
    /// 0.021.
    #[test]
    fn a_difference_has_welchs_p_value() {
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5,
            24.4,
        ];
        let difference = Difference::of_means(&a, &b, 1).unwrap();
        let welch = Welch::compare(Side::of_mean(&a).unwrap(), Side::of_mean(&b).unwrap()).unwrap();
        assert!((welch.p_value - 0.021).abs() < 5e-4, "{welch:?}");
        // On logarithms nearly the same.
        assert!((difference.p_value - 0.021).abs() < 5e-3, "{difference:?}");
        assert_eq!(difference.finding(true), Finding::Better);
        assert_eq!(difference.finding(false), Finding::Worse);
        assert!(difference.interval[0] > 0.0 && difference.interval[0] < difference.relative);
        let [first, second] = difference.values;
        assert!(
            near(first, 20.82) && near(second, 22.9867),
            "{first} {second}"
        );
        // As one of twenty, the same difference is not shown, and a larger one would be needed.
        let among = Difference::of_means(&a, &b, 20).unwrap();
        assert_eq!(among.finding(true), Finding::NoDifference);
        assert!(among.detectable > difference.detectable);
        assert_eq!(Difference::of_means(&a, &[1.0], 1), None);
    }

    #[test]
    fn quantiles_differ_by_more_than_their_trials_do() {
        // Each trial's values lie around a level of its own.
        let trials = |levels: [u64; 6]| {
            levels.map(|level| Counts::from(vec![(level, 90), (level + 50, 9), (level * 2, 1)]))
        };
        let a = trials([100, 104, 98, 101, 97, 103]);
        let b = trials([121, 118, 125, 119, 123, 120]);
        let difference = of_quantiles(&a, &b, 3).unwrap();
        assert_eq!(difference.finding(false), Finding::Worse);
        assert!(
            difference.interval[0] > 0.1 && difference.interval[1] < 0.35,
            "{difference:?}"
        );
        let near = of_quantiles(&a, &trials([102, 99, 105, 100, 98, 101]), 3).unwrap();
        assert_eq!(near.finding(false), Finding::NoDifference, "{near:?}");
        assert_eq!(of_quantiles(&a[..1], &b, 3), None);
    }

    fn of_quantiles(first: &[Counts], second: &[Counts], comparisons: usize) -> Option<Difference> {
        let side = |trials: &[Counts]| Side::of_quantile(&trials.iter().collect::<Vec<_>>(), 50.0);
        Difference::between(side(first)?, side(second)?, comparisons)
    }

    /// The chance of a false alarm, on trials whose levels are drawn from one distribution, is not
    /// above what is said.
    #[test]
    fn bootstrapped_differences_of_equals_are_rare() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut trials = || -> Vec<Counts> {
            (0..5)
                .map(|_| {
                    let level = (0..12).map(|_| 1000 + random.next_u64() % 400).sum();
                    Counts::from(vec![(level, 100)])
                })
                .collect()
        };
        let alarms = (0..200)
            .filter(|_| {
                let difference = of_quantiles(&trials(), &trials(), 1).unwrap();
                difference.finding(true) != Finding::NoDifference
            })
            .count();
        assert!(alarms <= 16, "{alarms} of 200");
    }

    /// A command of twenty comparisons of equals, of means and of quantiles, claims a difference in
    /// 5 % of 200 simulated commands at most, within what chance allows.
    #[test]
    fn whole_commands_raise_few_false_alarms() {
        const COMPARISONS: usize = 20;
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let mut trial = |_: usize| -> (f64, Counts) {
            let level = 1e6 * (0.05 * normal(&mut random)).exp();
            let times = (0..20).map(|_| (level * (0.5 * normal(&mut random)).exp()) as u64);
            let mut all = crate::histogram::histogram();
            times.for_each(|time| crate::histogram::record(&mut all, time));
            (1e9 / level, Counts::from(&all))
        };
        for trials in [3, 5] {
            let alarms = (0..200)
                .filter(|_| {
                    (0..COMPARISONS).any(|number| {
                        let mut side =
                            || -> (Vec<f64>, Vec<Counts>) { (0..trials).map(&mut trial).unzip() };
                        let (a, b) = (side(), side());
                        let quantile = |times: &[Counts], percent| {
                            Side::of_quantile(&times.iter().collect::<Vec<_>>(), percent)
                        };
                        let difference = match [0.0, 50.0, 99.0][number % 3] {
                            0.0 => Difference::of_means(&a.0, &b.0, COMPARISONS),
                            q => quantile(&a.1, q)
                                .zip(quantile(&b.1, q))
                                .and_then(|(a, b)| Difference::between(a, b, COMPARISONS)),
                        };
                        difference.unwrap().finding(true) != Finding::NoDifference
                    })
                })
                .count();
            assert!(alarms <= 17, "{trials} trials: {alarms} of 200");
        }
    }

    /// Of 2,000 simulated pairs of trials that differ by the smallest detectable difference, 70..90
    /// % show it; of as many equal ones about 5 % do.
    #[test]
    fn power_and_false_alarms_are_as_promised() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut count = |level: f64, noise: f64, is_counted: &dyn Fn(Difference) -> bool| {
            let mut trials = |level: f64| -> Vec<f64> {
                let mut one = || level * (1.0 + noise * normal(&mut random));
                (0..10).map(|_| one()).collect()
            };
            let mut one =
                || Difference::of_means(&trials(100.0), &trials(100.0 * level), 1).unwrap();
            (0..2000).filter(|_| is_counted(one())).count()
        };
        // The true error is known here: 0.04 * sqrt(2 / 10), with 18 degrees of freedom.
        let truth = crate::statistics::welch::Ratio {
            log: 0.0,
            error: 0.04 * 0.2_f64.sqrt(),
            freedom: 18.0,
        };
        let level = 1.0 + truth.detectable(1).unwrap();
        let shown = |difference: Difference| difference.finding(true) != Finding::NoDifference;
        let (alarms, found) = (count(1.0, 0.04, &shown), count(level, 0.04, &shown));
        assert!((60..=140).contains(&alarms), "{alarms} of 2000");
        assert!((1400..=1800).contains(&found), "{found} of 2000");
        // Values that differ by the margin itself are taken for equivalent in 5 % at most.
        let margin = 0.05;
        let equivalent = |difference: Difference| difference.equivalence < margin;
        let wrong = count(1.0 + margin, 0.02, &equivalent);
        let right = count(1.0, 0.02, &equivalent);
        assert!((40..=140).contains(&wrong), "{wrong} of 2000");
        assert!(right >= 1900, "{right} of 2000");
    }

    /// Rates in requests/s of two tokio servers with 64 callers, recorded by a ladder on a noisy
    /// virtual machine: 22 windows of 150 ms.
    const RECORDED: [f64; 22] = [
        108_187.0, 137_253.0, 112_973.0, 157_233.0, 112_993.0, 125_467.0, 121_147.0, 91_033.0,
        105_733.0, 133_200.0, 131_920.0, 116_613.0, 128_027.0, 120_373.0, 123_353.0, 109_347.0,
        108_533.0, 139_393.0, 124_960.0, 121_080.0, 128_107.0, 125_280.0,
    ];

    /// Trials are drawn from recorded ones. With as many as it takes for the smallest detectable
    /// difference to be 2, 5 and 10 %, differences of that size are found in 70..90 %.
    #[test]
    fn the_smallest_detectable_difference_is_found_in_recorded_noise() {
        let mut random = ChaCha8Rng::seed_from_u64(6);
        let mut compare = |trials: usize, level: f64| {
            let mut side = |level: f64| -> Vec<f64> {
                let mut draw = || RECORDED[random.next_u32() as usize % RECORDED.len()];
                (0..trials).map(|_| level * draw()).collect()
            };
            Difference::of_means(&side(1.0), &side(level), 1).unwrap()
        };
        for (level, trials) in [(0.02, 510), (0.05, 82), (0.10, 22)] {
            let stated: Vec<f64> = (0..200).map(|_| compare(trials, 1.0).detectable).collect();
            let stated = Estimate::of(&stated).unwrap().mean;
            assert!((stated / level - 1.0).abs() < 0.05, "{level}: {stated}");
            let found = (0..1000)
                .filter(|_| compare(trials, 1.0 + stated).finding(true) == Finding::Better);
            let found = found.count();
            assert!((700..=900).contains(&found), "{level}: {found} of 1000");
        }
    }
}
