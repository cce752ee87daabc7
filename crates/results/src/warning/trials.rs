//! A warning about a trial that is unlike the others of its measurement.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Severity, Told, WarningKind, facts::Trial};
/// One trial lies far off the others of its measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct UnlikeTrials {
    /// The trial's number.
    pub trial: u32,
    /// The name of the metric in which it is furthest off.
    pub metric: String,
    /// Its value, as a multiple of the median of the others.
    pub ratio: f64,
}

impl UnlikeTrials {
    /// Fewer trials than these do not show which of them is the odd one.
    const FEWEST: usize = 4;

    /// A trial is far off beyond this many standard deviations of the others...
    const DEVIATIONS: f64 = 10.0;

    /// ...and beyond this multiple of their median, or its inverse.
    const MULTIPLE: f64 = 1.5;

    /// The standard deviation of a normal distribution, as a multiple of its median absolute deviation.
    const PER_MEDIAN_DEVIATION: f64 = 1.4826;

    /// Returns the trials that are far off in one metric, by their places. Deviations are those of
    /// logarithms. Their scale is the median absolute deviation, which one trial does not widen, however
    /// far off it is (Hampel, "The influence curve and its role in robust estimation", 1974).
    fn in_metric(metric: &str, trials: &[Trial]) -> Vec<(usize, Self)> {
        let value = |(at, trial): (usize, &Trial)| {
            let mut values = trial.values.iter();
            let (_, value) = values.find(|(name, _)| *name == metric)?;
            Some((at, value.ln()))
        };
        let logarithms = trials.iter().enumerate().filter_map(value);
        let logarithms: Vec<(usize, f64)> = logarithms.filter(|(_, x)| x.is_finite()).collect();
        if logarithms.len() < Self::FEWEST {
            return Vec::new();
        }
        let middle = median(logarithms.iter().map(|(_, x)| *x));
        let spread = median(logarithms.iter().map(|(_, x)| (x - middle).abs()));
        let far = (Self::DEVIATIONS * Self::PER_MEDIAN_DEVIATION * spread).max(Self::MULTIPLE.ln());
        let far_off = logarithms.iter().filter(|(_, x)| (x - middle).abs() > far);
        let warning = |&(at, own): &(usize, f64)| {
            let others = logarithms.iter().filter(|(other, _)| *other != at);
            let kind = Self {
                trial: trials[at].number,
                metric: metric.to_owned(),
                ratio: (own - median(others.map(|(_, x)| *x))).exp(),
            };
            (at, kind)
        };
        far_off.map(warning).collect()
    }

    /// Returns how far off it is, in either direction.
    fn distance(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

/// Returns the middle value, or the mean of the two in the middle. There is at least one.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

impl WarningKind for UnlikeTrials {
    fn of_trials(trials: &[Trial]) -> Vec<(usize, Self)> {
        let names = trials.iter().flat_map(|trial| &trial.values);
        let names: BTreeSet<&str> = names.map(|(name, _)| *name).collect();
        let mut found: Vec<(usize, Self)> = names
            .into_iter()
            .flat_map(|metric| Self::in_metric(metric, trials))
            .collect();
        // Of each trial, the metric in which it is furthest off.
        found.sort_by(|(at, kind), (other_at, other)| {
            at.cmp(other_at)
                .then(other.distance().total_cmp(&kind.distance()))
        });
        found.dedup_by_key(|(at, _)| *at);
        found
    }

    fn tell(&self) -> Told {
        Told {
            severity: Severity::Note,
            extent: self.distance(),
            sentence: format!(
                "the {} of trial {} is {} times the median of the others",
                self.metric,
                self.trial,
                times(self.ratio)
            ),
            remedy: &[
                (
                    "look for what disturbed that trial and measure again, or give more trials",
                    &["--trials"],
                ),
                (", so that one weighs less", &[]),
            ],
        }
    }
}

/// Returns a ratio with three significant digits.
fn times(ratio: f64) -> String {
    let digits = (2.0 - ratio.log10().floor()).max(0.0) as usize;
    format!("{ratio:.digits$}")
}
