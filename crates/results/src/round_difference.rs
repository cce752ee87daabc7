//! Differences between targets that were measured in the same rounds.

use std::borrow::Borrow;

use netping_measure::statistics::trimmed::Trimmed;
use serde::{Deserialize, Serialize};

use crate::{
    metric::{Better, Metric},
    run::step::Step,
};

/// The difference of two targets in one metric, paired within rounds: what changes from round to
/// round is in both, and cancels out. All of it is made on logarithms, from means without the
/// lowest and the highest tenth of the rounds, so that single disturbed windows do not move it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundDifference {
    /// The label of the target.
    pub target: String,
    /// The label of the target that it is compared with.
    pub base: String,
    /// Callers of both.
    pub callers: usize,
    /// Connections of the target, and of the base.
    pub connections: [usize; 2],
    /// The message that requests carry; absent where they carry bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// True where the target is the base again, as another server: their difference is noise.
    #[serde(default)]
    pub is_noise: bool,
    /// The metric's name.
    pub metric: String,
    /// Rounds.
    pub rounds: usize,
    /// The value of the base, in the metric's unit.
    pub base_value: f64,
    /// The target's value less the base's, as a share of the base's.
    pub relative: f64,
    /// The interval of `relative`: with a probability of 95 %, those of all the run's differences
    /// hold. Absent with fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// The lowest and the highest of the rounds.
    pub range: [f64; 2],
    /// The difference that is noise under the same load, as a share: no smaller one is shown.
    pub noise_floor: f64,
}

impl RoundDifference {
    /// Compares two targets by their steps, one for each round, as one of `comparisons` made
    /// together. `None` without rounds, or where more values are missing or 0 than are left out.
    pub fn between<S: Borrow<Step>>(
        metric: &Metric,
        [base, target]: [&[S]; 2],
        comparisons: usize,
    ) -> Option<Self> {
        let [base_values, values] = [logs(metric, base), logs(metric, target)];
        let [first, other] = [base.first()?.borrow(), target.first()?.borrow()];
        let differences: Vec<f64> = base_values
            .iter()
            .zip(&values)
            .map(|(a, b)| b - a)
            .collect();
        let trimmed = Trimmed::of(&differences)?;
        let known = || differences.iter().copied().filter(|own| own.is_finite());
        let ends = |pick: fn(f64, f64) -> f64| known().reduce(pick);
        Some(Self {
            target: other.name().to_owned(),
            base: first.name().to_owned(),
            callers: other.settings.callers,
            connections: [other.settings.connections, first.settings.connections],
            message: other.settings.message.clone(),
            is_noise: false,
            metric: metric.name.to_owned(),
            rounds: differences.len(),
            base_value: Trimmed::of(&base_values)?.mean.exp(),
            relative: trimmed.mean.exp_m1(),
            interval: trimmed
                .interval(comparisons)
                .map(|interval| interval.map(f64::exp_m1)),
            range: [ends(f64::min)?, ends(f64::max)?].map(f64::exp_m1),
            noise_floor: 0.0,
        })
    }

    /// Returns true if the rounds show a difference: its interval leaves out 0, and it is larger
    /// than that of the reference from itself.
    pub fn is_shown(&self) -> bool {
        self.interval
            .is_some_and(|[low, high]| low > 0.0 || high < 0.0)
            && self.relative.abs() > self.noise_floor
    }

    /// Returns the difference and the ends of its interval, or of its range without one, in the
    /// metric's unit.
    pub fn absolute(&self) -> (f64, [f64; 2]) {
        let of = |share: f64| share * self.base_value;
        (
            of(self.relative),
            self.interval.unwrap_or(self.range).map(of),
        )
    }
}

/// The value of some rounds: the mean on logarithms without the lowest and the highest tenth, and the
/// half width of its 95 % interval as a share of it; absent with fewer than six rounds.
pub fn value<S: Borrow<Step>>(metric: &Metric, rounds: &[S]) -> Option<(f64, Option<f64>)> {
    let trimmed = Trimmed::of(&logs(metric, rounds))?;
    let half = trimmed
        .interval(1)
        .map(|[_, high]| (high - trimmed.mean).exp_m1());
    Some((trimmed.mean.exp(), half))
}

/// Returns the logarithm of each round's value. A window that was disturbed so much that it has too
/// few samples for a value counts as worse than all others.
fn logs<S: Borrow<Step>>(metric: &Metric, rounds: &[S]) -> Vec<f64> {
    let worst = match metric.better {
        Better::Lower => f64::INFINITY,
        Better::Higher => f64::NEG_INFINITY,
    };
    let log = |step: &S| {
        let value = metric.of_step(step.borrow());
        value.filter(|value| *value > 0.0).map_or(worst, f64::ln)
    };
    rounds.iter().map(log).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures::step, metric};

    #[test]
    fn a_window_too_disturbed_for_a_median_is_left_out_and_two_are_not() {
        let rounds = |disturbed: usize, time: u64| -> Vec<Step> {
            let one = |round: usize| {
                let samples = if round < disturbed { 3 } else { 200 };
                step(1, |_| vec![time; samples])
            };
            (0..10).map(one).collect()
        };
        let base = rounds(0, 10_000);
        let between = |target: &[Step]| RoundDifference::between(&metric::P50, [&base, target], 1);
        let difference = between(&rounds(1, 20_000)).unwrap();
        assert!((difference.relative - 1.0).abs() < 0.01, "{difference:?}");
        assert!(difference.range[1] < 1.1, "{difference:?}");
        let (median, _) = value(&metric::P50, &rounds(1, 20_000)).unwrap();
        assert!((median / 20_000.0 - 1.0).abs() < 0.01, "{median}");
        assert_eq!(between(&rounds(2, 20_000)), None);
        assert_eq!(value(&metric::P50, &rounds(2, 20_000)), None);
        assert_eq!(between(&[]), None);
    }
}
