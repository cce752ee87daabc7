//! Differences between two values, by Student's t.
//!
//! A difference lives on the scale on which it is made. On a logarithmic scale it is a ratio: its
//! error is that of both values, and no interval reaches below a ratio of 0.

use crate::statistics::{
    drift,
    moments::{Moments, t_at},
    together::Together,
};

/// The power with which a test should find a difference: 80 %.
const POWER: f64 = 0.8;

/// A value, its standard error, and the number of values that this is known from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Number of trials, or of seconds within a single run.
    pub n: f64,
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Side {
    /// Returns the mean of `values`; `None` with fewer than two.
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let moments = Moments::of(values)?;
        Some(Self {
            n: moments.n,
            value: moments.mean,
            error: moments.error()?,
        })
    }
}

/// A difference of two values with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The second value less the first.
    pub value: f64,
    /// Its standard error.
    error: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

impl Difference {
    /// Compares values that were measured in pairs, one pair in each trial: what changes from trial
    /// to trial is in both values of a pair, and cancels out. `resolution` is that of a single
    /// value: pairs that agree more closely may do so by rounding alone. `None` with fewer than two
    /// pairs, unequal numbers of values, or one that is not finite.
    pub fn paired(first: &[f64], second: &[f64], resolution: f64) -> Option<Self> {
        if first.len() != second.len() {
            return None;
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let moments = Moments::of(&differences)?;
        let least = resolution / moments.n.sqrt();
        Self {
            value: moments.mean,
            error: moments.error()?.max(least),
            freedom: moments.n - 1.0,
        }
        .checked()
    }

    /// Compares two values that were measured apart (Welch, "The generalization of Student's
    /// problem when several different population variances are involved", 1947). `resolution` is
    /// that of the values.
    pub fn apart(first: Side, second: Side, resolution: f64) -> Option<Self> {
        let (a, b) = (first.error.powi(2), second.error.powi(2));
        // Welch and Satterthwaite's degrees of freedom.
        let freedom = if a + b > 0.0 {
            (a + b).powi(2) / (a.powi(2) / (first.n - 1.0) + b.powi(2) / (second.n - 1.0))
        } else {
            first.n + second.n - 2.0
        };
        Self {
            value: second.value - first.value,
            error: (a + b).sqrt().max(resolution),
            freedom,
        }
        .checked()
    }

    /// Compares a single value with the mean of several, whose spread stands for both (Student's
    /// test). `sign` is 1 where the single value is the second, and -1 where it is the first.
    pub fn with_one(several: &[f64], one: f64, sign: f64, resolution: f64) -> Option<Self> {
        let moments = Moments::of(several)?;
        Self {
            value: (one - moments.mean) * sign,
            error: (moments.variance? * (1.0 + 1.0 / moments.n))
                .sqrt()
                .max(resolution),
            freedom: moments.n - 1.0,
        }
        .checked()
    }

    /// Returns it with the error that it has where all of `second` was measured after `first`, both in the order of
    /// their trials: drift between the two is in the difference, and is taken to be like that within them. It is known
    /// from little, so it brings one degree of freedom (Satterthwaite, "An approximate distribution of estimates of
    /// variance components", 1946).
    #[must_use]
    pub fn in_sequence(self, first: &[f64], second: &[f64]) -> Self {
        let (own, drift) = (self.error.powi(2), drift::between(first, second));
        if drift == 0.0 {
            return self;
        }
        let variance = own + drift;
        Self {
            error: variance.sqrt(),
            freedom: variance.powi(2) / (own.powi(2) / self.freedom + drift.powi(2)),
            ..self
        }
    }

    /// Returns no difference, with the error that it would have as the mean of `trials` differences
    /// with a standard deviation of `spread`: what can be known before anything is measured. `None`
    /// with fewer than two trials.
    pub fn planned(spread: f64, trials: u32) -> Option<Self> {
        let n = f64::from(trials);
        Self {
            value: 0.0,
            error: spread / n.sqrt(),
            freedom: n - 1.0,
        }
        .checked()
    }

    fn checked(self) -> Option<Self> {
        (self.value.is_finite() && self.error.is_finite() && self.freedom > 0.0).then_some(self)
    }

    /// Returns the interval, as one that holds its difference together with others.
    pub fn interval(self, together: Together) -> Option<[f64; 2]> {
        let half = together.factor(self.freedom)? * self.error;
        Some([self.value - half, self.value + half])
    }

    /// Returns the probability of a difference at least as large by chance alone, times the number
    /// of comparisons made together (Bonferroni), at most 1.
    pub fn p_value(self, together: Together) -> Option<f64> {
        if self.error == 0.0 {
            return Some(if self.value == 0.0 { 1.0 } else { 0.0 });
        }
        together.p_value(self.freedom, self.value / self.error)
    }

    /// Returns the smallest difference that such measurements show with a probability of 80 %, as
    /// one of the comparisons made together.
    pub fn detectable(self, together: Together) -> Option<f64> {
        let factor = together.factor(self.freedom)? + t_at(self.freedom, POWER)?;
        Some(factor * self.error)
    }

    /// Returns the smallest margin within which the two values are shown to be the same, as one of the
    /// comparisons made together: two one-sided tests at 5 % (Schuirmann, "A comparison of the
    /// two one-sided tests procedure and the power approach for assessing the equivalence of average
    /// bioavailability", 1987).
    pub fn equivalence(self, together: Together) -> Option<f64> {
        let factor = together.one_sided(self.freedom)?;
        Some(self.value.abs() + factor * self.error)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    use super::*;
    use crate::statistics::simulation::{normal, uniform};

    const RESOLUTION: f64 = 1e-3;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    /// Compares the means of two sets of values on logarithms.
    fn of_means(first: &[f64], second: &[f64]) -> Difference {
        let side = |values: &[f64]| Side::of_mean(&logs(values)).unwrap();
        Difference::apart(side(first), side(second), RESOLUTION).unwrap()
    }

    fn is_shown(difference: Difference, comparisons: usize) -> bool {
        let [low, high] = difference.interval(Together::fixed(comparisons)).unwrap();
        low > 0.0 || high < 0.0
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
        let [first, second] = [&a, &b].map(|values| Side::of_mean(values).unwrap());
        let welch = Difference::apart(first, second, 0.0).unwrap();
        assert!(near(welch.value, 22.9867 - 20.82), "{welch:?}");
        assert!((welch.freedom - 24.99).abs() < 5e-3, "{welch:?}");
        assert!((welch.p_value(Together::ONE).unwrap() - 0.021).abs() < 5e-4);
        assert!(is_shown(welch, 1));
        // As one of twenty, the same difference is not shown, and a larger one would be needed.
        assert!(!is_shown(welch, 20));
        assert!(welch.detectable(Together::fixed(20)) > welch.detectable(Together::ONE));
        assert!((welch.p_value(Together::fixed(20)).unwrap() - 0.42).abs() < 1e-2);
        assert_eq!(welch.p_value(Together::fixed(100)), Some(1.0));
    }

    #[test]
    fn pairs_have_the_interval_of_their_differences() {
        // Differences of 1, 2 and 3: mean 2, standard error 0.5774, t(0.975, 2) = 4.3027.
        let paired = Difference::paired(&[10.0, 20.0, 30.0], &[11.0, 22.0, 33.0], 0.0).unwrap();
        let [low, high] = paired.interval(Together::ONE).unwrap();
        assert!(near(paired.value, 2.0) && near(low, -0.4842) && near(high, 4.4842));
        assert_eq!(Difference::paired(&[1.0], &[2.0], 0.0), None);
        assert_eq!(Difference::paired(&[1.0, 2.0], &[2.0], 0.0), None);
        assert_eq!(Difference::paired(&[1.0, f64::NAN], &[2.0, 3.0], 0.0), None);
    }

    #[test]
    fn rounding_alone_shows_no_difference() {
        let same = Difference::paired(&[1.0; 4], &[1.0004; 4], RESOLUTION).unwrap();
        assert!(!is_shown(same, 1), "{same:?}");
        let apart = Difference::paired(&[1.0; 4], &[1.01; 4], RESOLUTION).unwrap();
        assert!(is_shown(apart, 1), "{apart:?}");
        let side = |value| Side {
            n: 4.0,
            value,
            error: 0.0,
        };
        let same = Difference::apart(side(1.0), side(1.001), RESOLUTION).unwrap();
        assert!(!is_shown(same, 1), "{same:?}");
        let same = Difference::with_one(&[1.0; 4], 1.001, 1.0, RESOLUTION).unwrap();
        assert!(!is_shown(same, 1), "{same:?}");
    }

    #[test]
    fn the_spread_of_several_stands_for_one() {
        // Variance 1, so an error of sqrt(1 + 1/3) = 1.1547.
        let one = Difference::with_one(&[1.0, 2.0, 3.0], 4.0, 1.0, 0.0).unwrap();
        assert!(near(one.value, 2.0) && near(one.error, 1.1547) && near(one.freedom, 2.0));
        let turned = Difference::with_one(&[1.0, 2.0, 3.0], 4.0, -1.0, 0.0).unwrap();
        assert!(near(turned.value, -2.0));
        assert_eq!(Difference::with_one(&[1.0], 4.0, 1.0, 0.0), None);
    }

    /// A command of twenty comparisons of equals claims a difference in 5 % of 2,000 simulated
    /// commands at most, within what chance allows; without the correction it would in 64 %.
    #[test]
    fn whole_commands_raise_few_false_alarms() {
        const COMPARISONS: usize = 20;
        let mut random = ChaCha8Rng::seed_from_u64(9);
        for trials in [3, 5, 10] {
            let mut levels = || -> Vec<f64> { (0..trials).map(|_| normal(&mut random)).collect() };
            let mut alarm = |_: &usize| {
                let (a, b) = (levels(), levels());
                is_shown(Difference::paired(&a, &b, 0.0).unwrap(), COMPARISONS)
            };
            let alarms = (0..2000)
                .filter(|_| (0..COMPARISONS).filter(&mut alarm).count() > 0)
                .count();
            assert!((50..=125).contains(&alarms), "{trials}: {alarms} of 2000");
        }
    }

    /// Fifteen differences to one reference: every window varies by 5 %, every round by 20 %. All
    /// intervals hold together in 95 % of ladders, and with ten rounds most differences of 20 % are
    /// shown, since what changes from round to round cancels out.
    #[test]
    fn all_intervals_of_a_ladder_hold_together() {
        for (rounds, power) in [(6, 0.1), (10, 0.95), (20, 0.99)] {
            let (held, shown) = climb(rounds);
            assert!(held >= 0.945, "{rounds} rounds: {held}");
            assert!(shown >= power, "{rounds} rounds: {shown}");
        }
    }

    /// Returns the share of 2,000 ladders all of whose intervals hold, and the share of differences
    /// that are shown.
    fn climb(rounds: usize) -> (f64, f64) {
        const DIFFERENCES: usize = 15;
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let (mut held, mut shown) = (0, 0);
        for _ in 0..2000 {
            let drifts: Vec<f64> = (0..rounds).map(|_| 0.2 * normal(&mut random)).collect();
            let mut windows = |level: f64| -> Vec<f64> {
                let window = |drift: &f64| drift + level.ln() + 0.05 * normal(&mut random);
                drifts.iter().map(window).collect()
            };
            let reference = windows(1.0);
            let differences: Vec<Difference> = (0..DIFFERENCES)
                .map(|_| Difference::paired(&reference, &windows(0.8), RESOLUTION).unwrap())
                .collect();
            let holds = |difference: &Difference| {
                let [low, high] = difference.interval(Together::fixed(DIFFERENCES)).unwrap();
                (low..=high).contains(&0.8_f64.ln())
            };
            held += usize::from(differences.iter().all(holds));
            let is_shown = |difference: &&Difference| is_shown(**difference, DIFFERENCES);
            shown += differences.iter().filter(is_shown).count();
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        (share(held, 2000), share(shown, 2000 * DIFFERENCES))
    }

    /// Of 2,000 simulated runs that differ by what their plan promises to show, 75..85 % show it.
    #[test]
    fn a_plan_promises_what_its_trials_show() {
        const SPREAD: f64 = 0.05;
        let mut random = ChaCha8Rng::seed_from_u64(12);
        for (trials, comparisons) in [(3, 1), (6, 7), (10, 35)] {
            let plan = Difference::planned(SPREAD, trials).unwrap();
            let least = plan.detectable(Together::fixed(comparisons)).unwrap();
            let mut finds = |_: &usize| {
                let second: Vec<f64> = (0..trials)
                    .map(|_| least + SPREAD * normal(&mut random))
                    .collect();
                let first = vec![0.0; second.len()];
                is_shown(
                    Difference::paired(&first, &second, 0.0).unwrap(),
                    comparisons,
                )
            };
            let found = (0..2000).filter(&mut finds).count();
            assert!((1500..=1700).contains(&found), "{trials}: {found} of 2000");
        }
        assert_eq!(Difference::planned(SPREAD, 1), None);
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
            (0..2000)
                .filter(|_| is_counted(of_means(&trials(100.0), &trials(100.0 * level))))
                .count()
        };
        // The true error is known here: 0.04 * sqrt(2 / 10), with 18 degrees of freedom.
        let truth = Difference {
            value: 0.0,
            error: 0.04 * 0.2_f64.sqrt(),
            freedom: 18.0,
        };
        let level = truth.detectable(Together::ONE).unwrap().exp();
        let shown = |difference: Difference| is_shown(difference, 1);
        let (alarms, found) = (count(1.0, 0.04, &shown), count(level, 0.04, &shown));
        assert!((60..=140).contains(&alarms), "{alarms} of 2000");
        assert!((1400..=1800).contains(&found), "{found} of 2000");
        // Values that differ by the margin itself are taken for equivalent in 5 % at most.
        let margin = 0.05_f64;
        let equivalent = |difference: Difference| {
            difference.equivalence(Together::ONE).unwrap() < margin.ln_1p()
        };
        let wrong = count(1.0 + margin, 0.02, &equivalent);
        let right = count(1.0, 0.02, &equivalent);
        assert!((40..=140).contains(&wrong), "{wrong} of 2000");
        assert!(right >= 1900, "{right} of 2000");
    }

    /// The share of 2,000 simulated comparisons of equals, measured one after the other, that claim a difference,
    /// in per cent, by Welch's test alone and with the estimate of the drift: the table of docs/methodology.md. The
    /// level takes a step from trial to trial whose standard deviation is a multiple of the noise's.
    #[test]
    fn drift_makes_fewer_claims_than_it_did() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        for (trials, step, [alone, widened]) in [
            (5, 0.0, [5, 2]),
            (5, 0.3, [10, 5]),
            (5, 1.0, [29, 8]),
            (20, 0.0, [4, 2]),
            (20, 0.3, [52, 8]),
            (20, 1.0, [76, 0]),
        ] {
            let mut claims = [0; 2];
            for _ in 0..2000 {
                let mut level = 0.0;
                let mut trial = || {
                    level += step * normal(&mut random);
                    level + normal(&mut random)
                };
                let [a, b] = [0; 2].map(|_| (0..trials).map(|_| trial()).collect::<Vec<f64>>());
                let [first, second] = [&a, &b].map(|set| Side::of_mean(set).unwrap());
                let apart = Difference::apart(first, second, 0.0).unwrap();
                for (count, own) in claims.iter_mut().zip([apart, apart.in_sequence(&a, &b)]) {
                    *count += u32::from(is_shown(own, 1));
                }
            }
            let shares = claims.map(|count| f64::from(count) / 20.0);
            for (share, expected) in shares.iter().zip([alone, widened]) {
                assert!(
                    (share - f64::from(expected)).abs() < 0.6,
                    "{trials} {step}: {shares:?}"
                );
            }
        }
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
            of_means(&side(1.0), &side(level))
        };
        let detectable =
            |difference: Difference| difference.detectable(Together::ONE).unwrap().exp_m1();
        for (level, trials) in [(0.02, 510), (0.05, 82), (0.10, 22)] {
            let stated: Vec<f64> = (0..200).map(|_| detectable(compare(trials, 1.0))).collect();
            let stated = Moments::of(&stated).unwrap().mean;
            assert!((stated / level - 1.0).abs() < 0.05, "{level}: {stated}");
            let found = (0..1000).filter(|_| {
                compare(trials, 1.0 + stated)
                    .interval(Together::ONE)
                    .unwrap()[0]
                    > 0.0
            });
            let found = found.count();
            assert!((700..=900).contains(&found), "{level}: {found} of 1000");
        }
    }

    #[test]
    fn intervals_of_skewed_pairs_hold_as_often_as_they_say() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut skewed = || uniform(&mut random).ln();
        let held = (0..2000).filter(|_| {
            let (a, b): (Vec<f64>, Vec<f64>) = (0..10).map(|_| (skewed(), skewed())).unzip();
            !is_shown(Difference::paired(&a, &b, 0.0).unwrap(), 1)
        });
        let held = held.count();
        assert!(held >= 1880, "{held} of 2000");
    }
}
