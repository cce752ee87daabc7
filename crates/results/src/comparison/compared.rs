//! The pairs of measurements that a run or two files compare.

use super::{Comparison, Family, Standing, claims};
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
            let base = measurements.iter().find(|own| own.number == pairing.base);
            // A measurement that was not made yet is among the comparisons, too.
            let metrics = base.map_or(metric::TRIALS, |own| self.compared_by(own.settings()));
            claims(metrics)
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
            let metrics = self.compared_by(base.settings());
            Some(Compared {
                is_control: pairing.is_control,
                ..Compared::of(base, new, metrics, family)
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
