//! What became of one measure.

use super::{Measure, within};
use crate::{bulk::BulkStep, run::Step};
use netping_measure::{
    bulk::BulkRun,
    counts::Counts,
    statistics::{
        difference::{Finding, SIGNIFICANT},
        estimate::Moments,
        side::Side,
        welch::Welch,
    },
};

/// Up to so many trials on a side are drawn anew for its quantiles; with more, the trials' own quantiles tell as much, and
/// their histograms would take long to draw.
const MOST_DRAWN: usize = 64;

/// One measure in the base and in the new run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Which.
    pub measure: Measure,
    /// Its value in the base: the mean of the trials, for quantiles that of all their samples. In the measure's unit.
    pub base: Option<f64>,
    /// Its value in the new run.
    pub new: Option<f64>,
    /// The new value less the base's: a share of the base's, or the difference of shares for [`Measure::Errors`].
    pub difference: Option<f64>,
    /// The 95 % confidence interval of that; absent where there is no error bar.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference at least as large by chance alone, times the number of measures compared with it
    /// (Bonferroni), at most 1; absent where there is no error bar.
    pub p_value: Option<f64>,
}

impl Change {
    /// What it shows; `None` where there is a difference but no error bar, or a value is missing.
    pub fn finding(&self) -> Option<Finding> {
        let difference = self.difference?;
        match self.p_value {
            Some(p) if p >= SIGNIFICANT => Some(Finding::NoDifference),
            None if difference != 0.0 => None,
            _ if difference == 0.0 => Some(Finding::NoDifference),
            _ if (difference > 0.0) == self.measure.more_is_better() => Some(Finding::Better),
            _ => Some(Finding::Worse),
        }
    }

    /// Whether it shows a difference.
    pub(super) fn is_shown(&self) -> bool {
        matches!(self.finding(), Some(Finding::Better | Finding::Worse))
    }

    fn of(measure: Measure, base: Option<f64>, new: Option<f64>, gap: Option<Welch>) -> Self {
        let (base, new) = (
            gap.map(|gap| gap.first).or(base),
            gap.map(|gap| gap.second).or(new),
        );
        let difference = base.zip(new).map(|(base, new)| new - base);
        let p_value = gap.map(|gap| gap.p_value);
        let interval = gap.map(Welch::interval);
        let unit = if measure.is_relative() {
            base
        } else {
            Some(1.0)
        };
        let Some(unit) = unit else {
            return Self {
                measure,
                base,
                new,
                difference: None,
                interval: None,
                p_value: None,
            };
        };
        if unit == 0.0 {
            // Nothing is a share of nothing, unless it is nothing.
            let difference = difference.filter(|difference| *difference == 0.0);
            return Self {
                measure,
                base,
                new,
                difference,
                interval: None,
                p_value: p_value.and(difference.map(|_| 1.0)),
            };
        }
        Self {
            measure,
            base,
            new,
            difference: difference.map(|difference| difference / unit),
            interval: interval.map(|ends| ends.map(|end| end / unit)),
            p_value,
        }
    }
}

/// What became of each measure of a step, from the trials on both sides.
pub(super) fn of_steps(base: &[&Step], new: &[&Step]) -> Vec<Change> {
    let change = |measure: Measure| {
        let (first, second) = (values(measure, base), values(measure, new));
        let gap = match (first.as_deref(), second.as_deref()) {
            (Some([_]), Some([_])) => within::side(measure, base[0])
                .zip(within::side(measure, new[0]))
                .and_then(|(a, b)| Welch::compare(a, b)),
            (Some(first), Some(second)) => {
                quantiles(measure, base, new).or_else(|| Welch::of_trials(first, second))
            }
            _ => None,
        };
        from_sides(measure, first.as_deref(), second.as_deref(), gap)
    };
    adjusted(Measure::OF_STEPS.into_iter().filter_map(change).collect())
}

/// What became of each measure of a bulk stream, from its runs on both sides.
pub(super) fn of_bulk(base: &[&BulkStep], new: &[&BulkStep]) -> Vec<Change> {
    let change = |measure: Measure| {
        let values = |steps: &[&BulkStep]| -> Option<Vec<f64>> {
            let runs: Vec<&BulkRun> = steps.iter().flat_map(|step| &step.runs).collect();
            if runs.is_empty() {
                None
            } else {
                runs.into_iter().map(|run| measure.of_bulk(run)).collect()
            }
        };
        let (first, second) = (values(base), values(new));
        let gap = first
            .as_deref()
            .zip(second.as_deref())
            .and_then(|(first, second)| Welch::of_trials(first, second));
        from_sides(measure, first.as_deref(), second.as_deref(), gap)
    };
    adjusted(Measure::OF_BULK.into_iter().filter_map(change).collect())
}

/// `None` where neither side has a value.
fn from_sides(
    measure: Measure,
    first: Option<&[f64]>,
    second: Option<&[f64]>,
    gap: Option<Welch>,
) -> Option<Change> {
    let mean = |values: &[f64]| Moments::of(values).map(|moments| moments.mean);
    (first.is_some() || second.is_some())
        .then(|| Change::of(measure, first.and_then(mean), second.and_then(mean), gap))
}

/// A measure's value in every step; `None` where a step has none.
fn values(measure: Measure, steps: &[&Step]) -> Option<Vec<f64>> {
    steps.iter().map(|step| measure.of_step(step)).collect()
}

/// The quantiles of all samples of each side's trials.
fn quantiles(measure: Measure, base: &[&Step], new: &[&Step]) -> Option<Welch> {
    let Measure::Quantile(percent) = measure else {
        return None;
    };
    let side = |steps: &[&Step]| -> Option<Side> {
        if !(2..=MOST_DRAWN).contains(&steps.len()) {
            return None;
        }
        let trials: Vec<&Counts> = steps
            .iter()
            .map(|step| &step.histograms.response_time)
            .collect();
        Side::of_quantile(&trials, percent)
    };
    Some(Welch::compare(side(base)?, side(new)?)?.scaled(1e-3))
}

/// Makes up for how many measures are compared at once.
fn adjusted(mut changes: Vec<Change>) -> Vec<Change> {
    let compared = changes
        .iter()
        .filter(|change| change.p_value.is_some())
        .count() as f64;
    for change in &mut changes {
        change.p_value = change.p_value.map(|p| (p * compared).min(1.0));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_to_nothing_is_no_share() {
        let of = |measure, base, new| Change::of(measure, Some(base), Some(new), None);
        assert_eq!(of(Measure::ServerCpu, 0.0, 2.0).difference, None);
        assert_eq!(
            of(Measure::ServerCpu, 0.0, 0.0).finding(),
            Some(Finding::NoDifference)
        );
        assert_eq!(of(Measure::ServerCpu, 4.0, 5.0).difference, Some(0.25));
        // Errors differ in percentage points.
        assert_eq!(of(Measure::Errors, 0.0, 0.25).difference, Some(0.25));
        assert_eq!(
            Change::of(Measure::Rate, None, Some(1.0), None).finding(),
            None
        );
    }
}
