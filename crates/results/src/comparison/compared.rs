//! The pairs of measurements that a run or two files compare.

use super::{Comparison, Family, Standing, claims, metrics_and};
use crate::{
    metric::{self, Metric},
    run::{Kind, Measurement, Pairing, Run, StepSettings},
    warning::Warnings,
};

/// Two measurements, and each metric that they are compared by.
#[derive(Debug, Clone)]
pub struct Compared<'a> {
    /// The measurement that the other is compared with.
    pub base: Measurement<'a>,
    /// The other.
    pub new: Measurement<'a>,
    /// True where the other measures the base once more.
    pub is_control: bool,
    /// A comparison for each metric of which either has a value.
    pub comparisons: Vec<Comparison>,
    /// The names of the warnings that invalidate one of the two.
    pub invalidating: Vec<&'static str>,
}

impl<'a> Compared<'a> {
    /// Compares two measurements by each of `metrics` of which either has a value.
    pub(crate) fn of(
        base: Measurement<'a>,
        new: Measurement<'a>,
        metrics: &[&'static Metric],
        family: Family,
    ) -> Self {
        let metrics = metrics.iter();
        Self {
            comparisons: metrics
                .filter_map(|metric| Comparison::of(metric, &base, &new, family))
                .collect(),
            base,
            new,
            is_control: false,
            invalidating: Vec::new(),
        }
    }

    /// Takes what the warnings about the runs of both sides, the base's first, say of them.
    pub(crate) fn stand_by(&mut self, warnings: [&Warnings; 2]) {
        let sides = [&self.base, &self.new].into_iter().zip(warnings);
        let names = sides.flat_map(|(side, all)| all.invalidating_one(side.number));
        self.invalidating = names.collect();
        self.invalidating.sort_unstable();
        self.invalidating.dedup();
        let standing = if !self.invalidating.is_empty() {
            Standing::NotValid
        } else if warnings.iter().all(|all| all.is_valid()) {
            Standing::Sound
        } else {
            Standing::Doubtful
        };
        for own in &mut self.comparisons {
            own.standing = standing;
        }
    }

    /// Returns the trust that its comparisons deserve.
    pub fn standing(&self) -> Standing {
        let first = self.comparisons.first();
        first.map_or(Standing::Sound, |own| own.standing)
    }

    /// Returns the shift function: the difference at every quantile of the response time at which both sides have one
    /// in as many trials as at the median, and by no bound (Doksum, "Empirical probability plots and statistical
    /// inference for nonlinear models in the two-sample case", 1974).
    ///
    /// Differences of quantiles are made as all others are, trial by trial, so that those of p50 and p99 are the
    /// claimed ones. Each interval holds with the probability of a claim's; they do not all hold together.
    pub fn shift(&self) -> Vec<(f64, &Comparison)> {
        let sides = |own: &Comparison| Some([own.base?, own.new?]);
        let trials = |own: &Comparison| sides(own).map(|own| own.map(|side| side.trials));
        let median = self.by(&metric::P50).and_then(trials);
        let is_known = |own: &Comparison| {
            let is_bound = sides(own).is_none_or(|own| own.iter().any(|side| side.is_bound));
            !is_bound && trials(own) == median
        };
        let quantiles = metric::CURVE
            .iter()
            .filter_map(|metric| Some((metric.quantile()?, self.by(metric)?)));
        quantiles.filter(|(_, own)| is_known(own)).collect()
    }

    /// Returns the comparison by a metric.
    pub fn by(&self, metric: &Metric) -> Option<&Comparison> {
        self.comparisons.iter().find(|own| own.metric == metric)
    }
}

impl Run {
    /// Returns true if its trials could end at several times.
    pub fn is_sequential(&self) -> bool {
        self.looks > 1
    }

    /// Returns the family of all that the run itself compares.
    pub fn family(&self) -> Family {
        let measurements = self.measurements();
        // What `ab` decides by is no claim about its controls.
        let is_claimed = |own: &&Pairing| self.kind != Kind::Ab || !own.is_control;
        let pairings = self.pairings.iter().filter(is_claimed);
        let claims = pairings.map(|pairing| {
            let find = |number| measurements.iter().find(|own| own.number == number);
            match (find(pairing.base), find(pairing.new)) {
                (Some(base), Some(new)) => claims(&self.compared_between(base, new)),
                // A measurement that was not made yet is among the comparisons, too.
                (Some(base), None) => claims(self.compared_by(base.settings())),
                (None, _) => claims(metric::TRIALS),
            }
        });
        Family {
            claims: claims.sum(),
            at_any_time: self.is_sequential(),
            is_apart: false,
            margin: self.margin,
        }
    }

    /// Compares all pairs of measurements that the run says belong together.
    pub fn compared(&self) -> Vec<Compared<'_>> {
        self.compared_and(&[])
    }

    /// Does as [`Run::compared`], and compares by further metrics those that have them. No claims are
    /// made on those, and their intervals are as wide as those of the claims.
    pub fn compared_and(&self, further: &[&'static Metric]) -> Vec<Compared<'_>> {
        let family = self.family();
        let measurements = self.measurements();
        let find = |number: usize| measurements.iter().find(|own| own.number == number);
        let control = |of: usize| {
            let mut controls = self.pairings.iter().filter(|own| own.is_control);
            find(controls.find(|own| own.base == of)?.new)
        };
        let compare = |pairing: &Pairing| {
            let mut sides = [pairing.base, pairing.new].map(|number| find(number).cloned());
            // What `ab` decides by is measured twice, and counts with both.
            if self.kind == Kind::Ab && !pairing.is_control {
                for side in sides.iter_mut().flatten() {
                    let control = control(side.number);
                    side.again = control.map_or_else(Vec::new, |own| own.trials.clone());
                }
            }
            let [Some(base), Some(new)] = sides else {
                return None;
            };
            if !base.has_whole_trial_with(&new) {
                return None;
            }
            let is_bulk = base.settings().bulk.is_some();
            let metrics = metrics_and(self.compared_between(&base, &new), further, is_bulk);
            Some(Compared {
                is_control: pairing.is_control,
                ..Compared::of(base, new, &metrics, family)
            })
        };
        let mut all: Vec<Compared<'_>> = self.pairings.iter().filter_map(compare).collect();
        let groups = self.groups(measurements.iter().map(|own| own.number));
        let mut controls = all.clone();
        controls.retain(|own| own.is_control);
        for own in all.iter_mut().filter(|own| !own.is_control) {
            let group = groups[&own.base.number];
            for comparison in &mut own.comparisons {
                let own = controls.iter();
                let own = own.filter(|control| groups[&control.base.number] == group);
                let changes = own.filter_map(|control| control.by(comparison.metric)?.change);
                let extent = |change: f64| comparison.metric.scale.extent(change);
                comparison.noise = changes.max_by(|a, b| extent(*a).total_cmp(&extent(*b)));
            }
        }
        let warnings = Warnings::of_run(self);
        for own in &mut all {
            own.stand_by([&warnings, &warnings]);
        }
        all
    }

    /// Returns the metrics by which two measurements are compared.
    fn compared_between(
        &self,
        base: &Measurement<'_>,
        new: &Measurement<'_>,
    ) -> Vec<&'static Metric> {
        let mut metrics = self.compared_by(base.settings()).to_vec();
        let target = |own: &Measurement<'_>| own.trials.first().map(|step| step.target.clone());
        if base.settings().together.is_some() && target(base) == target(new) {
            // The counters are those of one server over one window: no difference could show.
            metrics.retain(|own| **own != metric::SERVER_CPU);
        }
        metrics
    }

    /// Returns the metrics by which a measurement with these settings is compared with others of the
    /// run.
    pub fn compared_by(&self, settings: &StepSettings) -> metric::List {
        match self.kind {
            _ if settings.bulk.is_some() => metric::BULK_TRIALS,
            Kind::Ladder if settings.callers == 1 => metric::ROUND_TRIP,
            Kind::Ladder => metric::CAPACITY,
            Kind::Proxy if settings.planned_rate.is_none() => metric::CAPACITY,
            Kind::Proxy => metric::OVERHEAD,
            Kind::Ab if settings.together.is_none() => metric::CAPACITY,
            Kind::Ab => metric::BY_TURNS,
            _ if settings.is_by_turns() => metric::BY_TURNS,
            _ => metric::TRIALS,
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_measure::{counts::Counts, distribution::Distribution, times::Time};

    use super::*;
    use crate::{fixtures, run::Step};

    /// Numbers between 0 and 1, by xorshift.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn exponential(&mut self) -> f64 {
            -self.uniform().ln()
        }

        /// A number around 0 with a variance of 1, near enough to normal.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// Returns a step like `model` of another target, with these response times.
    fn with_times(model: &Step, target: usize, times: Vec<u64>) -> Step {
        let mut step = model.clone();
        step.target = format!("tcp://h:{target}");
        let times: Counts = times.into_iter().collect();
        step.summary.times[Time::Response] = Distribution::of(&times);
        step.histograms.times[Time::Response] = times;
        step
    }

    /// Returns trials of two targets, of which the times of the second are `factor` times as long. What varies from
    /// trial to trial, in both and in each, are factors, too.
    fn trials(random: &mut Random, count: u32, factor: f64) -> Run {
        let model = fixtures::step(1, |_| vec![1_000_000; 10]);
        let mut steps = Vec::new();
        for _ in 0..count {
            let round = 1.0 + 0.1 * random.normal();
            for (target, factor) in [1.0, factor].into_iter().enumerate() {
                let level = 1e6 * factor * round * (1.0 + 0.02 * random.normal());
                let times = (0..400).map(|_| (level * (0.5 + random.exponential())) as u64);
                steps.push(with_times(&model, target, times.collect()));
            }
        }
        Run {
            pairings: vec![Pairing::new(0, 1)],
            ..fixtures::run(steps)
        }
    }

    #[test]
    fn each_interval_of_a_shift_holds_the_true_one_as_a_claims_does() {
        let mut random = Random(20_261_126);
        let (mut held, mut all, mut least) = (0, 0, [0; 200]);
        let rounds = 200;
        for _ in 0..rounds {
            let run = trials(&mut random, 6, 1.1);
            let pairs = run.compared_and(metric::CURVE);
            let shift = pairs[0].shift();
            assert!(shift.len() > 15, "{shift:?}");
            for (at, (_, own)) in shift.iter().enumerate() {
                let [low, high] = own.interval.unwrap();
                let holds = low <= 0.1 && 0.1 <= high;
                held += u32::from(holds);
                least[at] += u32::from(holds);
                all += 1;
            }
        }
        // Four claims that hold together with 95 % hold with 98.75 % each.
        let share = f64::from(held) / f64::from(all);
        assert!((0.978..0.995).contains(&share), "{share}");
        let worst = least.iter().filter(|held| **held > 0).min().unwrap();
        assert!(f64::from(*worst) / f64::from(rounds) > 0.955, "{least:?}");
    }

    #[test]
    fn a_shift_has_the_claimed_numbers_and_no_bounds() {
        let mut run = trials(&mut Random(1), 3, 1.1);
        let pairs = run.compared_and(metric::CURVE);
        let shift = pairs[0].shift();
        let at = |percent: f64| {
            shift
                .iter()
                .find(|(own, _)| own.total_cmp(&percent).is_eq())
                .map(|own| own.1)
        };
        let claimed = run.compared();
        let claimed = claimed[0].by(&metric::P50).unwrap();
        assert_eq!(at(50.0).unwrap(), claimed);
        // Of 400 samples, ten lie beyond p97.5, and too few beyond p99.
        assert!(at(97.5).is_some() && at(99.0).is_none());
        run.steps[1].summary.times[Time::Response].at_least = ["p75".to_owned()].into();
        let pairs = run.compared_and(metric::CURVE);
        let known: Vec<f64> = pairs[0].shift().iter().map(|own| own.0).collect();
        assert!(known.contains(&50.0) && !known.contains(&70.0), "{known:?}");
    }
}
