//! The change of one metric.

use netping_measure::statistics::{difference::Finding, estimate::Moments, welch::Welch};

use super::within;
use crate::{
    bulk::BulkStep,
    metric::{self, Better, Metric, Source},
    run::Step,
};

/// Maximum number of trials whose histograms are resampled; with more, the trials' own quantiles
/// tell as much, and resampling would take long.
const MOST_DRAWN: usize = 64;

/// One metric in the base and in the new run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The metric.
    pub metric: &'static Metric,
    /// Its value in the base, in its unit: the mean of the trials, or the quantile of all their
    /// samples.
    pub base: Option<f64>,
    /// Its value in the new run.
    pub new: Option<f64>,
    /// The new value less the base's: as a share of the base's, or, for a share, as a difference.
    pub difference: Option<f64>,
    /// The interval of `difference`: with a probability of 95 %, those of all claims of the command
    /// hold their differences. Absent where there is no error bar.
    pub interval: Option<[f64; 2]>,
    /// The probability of a difference at least as large by chance alone, times the number of
    /// claims (Bonferroni), at most 1; absent where there is no error bar.
    pub p_value: Option<f64>,
}

impl Change {
    /// Returns the verdict; `None` where there is a difference but no error bar, or a value is
    /// missing, and for metrics on which no claim is made.
    pub fn finding(&self) -> Option<Finding> {
        let difference = self.difference.filter(|_| self.metric.is_claimed())?;
        Some(match (self.is_shown()?, difference > 0.0) {
            (false, _) => Finding::NoDifference,
            (true, more) if more == (self.metric.better == Better::Higher) => Finding::Better,
            (true, _) => Finding::Worse,
        })
    }

    /// Returns true where its interval shows a difference; `None` where there is a difference but
    /// no interval.
    pub(super) fn is_shown(&self) -> Option<bool> {
        match self.interval {
            Some([low, high]) => Some(low > 0.0 || high < 0.0),
            None if self.difference? != 0.0 => None,
            None => Some(false),
        }
    }

    /// Compares the trials of both sides; `None` where neither side has a value.
    fn over(
        metric: &'static Metric,
        [base, new]: [Option<Vec<f64>>; 2],
        welch: Option<Welch>,
        claims: usize,
    ) -> Option<Self> {
        let mean = |values: Option<Vec<f64>>| Some(Moments::of(&values?)?.mean);
        let (base, new) = (mean(base), mean(new));
        (base.is_some() || new.is_some()).then(|| Self::of(metric, base, new, welch, claims))
    }

    fn of(
        metric: &'static Metric,
        base: Option<f64>,
        new: Option<f64>,
        welch: Option<Welch>,
        claims: usize,
    ) -> Self {
        let (base, new) = (
            welch.map(|welch| welch.first).or(base),
            welch.map(|welch| welch.second).or(new),
        );
        let difference = base.zip(new).map(|(base, new)| new - base);
        let adjusted = |welch: Welch| (welch.p_value * claims as f64).min(1.0);
        let ratio = welch.and_then(|welch| welch.ratio);
        let (difference, interval, p_value) = match (metric.is_relative(), base) {
            (false, _) => (difference, welch.map(Welch::interval), welch.map(adjusted)),
            (true, None) => (None, None, None),
            // 0 / 0 counts as no change.
            (true, Some(0.0)) => (
                difference.filter(|difference| *difference == 0.0),
                None,
                None,
            ),
            (true, Some(base)) => (
                difference.map(|difference| difference / base),
                ratio.and_then(|ratio| ratio.interval(claims)),
                ratio.and_then(|ratio| ratio.p_value(claims)),
            ),
        };
        Self {
            metric,
            base,
            new,
            difference,
            interval,
            p_value,
        }
    }
}

/// Compares each metric of a step over the trials of both sides: those shown, and those asked for.
pub(super) fn of_steps(
    base: &[&Step],
    new: &[&Step],
    asked: &[&'static Metric],
    claims: usize,
) -> Vec<Change> {
    let change = |metric: &'static Metric| {
        let values = [base, new].map(|steps| metric.of_trials(steps));
        let welch = match (base, new) {
            ([base], [new]) => within::side(metric, base)
                .zip(within::side(metric, new))
                .and_then(|(a, b)| Welch::compare(a, b)),
            _ => pooled(metric, base, new)
                .or_else(|| Welch::of_trials(values[0].as_deref()?, values[1].as_deref()?)),
        };
        Change::over(metric, values, welch, claims)
    };
    let asked = asked.iter().filter(|metric| !metric.is_bulk());
    listed(metric::COMPARED, asked).filter_map(change).collect()
}

/// Compares each metric of a bulk stream over its runs on both sides.
pub(super) fn of_bulk(base: &[&BulkStep], new: &[&BulkStep], claims: usize) -> Vec<Change> {
    let change = |metric: &'static Metric| {
        let values = [base, new].map(|steps| -> Option<Vec<f64>> {
            let runs = steps.iter().flat_map(|step| &step.runs);
            let values: Vec<f64> = runs.map(|run| metric.of_bulk(run)).collect::<Option<_>>()?;
            (!values.is_empty()).then_some(values)
        });
        let [first, second] = &values;
        let welch = first
            .as_deref()
            .zip(second.as_deref())
            .and_then(|(first, second)| Welch::of_trials(first, second));
        Change::over(metric, values, welch, claims)
    };
    metric::BULK.iter().copied().filter_map(change).collect()
}

/// Returns the metrics that are shown, and those of `asked` that are not among them.
fn listed<'a>(
    shown: metric::List,
    asked: impl Iterator<Item = &'a &'static Metric>,
) -> impl Iterator<Item = &'static Metric> {
    let mut all = shown.to_vec();
    for metric in asked {
        if !all.contains(metric) {
            all.push(metric);
        }
    }
    all.into_iter()
}

/// Compares a quantile over all samples of each side's trials; `None` for other metrics.
fn pooled(metric: &Metric, base: &[&Step], new: &[&Step]) -> Option<Welch> {
    let can_pool = matches!(metric.source, Source::Quantile(_))
        && [base, new]
            .iter()
            .all(|steps| (2..=MOST_DRAWN).contains(&steps.len()));
    if !can_pool {
        return None;
    }
    Welch::compare(metric.side(base)?, metric.side(new)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_from_0_has_no_share() {
        let of = |metric, base, new| Change::of(metric, Some(base), Some(new), None, 1);
        assert_eq!(of(&metric::SERVER_CPU, 0.0, 2.0).difference, None);
        assert_eq!(
            of(&metric::SERVER_CPU, 0.0, 0.0).finding(),
            Some(Finding::NoDifference)
        );
        assert_eq!(of(&metric::SERVER_CPU, 4.0, 5.0).difference, Some(0.25));
        // Errors differ in percentage points.
        assert_eq!(of(&metric::ERROR_SHARE, 0.0, 0.25).difference, Some(0.25));
        assert_eq!(
            Change::of(&metric::RATE, None, Some(1.0), None, 1).finding(),
            None
        );
    }
}
